# sbx_resolve PATH: sets sbx_path. `~` and relative names are meant in the account's home, whatever folder the shell is in.
# shellcheck disable=SC2088 # the tilde is a text here
sbx_resolve() {
  sbx_path=$1
  case $sbx_path in
    '~') sbx_path=${HOME:-/} ;;
    '~/'*) sbx_path=${HOME:-}/${sbx_path#??} ;;
    /*) ;;
    *) sbx_path=${HOME:-}/$sbx_path ;;
  esac
  while :; do
    case $sbx_path in
      /) return ;;
      */) sbx_path=${sbx_path%/} ;;
      *) return ;;
    esac
  done
}
