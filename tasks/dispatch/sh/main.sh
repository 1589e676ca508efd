# shellcheck shell=sh disable=SC2154
# What the worker asks for.

# look: in which state the call is; sets $sf_state. An input that nobody has claimed is closed by the look itself:
# a start that comes late finds it closed, so the call has not run and will not.
look() {
    sf_owner=$(readlink -- "$sf_claim" 2>/dev/null) || sf_owner=
    case $sf_owner in
        '')
            sf_state=nothing
            if [ -f "$sf_work/input" ]; then
                sf_state=dead # unless it can be closed; one that was begun and lost its claim cannot
                [ -L "$sf_work/tool" ] || [ -e "$sf_work/out" ] || void
            fi
            [ "$sf_state" = void ] || [ ! -L "$sf_claim" ] || look # begun meanwhile, over perhaps
            ;;
        void) sf_state=void ;;
        "$sf_nonce":*)
            sf_state=receipt
            [ -L "$sf_work/receipt" ] && return
            sf_state=running
            living && return
            sf_state=dead
            [ ! -L "$sf_work/receipt" ] || sf_state=receipt # written between the two looks
            ;;
        *) sf_state=foreign ;;
    esac
}

# void: nobody has claimed the call; closes it.
void() {
    ln -s void "$sf_claim" 2>/dev/null && sf_state=void && settle "$sf_place"
}

# find_claim: without the ledger nobody knows the nonce; any claim of this call is one.
find_claim() {
    for sf_claim in "$sf_place"/claim.*; do
        sf_owner=$(readlink -- "$sf_claim" 2>/dev/null) || continue
        [ "$sf_owner" != void ] || continue
        sf_generation=${sf_claim##*.} sf_nonce=${sf_owner%%:*}
        sf_work=$sf_place/$sf_nonce.$sf_generation
        return
    done
    return 1
}

answer() {
    say "state $sf_state"
    say "generation $sf_generation"
    [ "$sf_state" = receipt ] || return 0
    sf_receipt=$(readlink -- "$sf_work/receipt")
    say "receipt $sf_receipt"
    say
    sf_receipt=${sf_receipt#*:*:*:}
    head -c "${sf_receipt%%:*}" "$sf_work/out"
    sf_receipt=${sf_receipt#*:*:}
    head -c "${sf_receipt%%:*}" "$sf_work/err"
}

# follow: waits for the receipt of a living call.
follow() {
    look
    while [ "$sf_state" = running ]; do
        nap 0.1
        look
    done
}

case $sf_mode in
    unpack)
        mkdir -p -- "${1%/*}"
        unpack "$@"
        say 'unpacked yes'
        ;;
    stage | run)
        sf_package=$1 sf_sums=$2 sf_durable=$3 sf_staged=$4 sf_cwd=$5 sf_seconds=$6 sf_limit=$7 sf_error_limit=$8
        shift 8
        if [ "$sf_staged" = no ]; then
            require setsid mkfifo readlink sha256sum head ln ls sync tail wc
            packaged "$sf_package" "$sf_sums" || { say 'need package' && exit 0; }
            stage_input
        fi
        [ "$sf_mode" = run ] || { say 'staged yes' && exit 0; }
        unset SANDFERRY_INPUT
        setsid sh -c "$sf_self" sandferry-launcher supervise "$sf_self" "$sf_place" "$sf_nonce" "$sf_generation" \
            "$sf_durable" "$sf_cwd" "$sf_seconds" "$sf_limit" "$sf_error_limit" "$@" </dev/null >/dev/null 2>&1 &
        wait $!
        follow
        answer
        ;;
    look | follow)
        if [ "$sf_nonce" = - ]; then
            find_claim || { say 'state nothing' && say 'generation 1' && exit 0; }
        fi
        "$sf_mode"
        answer
        ;;
    stop)
        # Until it is seen to be over: a tool that is just being started has not said yet who it is.
        look
        while [ "$sf_state" = running ]; do
            halt cancelled
            nap 0.1
            look
        done
        answer
        ;;
    supervise)
        sf_durable=$1 sf_cwd=$2 sf_seconds=$3 sf_limit=$4 sf_error_limit=$5
        shift 5
        supervise "$@"
        ;;
    timer)
        sleep "$1"
        halt timeout
        ;;
esac
