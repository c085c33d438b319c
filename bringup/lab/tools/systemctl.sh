#!/bin/sh
# systemctl of a practice host: tells of the described services, changes nothing.
data=${0%/*}/../lib/lab/systemctl
verb='' only='' plain='' names=''

while [ $# -gt 0 ]; do
  case $1 in
  -p | --property) shift; only="$only,$1" ;;
  -p*) only="$only,${1#-p}" ;;
  --property=*) only="$only,${1#*=}" ;;
  --value) plain=yes ;;
  -*) ;;
  *) if [ -z "$verb" ]; then verb=$1; else names="$names $1"; fi ;;
  esac
  shift
done

unit() { case $1 in *.*) printf '%s' "$1" ;; *) printf '%s.service' "$1" ;; esac; }

show() {
  if [ -f "$data/$1/show" ]; then cat "$data/$1/show"; else
    printf '%s\n' Result=success NRestarts=0 "Id=$1" "Names=$1" "Description=$1" \
      LoadState=not-found ActiveState=inactive SubState=dead UnitFileState=
  fi | awk -v only="$only," -v plain="$plain" '
    { key = $0; sub(/=.*/, "", key) }
    only != "," && !index(only, "," key ",") { next }
    plain { sub(/^[^=]*=/, "") }
    { print }'
}

property() { sed -n "s/^$2=//p" "$data/$1/show" 2>/dev/null; }

case $verb in
show)
  first=yes
  for name in $names; do
    [ "$first" ] || echo
    first=
    show "$(unit "$name")"
  done
  ;;
is-active | is-failed | is-enabled)
  code=4
  for name in $names; do
    case $verb in
    is-enabled) state=$(property "$(unit "$name")" UnitFileState) wanted=enabled ;;
    is-failed) state=$(property "$(unit "$name")" ActiveState) wanted=failed ;;
    *) state=$(property "$(unit "$name")" ActiveState) wanted=active ;;
    esac
    printf '%s\n' "${state:-inactive}"
    if [ "$state" = "$wanted" ]; then code=0; elif [ "$state" ] && [ $code != 0 ]; then code=3; fi
  done
  exit $code
  ;;
status)
  code=0
  for name in $names; do
    full=$(unit "$name")
    if [ ! -f "$data/$full/status" ]; then
      printf 'Unit %s could not be found.\n' "$full" >&2
      exit 4
    fi
    cat "$data/$full/status"
    [ "$(property "$full" ActiveState)" = active ] || code=3
  done
  exit $code
  ;;
is-system-running)
  if grep -q '^ActiveState=failed' "$data"/*/show 2>/dev/null; then echo degraded; exit 1; fi
  echo running
  ;;
list-units | '')
  for file in "$data"/*/show; do
    name=${file%/show}
    name=${name##*/}
    printf '  %-32s loaded %-8s %-8s %s\n' "$name" "$(property "$name" ActiveState)" \
      "$(property "$name" SubState)" "$(property "$name" Description)"
  done
  ;;
*)
  printf "Failed to %s%s: services of a practice host are described, and do not change.\n" "$verb" "$names" >&2
  exit 1
  ;;
esac
