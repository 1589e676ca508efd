# shellcheck shell=sh disable=SC2154
# The supervisor: claims the call, runs the tool, leaves the receipt. It leads a session of its own, so that it
# outlives the connection, the command and the worker that started it.

# keep NAME BYTES: what comes down the pipe NAME.<pid of the supervisor>, as much of it as is kept. The rest is
# let go, so that nobody is held up by it. `cat` keeps nothing back; the limit of its file size stops it.
keep() {
    {
        (
            ulimit -f "$(($2 / 512 + 1))"
            trap '' XFSZ
            exec cat
        ) >"$1" 2>/dev/null || {
            ln -s yes "$1.more"
            cat >/dev/null
        }
    } <"$1.$$"
}

# tally NAME BYTES: sets $sf_size and $sf_more of what was kept.
tally() {
    sf_size=$(wc -c <"$1") || sf_size=0
    sf_size=$((sf_size)) sf_more=no
    [ ! -L "$1.more" ] || sf_more=yes
    [ "$sf_size" -le "$2" ] || sf_size=$2 sf_more=yes
}

# Becomes the tool. Its own PATH comes under another name: the launcher needs the sandbox's.
# shellcheck disable=SC2016 # for the next shell
sf_begin='[ -z "${SANDFERRY_PATH+set}" ] || PATH=$SANDFERRY_PATH; unset SANDFERRY_PATH; exec "$@"'

sf_kept=100 # calls of a sandbox whose output stays

# supervise PROGRAM ARGUMENT...: exits 4 if somebody else has the claim.
supervise() {
    cd -- "$sf_work" && born $$ && mkfifo "out.$$" "err.$$" || exit 3
    # The claim is a symbolic link: made in one step with what it says, or not at all, even on a full disk.
    ln -s "$sf_nonce:$$:$sf_born:$sf_boot" "$sf_claim" 2>/dev/null || {
        rm -f -- "out.$$" "err.$$"
        exit 4
    }
    [ "$sf_durable" = no ] || settle "$sf_place"
    oom_kills
    sf_before=$sf_kills
    keep out "$sf_limit" &
    sf_out=$!
    keep err "$sf_error_limit" &
    sf_err=$!
    (cd -- "$sf_cwd" && unset OLDPWD && exec setsid sh -c "$sf_begin" sh "$@" || exit 126) <input >"out.$$" 2>"err.$$" &
    sf_tool=$!
    born "$sf_tool" && ln -s "$sf_tool:$sf_born:$sf_boot" tool
    setsid sh -c "$sf_self" sandferry-launcher timer "$sf_self" "$sf_place" "$sf_nonce" "$sf_generation" "$sf_seconds" \
        </dev/null >/dev/null 2>&1 &
    sf_timer=$!
    wait "$sf_tool"
    sf_code=$?
    kill -KILL "-$sf_timer" 2>/dev/null || kill -KILL "$sf_timer" 2>/dev/null
    # What the tool wrote is read within a moment; a child it left behind may hold the pipe for ever.
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        born "$sf_out" || born "$sf_err" || break
        nap 0.03
    done
    rm -f -- "out.$$" "err.$$"
    receipt "$sf_code"
    rm -f -- input # nobody asks for it any more, and it may be confidential
    forget & # nobody waits for it
}

# receipt CODE: how the tool ended. One step, as the claim.
receipt() {
    sf_hint=none
    oom_kills
    [ "$1" -ne 137 ] || [ "$sf_kills" -eq "$sf_before" ] || sf_hint=out_of_memory
    tally out "$sf_limit"
    sf_said=$1:$(readlink -- ended 2>/dev/null || echo itself):$sf_hint:$sf_size:$sf_more
    tally err "$sf_error_limit"
    [ "$sf_durable" = no ] || { settle out && settle err; }
    ln -s "$sf_said:$sf_size:$sf_more" receipt.new && mv -- receipt.new receipt
    [ "$sf_durable" = no ] || settle "$sf_work"
}

# forget: the newest calls of this sandbox keep their output. Of older ones it keeps how they ended, for ever: that is
# what keeps them from running again. A few at a time, so that its work does not grow with their number.
forget() {
    # shellcheck disable=SC2012 # the names are ours
    cd ../.. && ls -t | tail -n "+$((sf_kept + 1))" | head -n 8 | while read -r sf_call; do
        for sf_old in "$sf_call"/*/receipt; do
            [ ! -L "$sf_old" ] || strip "${sf_old%/receipt}"
        done
    done
}

# strip DIRECTORY: of a call that has ended, only its end is left.
strip() {
    sf_said=$(readlink -- "$1/receipt") && [ "$sf_said" = "${sf_said%:0:yes:0:yes}" ] || return
    ln -s "${sf_said%:*:*:*:*}:0:yes:0:yes" "$1/receipt.new" && mv -- "$1/receipt.new" "$1/receipt" &&
        : >"$1/out" && : >"$1/err" && rm -f -- "$1/out.more" "$1/err.more" "$1/tool" "$1/ended"
}
