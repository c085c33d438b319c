"""Who is meant by --host, --group, --limit and --exclude; and names in short form."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bringup.core.errors import UsageError
from bringup.core.host import Host, Inventory, Login
from bringup.edge.inventory import select
from bringup.edge.names import MOST, Names, PatternError, expand, fold

INVENTORY = Inventory(
    "inventory",
    {name: Host(name, Login(name)) for name in ("b200-01", "b300-04", "b300-07", "b300-10", "web")},
    {"b300": ("b300-04", "b300-07", "b300-10"), "odd": ("b300-07", "web")},
    {},
    {},
)


def chosen(
    hosts: Sequence[str] = (),
    group: Sequence[str] = (),
    limit: str = "",
    exclude: Sequence[str] = (),
) -> str:
    return fold(host.name for host in select(INVENTORY, hosts, group, limit, exclude))


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        ({"hosts": ["b300-07"]}, "b300-07"),
        ({"hosts": ["b300-[04,07]"]}, "b300-[04,07]"),
        ({"hosts": ["b300-07", "b300-04", "b300-07"]}, "b300-[04,07]"),
        ({"hosts": ["b300-04,web"]}, "b300-04,web"),
        ({"hosts": ["b300-*"]}, "b300-[04,07,10]"),
        ({"hosts": ["@b300!b300-04"]}, "b300-[07,10]"),
        ({"hosts": ["@b300&@odd"]}, "b300-07"),
        ({"group": ["b300"]}, "b300-[04,07,10]"),
        ({"group": ["b300", "odd"]}, "b300-[04,07,10],web"),
        ({"group": ["all"]}, "b200-01,b300-[04,07,10],web"),
        ({"group": ["odd"], "hosts": ["b200-01"]}, "b200-01,b300-07,web"),
        ({"limit": "b300-*"}, "b300-[04,07,10]"),
        ({"group": ["all"], "limit": "@odd"}, "b300-07,web"),
        ({"group": ["b300"], "exclude": ["b300-04", "b300-10"]}, "b300-07"),
        ({"limit": "@b300", "exclude": ["@odd"]}, "b300-[04,10]"),
    ],
)
def test_those_are_meant(asked: dict[str, Sequence[str]], names: str) -> None:
    assert chosen(**asked) == names  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({}, "cannot tell which hosts are meant: none is named"),
        ({"exclude": ["web"]}, "cannot tell which hosts are meant: none is named"),
        (
            {"hosts": ["b300-05"]},
            "cannot take --host b300-05: no host 'b300-05'; "
            "did you mean b300-04 or b300-07 or b300-10?",
        ),
        ({"hosts": ["b300-[04-05]"]}, "cannot take --host b300-[04-05]: no host 'b300-05'; "
         "did you mean b300-04 or b300-07 or b300-10?"),
        ({"group": ["b30"]}, "cannot take --group b30: no group 'b30'; did you mean b300?"),
        ({"group": ["all"], "limit": "wep"}, "cannot take --limit wep: no host 'wep'; "
         "did you mean web?"),
        ({"group": ["all"], "exclude": ["wep"]}, "cannot take --exclude wep: no host 'wep'; "
         "did you mean web?"),
        ({"hosts": ["web"], "limit": "b300-*"}, "cannot go on without a host: the selection is "
         "empty"),
        ({"limit": "x*"}, "cannot go on without a host: the selection is empty"),
        ({"hosts": ["x*"]}, "cannot go on without a host: the selection is empty"),
        ({"group": ["all"], "exclude": ["*"]}, "cannot go on without a host: the selection is "
         "empty"),
        ({"hosts": [""]}, "cannot take --host '': '' is no host pattern: write it like "
         "b300-[01-16] or @group"),
        ({"hosts": ["b300-[04"]}, "cannot take --host b300-[04: 'b300-[04' does not parse: "
         "missing bracket: b300-[04"),
        ({"hosts": ["a;b"]}, "cannot take --host a;b: 'a;b' is no host pattern: write it like "
         "b300-[01-16] or @group"),
    ],
)  # fmt: skip
def test_a_selection_that_makes_no_sense_is_refused(
    asked: dict[str, Sequence[str]], message: str
) -> None:
    with pytest.raises(UsageError) as raised:
        chosen(**asked)  # type: ignore[arg-type]
    assert raised.value.message == message


def test_an_empty_selection_names_what_there_is() -> None:
    with pytest.raises(UsageError) as raised:
        chosen(hosts=["x*"])
    assert raised.value.remedy == "the inventory has b200-01,b300-[04,07,10],web"


def test_hosts_come_in_natural_order() -> None:
    names = Names(("n1", "n2", "n10"))
    assert names.match("n10,n2,n1") == ("n1", "n2", "n10")


@pytest.mark.parametrize(
    ("names", "short"),
    [
        ([], ""),
        (["b300-10", "b300-9"], "b300-[9-10]"),
        (["b300-07", "b300-04"], "b300-[04,07]"),
        (["web", "b300-04"], "b300-04,web"),
        (["r1n1", "r1n2", "r2n1", "r2n2"], "r1n[1-2],r2n[1-2]"),
    ],
)
def test_names_fold_for_people(names: list[str], short: str) -> None:
    assert fold(names) == short


@pytest.mark.parametrize("pattern", ["n[1-9999999999]", "n[1-100]m[1-100]", f"n[1-{MOST + 1}]"])
def test_a_pattern_too_large_is_refused_before_it_is_unfolded(pattern: str) -> None:
    with pytest.raises(PatternError, match=f"names more than {MOST} hosts"):
        expand(pattern)
