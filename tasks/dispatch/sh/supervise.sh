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

# tally NAME BYTES: sets $size and $more of what was kept.
tally() {
    size=$(wc -c <"$1") || size=0
    size=$((size)) more=no
    [ ! -L "$1.more" ] || more=yes
    [ "$size" -le "$2" ] || size=$2 more=yes
}

# supervise PROGRAM ARGUMENT...: exits 4 if somebody else has the claim.
supervise() {
    cd -- "$work" && born $$ && mkfifo "out.$$" "err.$$" || exit 3
    # The claim is a symbolic link: made in one step with what it says, or not at all, even on a full disk.
    ln -s "$nonce:$$:$born:$boot" "$claim" 2>/dev/null || {
        rm -f -- "out.$$" "err.$$"
        exit 4
    }
    [ "$durable" = no ] || settle "$place"
    oom_kills
    before=$kills
    keep out "$limit" &
    out=$!
    keep err "$error_limit" &
    err=$!
    (cd -- "$cwd" && unset OLDPWD && exec setsid sh -c 'exec "$@"' sh "$@" || exit 126) <input >"out.$$" 2>"err.$$" &
    tool=$!
    born "$tool" && ln -s "$tool:$born:$boot" tool
    setsid sh -c "$self" sandferry-launcher timer "$self" "$place" "$nonce" "$generation" "$seconds" \
        </dev/null >/dev/null 2>&1 &
    timer=$!
    wait "$tool"
    code=$?
    kill -KILL "-$timer" 2>/dev/null || kill -KILL "$timer" 2>/dev/null
    # What the tool wrote is read within a moment; a child it left behind may hold the pipe for ever.
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        born "$out" || born "$err" || break
        nap 0.03
    done
    rm -f -- "out.$$" "err.$$"
    receipt "$code"
}

# receipt CODE: how the tool ended. One step, as the claim.
receipt() {
    hint=none
    oom_kills
    [ "$1" -ne 137 ] || [ "$kills" -eq "$before" ] || hint=out_of_memory
    tally out "$limit"
    said=$1:$(readlink -- ended 2>/dev/null || echo itself):$hint:$size:$more
    tally err "$error_limit"
    [ "$durable" = no ] || { settle out && settle err; }
    ln -s "$said:$size:$more" receipt.new && mv -- receipt.new receipt
    [ "$durable" = no ] || settle "$work"
}
