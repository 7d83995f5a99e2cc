# Somebody's script: how long it may run, and the end of what it writes. Definitions.

# sbx_keep FOLDER BYTES: makes pipes there. What is written to `in` from now on is in `kept` after sbx_kept, at most so many
# bytes of it: the rest goes over no wire. Two pipes with a reader between them: a process that the script left behind holds
# the first one open for ever, and the end of the reader ends the second.
sbx_keep() {
  mkfifo -- "$1/in" "$1/out" || return 1
  tail -c "$2" <"$1/out" >"$1/kept" 2>/dev/null &
  sbx_tail=$!
  cat <"$1/in" >"$1/out" 2>/dev/null &
  sbx_reader=$!
}

# Waits for the rest, but not for who was left behind.
sbx_kept() {
  (sleep 1; kill -TERM "$sbx_reader") </dev/null >/dev/null 2>&1 &
  sbx_nap=$!
  wait "$sbx_reader" 2>/dev/null
  kill -TERM "$sbx_nap" 2>/dev/null
  wait "$sbx_tail" 2>/dev/null
}

# sbx_limit SECONDS: sends this shell USR1 then. This shell is a child of the one that `$$` names.
sbx_limit() {
  read -r sbx_me sbx_rest </proc/self/stat
  (
    trap 'kill -TERM "$sbx_nap"; exit' TERM
    sleep "$1" &
    sbx_nap=$!
    wait "$sbx_nap" && kill -USR1 "$sbx_me"
  ) </dev/null >/dev/null 2>&1 &
  sbx_clock=$!
}

# sbx_await PID: its exit status is in sbx_status. It is ended (sbx_end_it, of the caller) when its time is over (sbx_late) or our
# side is gone (sbx_gone). What a signal ended may have left something that goes on; that is ended, too.
sbx_await() {
  while :; do
    wait "$1"
    sbx_status=$?
    # A signal that means nothing to us interrupts `wait` as well.
    [ -z "$sbx_late$sbx_gone" ] && kill -0 "$1" 2>/dev/null || break
  done
  kill -TERM "$sbx_clock" 2>/dev/null
  [ -n "$sbx_late$sbx_gone" ] || [ "$sbx_status" -gt 128 ] || return 0
  sbx_end_it TERM
  sbx_tries=20
  while [ "$sbx_tries" -gt 0 ] && sbx_goes_on; do
    sleep 0.1 2>/dev/null || sleep 1
    sbx_tries=$((sbx_tries - 1))
  done
  sbx_end_it KILL
  [ -z "$sbx_late$sbx_gone" ] || { wait "$1" 2>/dev/null; sbx_status=$?; }
}
sbx_late='' sbx_gone=''
trap 'sbx_late=yes' USR1
# PIPE: what a shell says of a process that was ended may be the first that nobody reads.
trap 'sbx_gone=yes' HUP TERM PIPE

# sbx_tell FOLDER: how it ended and what it wrote, for who is still there to hear it; nothing of it stays.
sbx_tell() {
  [ -n "$sbx_gone" ] || {
    sbx_kept
    [ -z "$sbx_late" ] || echo late=yes
    printf 'status=%s\noutput=\n' "$sbx_status"
    cat "$1/kept"
  }
  rm -rf -- "$1"
}
