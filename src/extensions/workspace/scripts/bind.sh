# How a container gets a folder or file of this host. Definitions.

# sbx_bind SOURCE TARGET OPTIONS: what `--mount` takes for it, whatever is in the paths (`-v` would end one at a colon). The
# options are `,readonly`, or nothing.
sbx_bind() {
  printf 'type=bind,"source=%s","target=%s"%s' "$(sbx_doubled "$1")" "$(sbx_doubled "$2")" "$3"
}
# The words are those of a line of CSV: a quote within quotes is two.
sbx_doubled() { printf '%s' "$1" | sed 's/"/""/g'; }
