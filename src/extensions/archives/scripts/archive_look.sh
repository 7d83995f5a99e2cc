# What is there of an archive. Parameters: the root, the snapshot's id, the owners (blanks between), the expected host, how
# much of its manifest is read.
sbx_prove_host "$4"
sbx_archives "$1" "$2" "$3" && sbx_enter "$2"
sbx_there=$?
sbx_say path "$sbx_at"
[ "$sbx_there" = 0 ] || { echo there=no; exit 0; }
sbx_words=$(sbx_hidden ./manifest.json) && sbx_fail closed "$sbx_words"
if [ -f manifest.json ] && [ ! -L manifest.json ]; then
  printf 'whose=%s\nmanifest=\n' "$(sbx_whose . "$2" "$3")"
  # All of it: a text, and sbx_say keeps little of one.
  head -c "$5" manifest.json | sed 's/^/ /'
  echo
fi
sbx_name=$(sbx_file)
if [ -n "$sbx_name" ]; then
  sbx_words=$(sbx_hidden "./$sbx_name") && sbx_fail closed "$sbx_words"
  printf 'file=%s\nsize=%s\n' "$sbx_name" "$(sbx_size "$sbx_name")"
fi
echo there=yes
