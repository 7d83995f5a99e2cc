# Sent once to every shell of ours, before its first request. POSIX sh and a sleep; no setsid, no setpgid.
#
# sshd gives each session a process group and a session of its own, and a local shell is spawned in a new group, so
# "group 0" is what we started and nothing else. The shell reads its requests from descriptor 0; while a request runs,
# nothing is sent, so whoever reads descriptor 3 (the same pipe) wakes up when our side is gone, and only then.
exec 3<&0
# sbx_end (end.sh) signals the session too: a `timeout` or a job-control shell has a group of its own but stays in the
# session. The session is ended only where this shell leads it, which is never so on the console's own machine. Nobody is
# signalled twice: the second time would end what a script does about the first.
sbx_watch() {
  # Here and not at the call: a shell keeps a copy of what it redirects for a function, and holds the output open.
  exec </dev/null >/dev/null 2>&1
  # An account's TMOUT would end the read below, and with it what runs.
  sbx_prelude
  trap '' TERM HUP INT
  read -r sbx_rest <&3
  sbx_end TERM
  sleep 5
  sbx_end KILL
}
