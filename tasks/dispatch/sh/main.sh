# shellcheck shell=sh disable=SC2154
# What the worker asks for.

# look: in which state the call is; sets $state. An input that nobody has claimed is closed by the look itself:
# a start that comes late finds it closed, so the call has not run and will not.
look() {
    owner=$(readlink -- "$claim" 2>/dev/null) || owner=
    case $owner in
        '')
            state=nothing
            [ -f "$work/input" ] || return 0
            ln -s void "$claim" 2>/dev/null && state=void && settle "$place" && return 0
            look
            ;;
        void) state=void ;;
        "$nonce":*)
            state=receipt
            [ -L "$work/receipt" ] && return
            state=running
            living && return
            state=dead
            [ ! -L "$work/receipt" ] || state=receipt # written between the two looks
            ;;
        *) state=foreign ;;
    esac
}

# find_claim: without the ledger nobody knows the nonce; any claim of this call is one.
find_claim() {
    for claim in "$place"/claim.*; do
        owner=$(readlink -- "$claim" 2>/dev/null) || continue
        [ "$owner" != void ] || continue
        generation=${claim##*.} nonce=${owner%%:*}
        work=$place/$nonce.$generation
        return
    done
    return 1
}

answer() {
    say "state $state"
    say "generation $generation"
    [ "$state" = receipt ] || return 0
    receipt=$(readlink -- "$work/receipt")
    say "receipt $receipt"
    say
    receipt=${receipt#*:*:*:}
    head -c "${receipt%%:*}" "$work/out"
    receipt=${receipt#*:*:}
    head -c "${receipt%%:*}" "$work/err"
}

# follow: waits for the receipt of a living call.
follow() {
    look
    while [ "$state" = running ]; do
        nap 0.1
        look
    done
}

case $mode in
    unpack)
        mkdir -p -- "${1%/*}"
        unpack "$@"
        say 'unpacked yes'
        ;;
    stage | run)
        package=$1 sums=$2 durable=$3 staged=$4 cwd=$5 seconds=$6 limit=$7 error_limit=$8
        shift 8
        if [ "$staged" = no ]; then
            require setsid mkfifo readlink sha256sum head ln sync wc
            packaged "$package" "$sums" || { say 'need package' && exit 0; }
            stage_input
        fi
        [ "$mode" = run ] || { say 'staged yes' && exit 0; }
        unset SANDFERRY_INPUT
        setsid sh -c "$self" sandferry-launcher supervise "$self" "$place" "$nonce" "$generation" \
            "$durable" "$cwd" "$seconds" "$limit" "$error_limit" "$@" </dev/null >/dev/null 2>&1 &
        wait $!
        follow
        answer
        ;;
    look | follow)
        if [ "$nonce" = - ]; then
            find_claim || { say 'state nothing' && say 'generation 1' && exit 0; }
        fi
        "$mode"
        answer
        ;;
    stop)
        # A tool that is just being started has not said yet who it is.
        for _ in 1 2 3 4 5 6 7 8 9 10; do
            [ ! -L "$work/tool" ] || break
            nap 0.1
        done
        halt cancelled
        follow
        answer
        ;;
    supervise)
        durable=$1 cwd=$2 seconds=$3 limit=$4 error_limit=$5
        shift 5
        supervise "$@"
        ;;
    timer)
        sleep "$1"
        halt timeout
        ;;
esac
