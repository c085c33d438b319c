#!/bin/sh
# stat of a practice host: this machine's, but that file systems are the described ones.
own=${0%/*}
case " $* " in
*' -f '*%T*) ;;
*)
  for folder in $(printf '%s' "$PATH" | tr ':' ' '); do
    [ "$folder" -ef "$own" ] || [ ! -x "$folder/stat" ] || exec "$folder/stat" "$@"
  done
  exit 127
  ;;
esac
for path; do :; done
kind=$("$own/df" -PT "$path" | awk 'NR == 2 { print $2 }')
[ -n "$kind" ] || exit 1
case $kind in ext4) echo ext2/ext3 ;; *) echo "$kind" ;; esac
