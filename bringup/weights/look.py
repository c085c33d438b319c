"""The one question about a model folder: files, index, headers, samples, parts, room, programs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from ..core.reading import Known, Reading, Unknown
from ..core.script import Ask, Section
from ..core.words import HostPath, quote
from ..probes.text import natural, rows, space, whole
from .folder import PARTS, WEIGHTS, File, Folder, Ground, Header, Seat

NAME = "weights"
LOOK_S = 300
SMALL_KIB = 65536

# Bits of one element (https://docs.rs/safetensors, Dtype). A type that is not listed is not judged.
_BITS = (
    "BOOL 8 U8 8 I8 8 F8_E5M2 8 F8_E4M3 8 F8_E8M0 8 F4 4 F6_E2M3 6 F6_E3M2 6 I16 16 U16 16 "
    "F16 16 BF16 16 I32 32 U32 32 F32 32 I64 64 U64 64 F64 64 C64 64"
)

# One line a tensor goes in: the header's braces become line ends.
_AWK = r"""
BEGIN {
  n = split("__BITS__", w, " ")
  for (i = 1; i < n; i += 2) bits[w[i]] = w[i + 1]
}
function list(key, s) {
  if (!match($0, "\"" key "\"[ \t]*:[ \t]*\\[[^]]*\\]")) return "none"
  s = substr($0, RSTART, RLENGTH)
  sub(/^[^[]*\[/, "", s)
  sub(/\]$/, "", s)
  return s
}
/"data_offsets"/ {
  k = split(list("data_offsets"), o, ",")
  shape = list("shape")
  if (k != 2 || shape == "none" || !match($0, /"dtype"[ \t]*:[ \t]*"[A-Z0-9_]+"/)) { bad++; next }
  type = substr($0, RSTART, RLENGTH)
  sub(/"$/, "", type)
  sub(/.*"/, "", type)
  b = bits[type]
  m = split(shape, s, ",")
  for (i = 1; i <= m; i++) b *= s[i]
  count++
  sum += o[2] - o[1]
  if (o[2] > end) end = o[2] + 0
  if ((type in bits) && b / 8 != o[2] - o[1]) bad++
}
END { printf "%.0f\t%.0f\t%.0f\t%.0f\n", count, end, sum, bad }
"""

_LOOK = r"""
p=__SHOWN__ d=__PLACE__
tab=$(printf '\t')
row() { printf '%s' "$1"; shift; printf '\t%s' "$@"; printf '\n'; }
ground() {
  near=$1
  while [ ! -d "$near" ]; do near=${near%/*}; near=${near:-/}; done
  row disk "$(df -Pk "$near" 2>/dev/null | tail -n 1)"
  row kind "$(stat -f -c %T "$near" 2>/dev/null)"
  [ -w "$near" ] && row write yes || row write no
  for t in ssh sshd; do row program "$t" "$(command -v "$t" 2>/dev/null)"; done
  row user "$(id -un)"
  for f in "$R"/sys/class/net/*/speed; do
    v=; { read -r v <"$f"; } 2>/dev/null
    f=${f%/speed}
    [ -z "$v" ] || row line "${f##*/}" "$v"
  done
}
if [ ! -d "$d/" ]; then
  if [ -e "$d" ] || [ -L "$d" ]; then row seat other "is no folder"
  else row seat absent "does not exist"; fi
  ground "$d"
  row end "of $p"
  exit 0
fi
cd "$d/" 2>/dev/null || { row seat other "cannot be entered"; ground /; row end "of $p"; exit 0; }
real=$(pwd -P)
root=$(cd "$R/" && pwd -P)
row seat folder "${real#"${root%/}"}"
for f in *.safetensors.index.json; do
  [ -f "$f" ] || continue
  [ ! -f model.safetensors.index.json ] || f=model.safetensors.index.json
  row index "$f"
  tr ',{}' '\n\n\n' <"$f" | sed -n \
    -e 's/^.*: *"\([^"]*\.safetensors\)".*$/shard	\1/p' \
    -e 's/^.*"total_size" *: *\([0-9][0-9]*\).*$/total	\1/p' | sort -u
  break
done
found=$(find -L . -maxdepth 4 -name '.?*' ! -name . -prune -o -name __pycache__ -prune -o \
  -type f -print 2>/dev/null | sed 's,^\./,,' | grep -v "$tab" | sort)
head_of() {
  n=$(od -An -v -tu1 -N8 "$1" | awk '{ for (i = 1; i <= NF; i++) b[++k] = $i }
    END { if (k < 8) exit; for (i = 8; i > 0; i--) s = s * 256 + b[i]; printf "%.0f\n", s }')
  case $n in
  '') row head "$1" "no header" ;;
  ?????????*) row head "$1" "a header of $n bytes" ;;
  *) row head "$1" "$n" "$(tail -c +9 -- "$1" | head -c "$n" | tr '{}' '\n\n' | awk __AWK__)" ;;
  esac
}
sample() {
  h=$({ head -c 262144 -- "$1"; dd if="$1" bs=65536 skip=$(($2 / 131072)) count=1 2>/dev/null
    tail -c 65536 -- "$1"; } 2>/dev/null | sha256sum)
  row sample "$1" "${h%% *}"
}
printf '%s\n' "$found" | while IFS= read -r f; do
  [ -n "$f" ] || continue
  s=$(stat -L -c %s -- "$f") || continue
  row file "$s" "$f"
  [ ! -L "$f" ] || row link "$f" "$(readlink "$f")"
  m=.cache/huggingface/download/$f.metadata
  if [ -f "$m" ]; then { read -r commit; read -r tag; } <"$m"; row hub "$f" "$commit" "$tag"; fi
  case $f in
  *.safetensors) head_of "$f"; sample "$f" "$s" ;;
  __WEIGHTS__) sample "$f" "$s" ;;
  *) [ "$s" -gt $((__SMALL__ * 1024)) ] && sample "$f" "$s" ||
    { h=$(sha256sum <"$f") && row sum "$f" "${h%% *}"; } ;;
  esac
done
for f in SHA256SUMS sha256sums.txt SHA256SUMS.txt; do
  [ ! -f "$f" ] || sed -n 's/^\([0-9a-f]\{64\}\)[ *]\{1,2\}\(.*\)$/told	\2	\1/p' "$f"
done
for f in __PARTS__/*.part; do
  [ ! -f "$f" ] || { k=${f##*/}; row part "${k%.part}" "$(stat -c %s "$f")"; }
done
ground "$real"
row end "of $p"
"""


def look_ask(path: str) -> Ask:
    """Return the question for one model folder. It reads small files and headers, not weights."""
    text = _LOOK
    for word, value in (
        ("__SHOWN__", quote(path)),
        ("__PLACE__", quote(HostPath(path))),
        ("__WEIGHTS__", " | ".join(f"*{end}" for end in WEIGHTS)),
        ("__SMALL__", str(SMALL_KIB)),
        ("__PARTS__", PARTS),
        ("__AWK__", quote(_AWK.replace("__BITS__", _BITS))),
    ):
        text = text.replace(word, value)
    return Ask(NAME, text, LOOK_S)


def parse_look(section: Section, path: str) -> Reading[Folder]:
    """Return what lies at a path; unknown where the answer was cut off or makes no sense."""
    if section.trouble or section.exit != 0:
        return Unknown(section.trouble or f"exit {section.exit}", section.first)
    told = tuple(rows(section.text))
    seat = next((row for row in told if row[0] == "seat"), ())
    if not told or told[-1] != ("end", f"of {path}") or len(seat) < 3:
        return Unknown("the list of the folder was cut off", section.first)
    ground = _ground(told)
    if seat[1] != "folder":
        return Known(Folder(path, Seat(seat[1]), ground=ground, why=seat[2]), " ".join(seat[1:]))
    files = _files(told)
    folder = Folder(
        path,
        Seat.FOLDER,
        seat[2],
        files,
        _first(told, "index"),
        tuple(sorted({row[1] for row in told if row[0] == "shard"}, key=natural)),
        whole(_first(told, "total")),
        _revision(told, seat[2]),
        {row[1]: int(row[2]) for row in told if row[0] == "part" and whole(row[-1]) is not None},
        ground,
    )
    return Known(
        folder, f"{path}: {len(files)} files, {folder.weight_bytes / 1e9:.1f} GB of weights"
    )


def _first(told: Iterable[tuple[str, ...]], key: str) -> str:
    return next((row[1] for row in told if row[0] == key), "")


def _files(told: tuple[tuple[str, ...], ...]) -> Mapping[str, File]:
    files: dict[str, File] = {}
    for row in told:
        if row[0] == "file" and len(row) == 3 and whole(row[1]) is not None:
            files[row[2]] = File(row[2], int(row[1]))
    for key, name, *rest in told:
        if name in files and rest:
            files[name] = _more(files[name], key, rest)
    return files


_SHA256 = re.compile(r"[0-9a-f]{64}")


def _more(file: File, key: str, rest: list[str]) -> File:
    """Return a file with one more thing that a row tells of it."""
    last = rest[-1]
    match key:
        case "sum":
            return replace(file, sum=last)
        case "sample":
            return replace(file, sample=last)
        case "head":
            return replace(file, header=_header(rest))
        case "told" | "hub" | "link":
            bare = last.strip('"').rpartition("/")[2]
            return replace(file, told=bare) if _SHA256.fullmatch(bare) else file
    return file


def _header(rest: list[str]) -> Header:
    numbers = [whole(text) for text in rest]
    if len(numbers) != 5 or None in numbers:
        return Header(0, 0, 0, 0, trouble=rest[0] if len(rest) == 1 else "a header that is no list")
    length, tensors, end, total, bad = (number or 0 for number in numbers)
    return Header(length, tensors, end, total, bad, "" if tensors else "a header without tensors")


def _revision(told: Iterable[tuple[str, ...]], real: str) -> str:
    """Return the commit that a hub's cache or its metadata names; "" where they name none or many.

    https://huggingface.co/docs/huggingface_hub/guides/manage-cache
    """
    snapshot = re.search(r"/snapshots/([0-9a-f]{40})(?:/|$)", real)
    commits = {row[2] for row in told if row[0] == "hub" and len(row) > 2}
    if snapshot:
        return snapshot[1]
    return commits.pop() if len(commits) == 1 else ""


def _ground(told: tuple[tuple[str, ...], ...]) -> Ground:
    disk = space(f" {_first(told, 'disk')}")
    programs = {row[1]: row[2] for row in told if row[0] == "program" and len(row) > 2}
    lines = {
        row[1]: speed / 8
        for row in told
        if row[0] == "line" and (speed := whole(row[-1]) or 0) > 0 and row[1] != "lo"
    }
    write = _first(told, "write")
    return Ground(
        None if disk is None else disk[0] * 1024,
        None if disk is None else disk[1] * 1024,
        _first(told, "kind"),
        programs.get("ssh", ""),
        programs.get("sshd", ""),
        _first(told, "user"),
        lines,
        {"yes": True, "no": False}.get(write),
    )
