"""What a way back is, and what all of them share."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..core.receipt import Done
from ..core.steps import Action, Step
from ..core.words import quote


@dataclass(frozen=True, slots=True)
class Back:
    """A step back, or the reason why there is none. `left` is the state in which we left it."""

    id: str
    step: Step | None = None
    left: str = ""
    why_not: str = ""


# What must go on for the sake of others: prints why, or nothing.
IN_USE = r"""
in_use() {
  case $1 in
  docker* | containerd* | podman*)
    systemctl is-active --quiet "$1" || return 0
    r=$(timeout 20 docker ps --format '{{.Names}}' 2>&1) || {
      echo "cannot tell what runs:" $r; return; }
    [ -z "$r" ] || echo "containers run:" $r ;;
  *fabricmanager*)
    r=$(timeout 20 nvidia-smi --query-compute-apps=pid --format=csv,noheader 2>&1) || {
      echo "cannot tell who uses the GPUs:" $r; return; }
    [ -z "$r" ] || echo "processes use the GPUs:" $r ;;
  *-versionlock)
    r=$(grep -hEv '^ *(#|$)' /etc/dnf/plugins/versionlock.list 2>/dev/null)
    [ -z "$r" ] || echo "packages are locked:" $r ;;
  esac
}
"""


_GUARDED = r"""
seen=$({look}
)
if [ "$seen" != {wanted} ]; then
  why=$({unless}
  )
  [ -z "$why" ] || seen="kept: $why"
fi
printf '%s\n' "$seen"
"""


def step_back(
    done: Done, probe: Step, wanted: str, actions: tuple[Action, ...], title: str,
    *, content: str | None = None, unless: str = "",
) -> Back:  # fmt: skip
    """Return the way back of a step, seen with the eyes of `probe`.

    `unless` is sh text that prints why a thing has to stay as we left it, and else nothing.
    """
    observe = probe.observe
    if unless:
        observe = _GUARDED.format(look=probe.observe, wanted=quote(wanted), unless=unless)
    step = Step(
        f"back:{done.id}", title, observe, wanted, actions, seconds=probe.seconds,
        why=f"it was so before: {done.found}", content=content,
    )  # fmt: skip
    return Back(done.id, step, done.wanted)


def after(way: Back, *ids: str) -> Back:
    """Return a way back that is looked at anew once one of others was gone."""
    if way.step is None:
        return way
    return replace(way, step=replace(way.step, follows=tuple(f"back:{id_}" for id_ in ids)))
