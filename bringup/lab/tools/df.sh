#!/bin/sh
# df of a practice host: the described disks for its own folders.
data=${0%/*}/../lib/lab/df
root=$(cd "${0%/*}/../.." && pwd -P)
path='' kind=''
for word; do
  case $word in -*T*) kind=yes ;; -*) ;; *) path=$word ;; esac
done
full=$(readlink -f -- "${path:-/}") || {
  printf "df: %s: No such file or directory\n" "$path" >&2
  exit 1
}
case $full in
"$root") full=/ ;;
"$root"/*) full=${full#"$root"} ;;
*) [ -z "$path" ] || [ "$path" = / ] || full=/ ;;
esac
awk -v path="$full" -v kind="$kind" '
  { at = $2 == "/" ? "/" : $2 "/" }
  index(path "/", at) == 1 && length(at) > length(best) { best = at; line = $0 }
  END {
    split(line, f, " ")
    t = kind ? " " f[3] : ""
    printf "Filesystem%s     1024-blocks       Used  Available Capacity Mounted on\n", kind ? " Type" : ""
    printf "%s%s %d %d %d %d%% %s\n", f[1], t, f[4], f[5], f[4] - f[5], f[5] * 100 / f[4], f[2]
  }' "$data/disks"
