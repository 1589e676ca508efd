# shellcheck shell=sh disable=SC2034,SC2154
# How the helper fails: one line on stderr, in words of the cause grammar only. What git and the others said
# stays in $said; its end goes to stdout, which is private.
exec 3>&2 2>/dev/null
stage=helper said='' directory='' own='' stopped=''

# ask FILE COMMAND...: run it, its stdout into FILE, its stderr into $said. No file holds stderr: a full disk
# would swallow the very words that say so.
ask() {
    into=$1
    shift
    said=$("$@" 2>&1 >"$into" 3>&-)
}

# The first line of stdin that ends like an errno of the C locale: "CODE reason".
errno_in() {
    while IFS= read -r text; do
        case $text in
            warning:*) ;;
            *': No space left on device') echo ENOSPC disk_full && return ;;
            *': Disk quota exceeded') echo EDQUOT disk_quota && return ;;
            *': Cannot allocate memory') echo ENOMEM out_of_memory && return ;;
            *'Out of memory, '*' failed'*) echo ENOMEM out_of_memory && return ;;
            *': Too many open files') echo EMFILE process_limit && return ;;
            *': Too many open files in system') echo ENFILE process_limit && return ;;
            *': Resource temporarily unavailable') echo EAGAIN process_limit && return ;;
            *': Read-only file system') echo EROFS read_only && return ;;
            *': Permission denied') echo EACCES file_denied && return ;;
            *': Operation not permitted') echo EPERM file_denied && return ;;
            *': Input/output error') echo EIO && return ;;
            *': Structure needs cleaning') echo EUCLEAN && return ;;
            *': File too large') echo EFBIG && return ;;
            *': File name too long') echo ENAMETOOLONG && return ;;
            *': Too many levels of symbolic links') echo ELOOP && return ;;
            *': Argument list too long') echo E2BIG && return ;;
            *': Stale file handle') echo ESTALE && return ;;
            *': Device or resource busy') echo EBUSY && return ;;
            *': File exists') echo EEXIST && return ;;
            *': Not a directory') echo ENOTDIR && return ;;
            *': Is a directory') echo EISDIR && return ;;
            *': Directory not empty') echo ENOTEMPTY && return ;;
            *': No such file or directory') echo ENOENT && return ;;
            *': Invalid argument') echo EINVAL && return ;;
            *'promisor remote'* | *'promisor object'*) echo '' promisor_object && return ;;
            *'bad object '* | *'bad tree object '* | *' is corrupt'* | *'unable to read tree'* | *'missing blob'* | *'missing tree'*)
                echo '' object_corrupt && return ;;
            *'Could not read '* | *'Failed to traverse parents'* | *'unable to read '* | *'unable to get size of '*) echo '' object_corrupt && return ;;
        esac
    done
}

# The signal of a shell's exit status; nothing for an exit code. 129 is git's wrong usage, no SIGHUP.
signal_of() {
    case $1 in
        130) echo SIGINT ;; 131) echo SIGQUIT ;; 132) echo SIGILL ;; 134) echo SIGABRT ;; 135) echo SIGBUS ;;
        136) echo SIGFPE ;; 137) echo SIGKILL ;; 139) echo SIGSEGV ;; 141) echo SIGPIPE ;; 143) echo SIGTERM ;;
        152) echo SIGXCPU ;; 153) echo SIGXFSZ ;; 159) echo SIGSYS ;;
    esac
}

# broke PROGRAM STATUS [REASON [CODE]]: say so and end. Without a reason, $said is asked for one.
broke() {
    trap - EXIT
    program=$1 status=$2 reason=${3:-} code=${4:-}
    if [ -z "$reason" ]; then
        known=$(printf '%s\n' "$said" | errno_in)
        code=${known%% *} reason=${known#"$code"}
        reason=${reason# }
        [ "$status" -ne 127 ] || reason=program_missing
    fi
    ended=$(signal_of "$status")
    cleanup
    printf '%s' "$said" | tail -c 8192
    line="remote_workspace_capture_failed: stage=$stage${code:+ code=$code}"
    [ -n "$ended" ] || line="$line exit=$status"
    line="$line${ended:+ signal=$ended} program=$program${reason:+ reason=$reason} helper_exit=1"
    printf '%s\n' "$line" >&3
    exit 1
}

# Nothing of ours outlives the helper but what it has published.
cleanup() {
    resume
    [ -z "$directory" ] || rm -rf -- "$directory"
}

# The shell itself could not go on: a full disk under a redirection, for one.
unexpected() {
    status=$?
    [ "$status" -ne 0 ] || status=1
    said="${said}sh: $(: 2>&1 >"${own:-/dev/null}/probe")"
    broke sh "$status"
}

# A signal is passed on to ourselves, so that the worker sees it.
ended_by() {
    trap - EXIT "$1"
    cleanup
    kill -s "$1" $$
}
trap unexpected EXIT
for signal in HUP INT TERM; do
    # shellcheck disable=SC2064
    trap "ended_by $signal" "$signal"
done
