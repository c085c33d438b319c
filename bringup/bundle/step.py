"""Step kind: a folder that holds a bundle's files, unaltered.

The observation sums the files that stand there and does not trust a marker, so that a folder that
someone edited, or one that holds the same files for another reason, is seen for what it is.
"""

from __future__ import annotations

from ..core.steps import Push, Run, Step
from ..core.words import HostPath, quote
from .manifest import BundleFile, Manifest
from .names import MARKER, escaped
from .selection import WEIGHT_SUFFIXES

# Prints the digest when all files are there and right (others beside them do no harm), else what
# stands there instead. One line, one trip.
_OBSERVE = """
d={path}
[ -e "$d" ] || {{ echo absent; exit 0; }}
[ -d "$d" ] || {{ echo "not a folder"; exit 0; }}
cd -- "$d" || exit 2
bad=
is() {{
  [ -z "$bad" ] || return 0
  x=$(printf %b. "$2")
  {{ s=$(sha256sum <"./${{x%.}}"); }} 2>/dev/null
  [ "${{s%% *}}" = "$1" ] || bad=$2
}}
{sums}
if [ -z "$bad" ]; then echo {digest}; exit 0; fi
if [ -e {marker} ]; then
  was=$(sed -n 's/^ "digest": "\\(sha256:[0-9a-f]*\\)".*/\\1/p' {marker})
  [ "$was" = {digest} ] && echo "altered since it was placed: $bad" || echo "${{was:-damaged}}"
  exit 0
fi
[ -n "$(ls -A)" ] || {{ echo "an empty folder"; exit 0; }}
w=$(find . \\( {weights} -o -size +131072 \\) -type f | head -n 1)
[ -z "$w" ] || {{ echo "{holds_weights} (${{w#./}})"; exit 0; }}
echo "{holds_others} ($(ls -A | head -n 3 | tr '\n' ' '))"
"""

HOLDS_WEIGHTS = "holds weights"
HOLDS_OTHERS = "holds files that no bundle put there"
_WEIGHTS = " -o ".join(f"-name '*{suffix}'" for suffix in WEIGHT_SUFFIXES)

# Swapping the folder in whole would throw away what stands there: never weights, and nothing that
# is not ours unless the operator says so.
_GUARD = r"""
d=$1 replace=$2 shown=$3
no() { echo "$shown $1"; exit 3; }
[ -e "$d" ] || [ -L "$d" ] || exit 0
[ ! -L "$d" ] || no "is a link to $(readlink "$d"): give that folder itself"
[ -d "$d" ] || no "is not a folder"
w=$(find "$d" \( __WEIGHTS__ -o -size +131072 \) -type f | head -n 1)
[ -z "$w" ] || no "__HOLDS_WEIGHTS__ (${w#"$d"/})"
if [ -e "$d/__MARKER__" ] || [ -z "$(ls -A "$d")" ] || [ "$replace" = yes ]; then exit 0; fi
no "__HOLDS_OTHERS__ ($(ls -A "$d" | head -n 3 | tr '\n' ' '))"
"""


def refusal(found: str, *, replace: bool) -> str:
    """Return why a bundle may not take the place of what an observation found, or ""."""
    if found.startswith(HOLDS_WEIGHTS) or (found.startswith(HOLDS_OTHERS) and not replace):
        return found
    return ""


def bundle_step(
    manifest: Manifest,
    archive: str,
    sha256: str,
    path: str,
    *,
    replace: bool = False,
    why: str = "",
) -> Step:
    """Return the step that puts a bundle (an archive here, with its sum) into a folder there.

    `replace` allows it to take the place of files that no bundle put there; weights never go.
    """
    place = HostPath(path)
    return Step(
        id=f"bundle:{path}",
        title=f"place {len(manifest.files)} tokenizer and configuration files in {path}",
        observe=_OBSERVE.format(
            path=quote(place),
            sums="\n".join(_is(file) for file in manifest.files),
            digest=quote(manifest.digest),
            marker=quote(MARKER),
            weights=_WEIGHTS,
            holds_weights=HOLDS_WEIGHTS,
            holds_others=HOLDS_OTHERS,
        ),
        wanted=manifest.digest,
        actions=(_guard(place, replace=replace), Push(place, archive, sha256)),
        seconds=30,
        why=why,
    )


def _guard(place: HostPath, *, replace: bool) -> Run:
    words = {
        "__WEIGHTS__": _WEIGHTS,
        "__MARKER__": MARKER,
        "__HOLDS_WEIGHTS__": HOLDS_WEIGHTS,
        "__HOLDS_OTHERS__": HOLDS_OTHERS,
    }
    script = _GUARD
    for word, text in words.items():
        script = script.replace(word, text)
    return Run(("sh", "-c", script, "guard", place, "yes" if replace else "no", place.path))


def _is(file: BundleFile) -> str:
    return f"is {file.sha256} {quote(escaped(file.name))}"
