# Extracts a tar stream into $1. -o: the account here owns what arrives, also where it is root; both GNU tar and busybox
# know it by this letter. (A busybox that is not root gives up setuid bits, and the modes of read-only directories.)
# Not by -C: GNU tar takes a backslash in its word for an escape.
(cd -P -- "$1" && exec tar -x -p -o -f -) && exit
sbx_status=$?
# A disk that fills up within a block makes GNU tar say "Wrote only 4608 of 10240 bytes" and not why. Another megabyte
# makes the host say it.
dd if=/dev/zero of="$1/.sbx-space" bs=65536 count=16 2>&1 >/dev/null | grep -v records >&2
rm -f "$1/.sbx-space"
exit "$sbx_status"
