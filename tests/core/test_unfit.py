"""What a knob takes, said the same way in files and on the command line."""

from __future__ import annotations

import pytest

from bringup.core.errors import UsageError
from bringup.core.knobs import unfit
from bringup.engines.knobs import KNOBS
from bringup.verbs.common import knob_settings


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("port", 70000, "should be 1 to 65535, not 70000"),
        ("port", 0, "should be 1 to 65535, not 0"),
        ("tensor_parallel", 0, "should be 1 or more, not 0"),
        ("tensor_parallel", True, "should be an integer, not True"),
        ("memory_fraction", 7.0, "should be 0.01 to 1, not 7.0"),
        ("hicache_ratio", -3, "should be 0.01 or more, not -3"),
        ("chunked_prefill_size", -1, ""),
        ("container_engine", "lxc", "should be docker or podman, not 'lxc'"),
        ("serve_folder", "relative", "should be an absolute path"),
        ("serve_folder", "/etc/../x", "should be an absolute path"),
        ("cache_folder", "/raid/cache", ""),
        ("container_name", "x y", "should be a name of letters"),
        ("restart", "forever", "should be no, always"),
        ("restart", "on-failure:3", ""),
        ("advertise_host", "not a host", "should be an address or a host name"),
        ("advertise_host", "fd00::4", ""),
        ("shm", "64g", ""),
    ],
)
def test_a_value_is_held_against_what_its_knob_takes(
    name: str, value: str | float, said: str
) -> None:
    assert unfit(KNOBS[name], value).startswith(said)
    assert bool(said) == bool(unfit(KNOBS[name], value))


@pytest.mark.parametrize("name", [k for k, knob in KNOBS.items() if knob.default is not None])
def test_every_default_fits_its_own_knob(name: str) -> None:
    default = KNOBS[name].default
    assert default is not None
    assert unfit(KNOBS[name], default) == ""


@pytest.mark.parametrize("word", ["port=70000", "container_engine=lxc", "hicache_ratio=abc"])
def test_the_command_line_takes_no_more_than_files_do(word: str) -> None:
    with pytest.raises(UsageError, match=r"cannot set \w+: should be") as raised:
        knob_settings((word,), KNOBS)
    assert raised.value.remedy == f"bringup explain {word.partition('=')[0]}"
