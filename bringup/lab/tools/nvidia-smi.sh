#!/bin/sh
# nvidia-smi of a practice host: answers from the files that its description made.
LC_ALL=C
export LC_ALL
data=${0%/*}/../lib/lab/nvidia-smi

fail() {
  code=$1
  shift
  printf '%s\n' "$@"
  exit "$code"
}

stamp() { sed "s|@NOW@|$(date '+%a %b %e %H:%M:%S %Y')|" "$1"; }

# Prints the indices of the GPUs that -i names; all without -i.
chosen() {
  if [ -z "$select" ]; then
    cut -f 1 "$data/names"
    return
  fi
  for name in $(printf '%s' "$select" | tr ',' ' '); do
    awk -F '\t' -v name="$name" '
      toupper(name) == toupper($1) || toupper(name) == toupper($2) ||
      toupper(name) == toupper($3) || "0000" toupper(name) == toupper($3) { print $1; found = 1 }
      END { exit !found }' "$data/names" || return 1
  done
}

query() {
  [ -n "$format" ] || fail 2 'Invalid combination of input arguments. Please run '"'nvidia-smi -h'"' for help.' ''
  awk -F '\t' -v want="$fields" -v form=",$format," -v gpus="$gpus" \
    -v now="$(date '+%Y/%m/%d %H:%M:%S.000')" '
    {
      n = split($1, names, " ")
      for (i = 1; i <= n; i++) { row[names[i]] = NR }
      head[NR] = names[1]
      unit[NR] = $2
      for (i = 3; i <= NF; i++) value[NR, i - 3] = $i
    }
    END {
      n = split(want, asked, ",")
      for (i = 1; i <= n; i++) {
        gsub(/^ +| +$/, "", asked[i])
        if (!(asked[i] in row)) {
          printf "Field \"%s\" is not a valid field to query.\n\n", asked[i]
          exit 2
        }
      }
      if (form !~ /,noheader,/) {
        for (i = 1; i <= n; i++) {
          r = row[asked[i]]
          printf "%s%s%s", (i > 1 ? ", " : ""), head[r], (unit[r] == "" ? "" : " [" unit[r] "]")
        }
        printf "\n"
      }
      count = split(gpus, list, " ")
      for (g = 1; g <= count; g++) {
        for (i = 1; i <= n; i++) {
          r = row[asked[i]]
          v = value[r, list[g]]
          if (v == "@NOW@") v = now
          if (form ~ /,nounits,/ && unit[r] != "") sub(" " unit[r] "$", "", v)
          printf "%s%s", (i > 1 ? ", " : ""), v
        }
        printf "\n"
      }
    }' "$data/query"
}

# Prints the parts of a text report that -d names.
display() {
  awk -v want=",$(printf '%s' "$1" | tr '[:lower:]' '[:upper:]')," '
    BEGIN {
      part["MEMORY"] = "FB Memory Usage|BAR1 Memory Usage|Conf Compute Protected Memory Usage"
      part["UTILIZATION"] = "Utilization"
      part["ECC"] = "ECC Mode|ECC Errors"
      part["TEMPERATURE"] = "Temperature"
      part["POWER"] = "GPU Power Readings|GPU Memory Power Readings|Module Power Readings"
      part["CLOCK"] = "Clocks|Applications Clocks|Default Applications Clocks|Deferred Clocks|Max Clocks|Max Customer Boost Clocks|Clock Policy"
      part["COMPUTE"] = "Compute Mode"
      part["PIDS"] = "Processes"
      part["PERFORMANCE"] = "Performance State|Clocks Event Reasons|Clocks Event Reasons Counters|Sparse Operation Mode"
      part["PAGE_RETIREMENT"] = "Retired Pages"
      part["ROW_REMAPPER"] = "Remapped Rows"
      part["FABRIC"] = "Fabric"
      for (name in part) if (index(want, "," name ",")) {
        n = split(part[name], labels, "|")
        for (i = 1; i <= n; i++) shown[labels[i]] = 1
      }
    }
    /^GPU / { print; next }
    /^    [^ ]/ { label = $0; sub(/^    /, "", label); sub(/ *:.*/, "", label); on = label in shown }
    /^$/ { print; next }
    on { print }' "$2"
}

topo() {
  case $* in
  -m | --matrix) cat "$data/topo-m" ;;
  '-p2p '[rwnap] | '-p2p p'*) cat "$data/topo-p2p" ;;
  *) fail 2 'Invalid combination of input arguments. Please run '"'nvidia-smi topo -h'"' for help.' ;;
  esac
}

nvlink() {
  only=
  for word; do
    case $word in
    -s | --status) ;;
    -i) only=next ;;
    *) [ "$only" = next ] || fail 2 "Unrecognized option: '$word'"; only=$word ;;
    esac
  done
  awk -v only="$only" '/^GPU / { on = only == "" || $2 == only ":" } on { print }' "$data/nvlink"
}

mode=table select='' fields='' format='' parts='' xml=''
while [ $# -gt 0 ]; do
  case $1 in
  topo) shift; topo "$@"; exit ;;
  nvlink) shift; nvlink "$@"; exit ;;
  -L | --list-gpus) mode=list ;;
  -q | --query) mode=query ;;
  -x | --xml-format) xml=yes ;;
  -i | --id) shift; select=$1 ;;
  --id=*) select=${1#*=} ;;
  -d | --display) shift; parts=$1 ;;
  --display=*) parts=${1#*=} ;;
  --query-gpu=*) mode=fields fields=${1#*=} ;;
  --query-compute-apps=*) mode=apps fields=${1#*=} ;;
  --format=*) format=${1#*=} ;;
  --version) cat "$data/version"; exit ;;
  *) fail 2 "Invalid combination of input arguments. Please run 'nvidia-smi -h' for help." '' ;;
  esac
  shift
done

gpus=$(chosen) || fail 6 'No devices were found'
gpus=$(printf '%s' "$gpus" | tr '\n' ' ')
case $mode$xml in
table*) stamp "$data/table" ;;
list*) for gpu in $gpus; do grep "^GPU $gpu:" "$data/list"; done ;;
fields*) query ;;
apps*) case ",$format," in *,noheader,*) ;; *) printf '%s\n' "$fields" | sed 's/,/, /g' ;; esac ;;
queryyes)
  stamp "$data/q-x.head"
  for gpu in $gpus; do cat "$data/q-x.$gpu"; done
  cat "$data/q-x.tail"
  ;;
query)
  stamp "$data/q.head"
  for gpu in $gpus; do
    if [ -n "$parts" ]; then display "$parts" "$data/q.$gpu"; else cat "$data/q.$gpu"; fi
  done
  ;;
esac
