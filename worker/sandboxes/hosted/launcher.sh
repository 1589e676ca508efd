# shellcheck shell=sh
# Runs a command in a hosted sandbox at most once, whatever its request's connection does. POSIX sh; needs
# base64, cp, find, mkdir, mv, rm, setsid, sleep, wc. The provider starts `start`, which starts `supervise` in a session of its
# own, which runs `begin`, which becomes the command. Whoever asks again under the same nonce gets the same answer.
#
# Arguments: mode, directory, nonce, then the mode's own. Variables begin with sf_, so that none of the command's
# environment is touched.
sf_run=$2/run/$3
# The sandbox may have any PATH; the command gets it back as it was.
export SANDFERRY_PATH="${SANDFERRY_PATH-$PATH}"
PATH=$PATH:/usr/local/bin:/usr/bin:/bin
# shellcheck disable=SC2016 # for the next shell
sf_self='eval "$SANDFERRY_LAUNCHER"'
sf_inline=49152 # bytes of a stream that ride in the answer; larger ones are fetched as files

# What is written at an end must find room on a disk that the command has filled: this much is kept for it.
sf_keep() { printf %16384s kept >"$sf_run.kept"; }
sf_free() { : >"$sf_run.kept"; }

# sf_refuse NONCE WHY: answers that nothing was begun.
sf_refuse() {
  echo "sandferry $1 refused - - ${#2} 0"
  printf %s "$2" | base64
  printf '.\n.\n'
  exit
}

# sf_born PID: sets $sf_start to its start time (field 22), $sf_group to its process group; fails for a zombie.
sf_born() {
  read -r sf_stat 2>/dev/null <"/proc/$1/stat" || return 1
  # shellcheck disable=SC2086 # fields
  set -- ${sf_stat##*) }
  sf_group=$3 sf_start=${20}
  [ "$1" != Z ] && [ "$1" != X ]
}

# A twentieth of a second, where sleep knows fractions.
sf_nap() { sleep 0.05 2>/dev/null || sleep 1; }

sf_living() {
  sf_born "$sf_leader" && [ "$sf_start" != "$sf_first" ] && return 1
  for sf_process in /proc/[0-9]*; do
    sf_born "${sf_process#/proc/}" && [ "$sf_group" = "$sf_leader" ] && return 0
  done
  return 1
}

# sf_gone NAPS: waits for the group's end.
sf_gone() {
  sf_left=$1
  while sf_living; do
    [ "$sf_left" -gt 0 ] || return 1
    sf_left=$((sf_left - 1))
    sf_nap
  done
}

# sf_end GRACE CONFIRM: ends the group (TERM, grace, KILL) and sees it gone; both in naps.
sf_end() {
  sf_free
  # Written first: whoever waits for the command may answer as soon as it is gone.
  sf_living && echo SIGTERM >"$sf_run.sent" && kill -TERM "-$sf_leader" 2>/dev/null
  sf_gone "$1" && return
  echo SIGKILL >"$sf_run.sent"
  kill -KILL "-$sf_leader" 2>/dev/null
  sf_gone "$2"
}

# sf_code NAPS: waits for the exit code while somebody is there to write it.
sf_code() {
  sf_left=$1
  until [ -s "$sf_run.code" ]; do
    [ "$sf_left" -gt 0 ] || return 1
    sf_left=$((sf_left - 1))
    sf_nap
  done
}

# sf_stream FILE SIZE: its content, if it is small.
sf_stream() {
  if [ "$2" -gt 0 ] && [ "$2" -le "$sf_inline" ]; then
    base64 <"$1"
  fi
  echo .
}

# sf_answer NONCE: one line of facts, then both streams.
sf_answer() {
  sf_exit=- sf_how=itself sf_sent=-
  [ -s "$sf_run.code" ] && read -r sf_exit <"$sf_run.code"
  [ -s "$sf_run.how" ] && read -r sf_how <"$sf_run.how"
  [ -s "$sf_run.sent" ] && read -r sf_sent <"$sf_run.sent"
  sf_out=0 sf_err=0 sf_nonce=$1
  if [ -s "$sf_run.out" ] || [ -s "$sf_run.err" ]; then
    # shellcheck disable=SC2046 # fields; our directory has no blanks in its name
    set -- $(wc -c "$sf_run.out" "$sf_run.err" 2>/dev/null)
    if [ "${2-}" = "$sf_run.out" ]; then
      sf_out=$1
      shift 2
    fi
    if [ "${2-}" = "$sf_run.err" ]; then sf_err=$1; fi
  fi
  echo "sandferry $sf_nonce $sf_how $sf_exit $sf_sent $sf_out $sf_err"
  sf_stream "$sf_run.out" "$sf_out"
  sf_stream "$sf_run.err" "$sf_err"
}

case $1 in
# DIRECTORY NONCE SECONDS GRACE CONFIRM LIMIT CWD ANSWERED: runs the command, or waits for the one that runs.
start)
  set -C # the claim: whoever makes this file runs the command. A builtin, for it is on everybody's way
  if true 2>/dev/null >"$sf_run.claim"; then
    set +C
    if ! sf_keep 2>/dev/null; then
      sf_why=$(cp "/proc/$$/stat" "$sf_run.kept" 2>&1) # in words of the C library, whatever sh this is
      rm -f -- "$sf_run.kept" "$sf_run.claim"
      sf_refuse "$3" "${sf_why:-no room: No space left on device}"
    fi
    # In the foreground: a command in the background of sh ignores SIGINT and SIGQUIT for ever.
    setsid /bin/sh -c "$sf_self" sandferry supervise "$2" "$3" "$4" "$5" "$6" "$7" "$8" "$9" \
      </dev/null >/dev/null 2>&1
  elif [ ! -e "$sf_run.claim" ]; then
    sf_refuse "$3" "$(mkdir -- "$sf_run" 2>&1)"
  else
    sf_tries=100
    until [ -s "$sf_run.code" ]; do
      if read -r sf_pid sf_first 2>/dev/null <"$sf_run.supervisor" && sf_born "$sf_pid" &&
        [ "$sf_start" = "$sf_first" ]; then
        sf_tries=40
      fi
      [ "$sf_tries" -gt 0 ] || break # nobody is left who could say how it ended
      sf_tries=$((sf_tries - 1))
      sf_nap
    done
  fi
  sf_answer "$3"
  ;;
# DIRECTORY NONCE SECONDS GRACE CONFIRM LIMIT CWD ANSWERED: runs the command, ends it at its limits, records its end.
supervise)
  sf_born $$ && echo "$$ $sf_start" >"$sf_run.supervisor"
  sf_in=/dev/null
  if [ -n "${SANDFERRY_STDIN-}" ]; then
    printf %s "$SANDFERRY_STDIN" | base64 -d >"$sf_run.in" && sf_in=$sf_run.in
  elif [ -f "$2/up/$3.in" ]; then
    mv -f -- "$2/up/$3.in" "$sf_run.in" && sf_in=$sf_run.in
  fi
  unset SANDFERRY_STDIN
  (
    # shellcheck disable=SC2086 # nonces, whose answers have arrived
    [ "$9" = - ] || (cd "$2/run" && for sf_one in $9; do set -- "$@" "$sf_one".*; done && shift 9 && rm -f -- "$@")
    sf_ticks=$(($4 * 10))
    while [ "$sf_ticks" -gt 0 ]; do
      sleep 0.1 2>/dev/null || sleep 1
      [ ! -s "$sf_run.code" ] || exit
      if [ -n "$(find "$sf_run.out" "$sf_run.err" -size "+${7}c")" ]; then
        sf_free
        echo output_limit >"$sf_run.how"
        break
      fi
      sf_ticks=$((sf_ticks - 1))
    done
    # The second line of defence: whoever asked may be gone, its command may not outlive its time.
    [ "$sf_ticks" -gt 0 ] || { sf_free && echo watchdog >"$sf_run.how"; }
    read -r sf_leader sf_first <"$sf_run.leader" && sf_end "$5" "$6"
  ) &
  sf_monitor=$!
  setsid /bin/sh -c "$sf_self" sandferry begin "$2" "$3" "$8" \
    <"$sf_in" >"$sf_run.out" 2>"$sf_run.err"
  sf_exit=$?
  sf_how=
  [ ! -s "$sf_run.how" ] || read -r sf_how <"$sf_run.how"
  case $sf_how in
  output_limit | watchdog) wait "$sf_monitor" ;; # it is ending the rest of the group
  *) kill "$sf_monitor" 2>/dev/null ;;
  esac
  [ "$sf_in" = /dev/null ] || rm -f -- "$sf_in"
  sf_free
  echo "$sf_exit" >"$sf_run.code"
  ;;
# DIRECTORY NONCE CWD: becomes the command. Exits 125 when it cannot begin, 126 when the directory or the
# program cannot be used, 127 when there is no program.
begin)
  set -C # end may have been here first: then the record exists, and nothing begins
  { sf_born $$ && [ "$sf_group" = $$ ] && echo "$$ $sf_start" >"$sf_run.leader"; } 2>/dev/null || exit 125
  set +C
  sf_job=${SANDFERRY_JOB-}
  if [ -z "$sf_job" ]; then
    sf_job=$(cat -- "$2/up/$3.job") || exit 125
    rm -f -- "$2/up/$3.job"
  fi
  cd -- "$4" || exit 126
  PATH=$SANDFERRY_PATH
  unset SANDFERRY_LAUNCHER SANDFERRY_JOB SANDFERRY_PATH OLDPWD
  # shellcheck source=/dev/null
  [ ! -f "$2/env" ] || . "$2/env"
  eval "$sf_job"
  exec "$@"
  ;;
# DIRECTORY NONCE GRACE CONFIRM: ends the command and answers; one that has not begun never will.
end)
  (set -C && : >"$sf_run.claim") 2>/dev/null
  if [ ! -s "$sf_run.code" ]; then
    sf_free
    echo ended >"$sf_run.how"
    if (set -C && : >"$sf_run.leader") 2>/dev/null; then
      [ -f "$sf_run.supervisor" ] || echo 125 >"$sf_run.code"
    else
      sf_tries=40
      until read -r sf_leader sf_first 2>/dev/null <"$sf_run.leader" || [ "$sf_tries" -le 0 ]; do
        sf_tries=$((sf_tries - 1))
        sf_nap
      done
      if [ -z "${sf_first-}" ] || ! sf_end "$4" "$5"; then echo unconfirmed >"$sf_run.how"; fi
    fi
    sf_code 40
  fi
  sf_answer "$3"
  ;;
# DIRECTORY PREFIX GRACE CONFIRM: ends every command whose nonce begins so; exits 4 when one cannot be confirmed.
end_all)
  for sf_one in "$2/run/$3"*.claim; do
    sf_one=${sf_one%.claim}
    if [ -e "$sf_one.claim" ] && [ ! -s "$sf_one.code" ]; then
      /bin/sh -c "$sf_self" sandferry end "$2" "${sf_one##*/}" "$4" "$5" >/dev/null
      sf_how=
      read -r sf_how 2>/dev/null <"$sf_one.how"
      [ "$sf_how" != unconfirmed ] || exit 4
    fi
  done
  ;;
esac
