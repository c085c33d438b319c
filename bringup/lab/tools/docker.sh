#!/bin/sh
# docker of a practice host: answers from the files that its description made, changes nothing.
data=${0%/*}/../lib/lab/docker

fail() {
  printf '%s\n' "$2" >&2
  exit "$1"
}

# Prints a document by a template of {{.A.B}} and {{json .A.B}}.
render() {
  awk -F '\t' -v form="$1" '
    { json[$1] = $2; plain[$1] = $3 }
    END {
      while (match(form, /\{\{[^}]*\}\}/)) {
        out = out substr(form, 1, RSTART - 1)
        word = substr(form, RSTART + 2, RLENGTH - 4)
        form = substr(form, RSTART + RLENGTH)
        gsub(/^ +| +$/, "", word)
        as_json = sub(/^json +/, "", word)
        if (!(word in json)) {
          printf "template: :1:2: executing \"\" at <%s>: map has no entry for key\n", word > "/dev/stderr"
          exit 64
        }
        out = out (as_json ? json[word] : plain[word])
      }
      print out form
    }' "$2"
}

# Prints the value of one path of a document.
value() { awk -F '\t' -v path="$1" '$1 == path { print $3 }' "$2"; }

# Prints the file of an image or container that a name, tag or ID means.
find_one() {
  for file in "$data/$1"/*; do
    [ -f "$file" ] || continue
    case ${file##*/} in "${2#sha256:}"*) printf '%s\n' "$file"; return ;; esac
    case $(value "$3" "$file") in *"[$2]"* | *"[$2:latest]"* | "/$2") printf '%s\n' "$file"; return ;; esac
  done
  return 1
}

inspect() {
  kind=$1 found='' missing=''
  shift
  form=
  names=
  while [ $# -gt 0 ]; do
    case $1 in
    -f | --format) shift; form=$1 ;;
    --format=*) form=${1#*=} ;;
    --type) shift; kind=$1 ;;
    --type=*) kind=${1#*=} ;;
    -*) ;;
    *) names="$names $1" ;;
    esac
    shift
  done
  for name in $names; do
    file=
    case $kind in
    image) file=$(find_one image "$name" .RepoTags) ;;
    container) file=$(find_one container "$name" .Name) ;;
    *) file=$(find_one container "$name" .Name) || file=$(find_one image "$name" .RepoTags) ;;
    esac
    if [ -z "$file" ]; then missing="$missing $name"
    elif [ -n "$form" ]; then render "$form" "$file" || exit
    else found="$found${found:+,}$(awk -F '\t' '$1 == "." { print $2 }' "$file")"; fi
  done
  [ -n "$form" ] || printf '[%s]\n' "$found"
  [ -z "$missing" ] || fail 1 "Error response from daemon: No such ${kind:-object}:$missing"
  exit 0
}

images() {
  [ "$quiet$form" ] || echo 'REPOSITORY         TAG             IMAGE ID       CREATED       SIZE'
  for file in "$data/image"/*; do
    [ -f "$file" ] || continue
    id=${file##*/}
    [ -n "$full" ] || id=$(printf %.12s "$id")
    reference=$(value .RepoTags "$file")
    reference=${reference#[}
    reference=${reference%]}
    gib=$(awk -F '\t' '$1 == ".Size" { printf "%.1fGB", $3 / 1e9 }' "$file")
    tag=${reference##*:} repository=${reference%:*}
    if [ -n "$quiet" ]; then echo "$id"
    elif [ -n "$form" ]; then
      printf '%s\n' "$form" | sed "s|{{ *\.Repository *}}|$repository|g; s|{{ *\.Tag *}}|$tag|g
        s|{{ *\.ID *}}|$id|g; s|{{ *\.Size *}}|$gib|g"
    else printf '%-18s %-15s %-14s 5 days ago    %s\n' "$repository" "$tag" "$id" "$gib"; fi
  done
}

containers() {
  [ "$quiet$form" ] || echo 'CONTAINER ID   IMAGE     COMMAND   CREATED   STATUS    PORTS     NAMES'
  for file in "$data/container"/*; do
    [ -f "$file" ] || continue
    state=$(value .State.Status "$file")
    [ "$all" ] || [ "$state" = running ] || continue
    id=${file##*/}
    [ -n "$full" ] || id=$(printf %.12s "$id")
    image=$(value .Config.Image "$file") name=$(value .Name "$file")
    if [ -n "$quiet" ]; then echo "$id"
    elif [ -n "$form" ]; then
      printf '%s\n' "$form" | sed "s|{{ *\.ID *}}|$id|g; s|{{ *\.Image *}}|$image|g
        s|{{ *\.Names *}}|${name#/}|g; s|{{ *\.State *}}|$state|g; s|{{ *\.Status *}}|$state|g"
    else printf '%s   %s   "bash"   5 days ago   %s             %s\n' "$id" "$image" "$state" "${name#/}"; fi
  done
}

options() {
  form='' quiet='' full='' all=''
  while [ $# -gt 0 ]; do
    case $1 in
    -f | --format) shift; form=$1 ;;
    --format=*) form=${1#*=} ;;
    -q | --quiet) quiet=yes ;;
    --no-trunc) full=yes ;;
    -a | --all) all=yes ;;
    -aq | -qa) all=yes quiet=yes ;;
    esac
    shift
  done
}

case $1 in -v | --version) printf 'Docker version %s, build 0000000\n' "$(value .Server.Version "$data/version")"; exit ;; esac
command=$1
[ $# -eq 0 ] || shift
case $command in
image | container)
  kind=$command command=$1
  [ $# -eq 0 ] || shift
  case $kind/$command in
  */inspect) inspect "$kind" "$@" ;;
  image/ls | image/list) command=images ;;
  container/ls | container/list | container/ps) command='ps' ;;
  esac
  ;;
esac
options "$@"
case $command in
info) if [ -n "$form" ]; then render "$form" "$data/info"; else cat "$data/info.txt"; fi ;;
version)
  if [ -n "$form" ]; then render "$form" "$data/version"
  else printf 'Client:\n Version:           %s\n\nServer:\n Engine:\n  Version:          %s\n' \
    "$(value .Client.Version "$data/version")" "$(value .Server.Version "$data/version")"; fi
  ;;
inspect) inspect '' "$@" ;;
images) images ;;
ps) containers ;;
*) fail 125 "docker: Error response from daemon: a practice host does not do '$command'." ;;
esac
