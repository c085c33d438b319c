#!/bin/sh
# squeue of a practice host: the described jobs, by the fields of -o.
data=${0%/*}/../lib/lab/squeue
head=yes form='%.18i %.9P %.8u %.8T %R'
while [ $# -gt 0 ]; do
  case $1 in
  -h | --noheader) head='' ;;
  -o | --format) shift; form=$1 ;;
  --format=*) form=${1#*=} ;;
  -w | --nodelist) shift ;;
  esac
  shift
done
awk -F '\t' -v head="$head" -v form="$form" '
  function line(id, user, state, gres, partition, node, out) {
    out = form
    gsub(/%\.?[0-9]*i/, id, out)
    gsub(/%\.?[0-9]*u/, user, out)
    gsub(/%\.?[0-9]*[tT]/, state, out)
    gsub(/%\.?[0-9]*b/, gres, out)
    gsub(/%\.?[0-9]*P/, partition, out)
    gsub(/%\.?[0-9]*[RN]/, node, out)
    return out
  }
  BEGIN { if (head) print line("JOBID", "USER", "STATE", "TRES_PER_NODE", "PARTITION", "NODELIST(REASON)") }
  { print line($1, $2, $3, $4, $5, $6) }' "$data/jobs"
