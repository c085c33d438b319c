"""What planning holds of a host can look, and has no way to touch."""

from __future__ import annotations

from bringup.core.remote import Looking, Remote


def test_a_remote_for_planning_has_no_way_to_write() -> None:
    touching = {name for name in vars(Remote) if name in ("run", "write", "push", "lock")}
    assert len(touching) == 4
    assert not touching & set(dir(Looking))
