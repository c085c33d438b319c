#!/bin/sh
# df of a practice host: the described disks for its own folders.
data=${0%/*}/../lib/lab/df
root=$(cd "${0%/*}/../.." && pwd -P)
path='' kind='' human=''
for word; do
  case $word in
  -*) case $word in *T*) kind=yes ;; esac; case $word in *h*) human=yes ;; esac ;;
  *) path=$word ;;
  esac
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
awk -v path="$full" -v kind="$kind" -v human="$human" '
  function size(kib, unit) {
    if (!human) return sprintf("%d", kib)
    for (unit = 1; kib >= 1000 && unit < 4; unit++) kib /= 1024
    return sprintf(kib < 10 ? "%.1f%s" : "%.0f%s", kib, substr("KMGT", unit, 1))
  }
  { at = $2 == "/" ? "/" : $2 "/" }
  index(path "/", at) == 1 && length(at) > length(best) { best = at; line = $0 }
  END {
    split(line, f, " ")
    t = kind ? " " f[3] : ""
    head = human ? "Size  Used Avail Use%%" : "1024-blocks       Used  Available Capacity"
    printf "Filesystem%s     " head " Mounted on\n", kind ? " Type" : ""
    printf "%s%s %s %s %s %d%% %s\n", f[1], t, size(f[4]), size(f[5]), size(f[4] - f[5]), f[5] * 100 / f[4], f[2]
  }' "$data/disks"
