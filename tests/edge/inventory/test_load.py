"""What a good inventory comes to: names, groups, merged settings, logins, roles."""

from __future__ import annotations

from pathlib import Path

import pytest

from bringup.core.errors import UsageError
from bringup.core.host import Host, Inventory, Login, Mode
from bringup.edge.inventory import load
from tests.conftest import ROOT

from .folder import DEPLOYMENT, write


def loaded(tmp_path: Path, hosts: str, deployment: str = "") -> Inventory:
    return load(write(tmp_path, hosts=hosts, deployment=deployment))


def host(tmp_path: Path, hosts: str, name: str = "a") -> Host:
    return loaded(tmp_path, hosts).hosts[name]


def test_an_empty_host_has_its_name_as_address(tmp_path: Path) -> None:
    assert host(tmp_path, "hosts: {a: }").login == Login("a")


def test_a_folded_name_pairs_with_a_folded_address_in_order(tmp_path: Path) -> None:
    found = loaded(tmp_path, 'hosts: {"n-[9-11]": {address: "192.0.2.[109-111]"}}').hosts
    assert {name: each.login.address for name, each in found.items()} == {
        "n-9": "192.0.2.109",
        "n-10": "192.0.2.110",
        "n-11": "192.0.2.111",
    }


def test_hosts_come_in_natural_order(tmp_path: Path) -> None:
    assert [*loaded(tmp_path, "hosts: {n10: , n9: , m: }").hosts] == ["m", "n9", "n10"]


LAYERS = """
defaults: {user: default, connect_s: 3, root: /}
groups:
  outer: {groups: [inner], user: outer, connect_s: 4, sudo: true}
  inner: {hosts: "[a-b]", user: inner}
hosts:
  a:
  b: {user: own, root: /host/}
"""


@pytest.mark.parametrize(
    ("name", "user", "connect_s", "root"),
    [("a", "inner", 4.0, "/"), ("b", "own", 4.0, "/host")],
)
def test_own_word_overrules_inner_group_overrules_outer_overrules_defaults(
    tmp_path: Path, name: str, user: str, connect_s: float, root: str
) -> None:
    found = host(tmp_path, LAYERS.replace('"[a-b]"', "[a, b]"), name)
    assert (found.login.user, found.login.connect_s, found.root) == (user, connect_s, root)
    assert found.login.sudo
    assert found.groups == ("inner", "outer")


def test_groups_that_agree_are_no_fault(tmp_path: Path) -> None:
    text = "groups: {x: {hosts: a, port: 23}, y: {hosts: a, port: 23}}\nhosts: {a: }"
    assert host(tmp_path, text).login.port == 23


def test_the_hosts_own_word_ends_a_quarrel_of_groups(tmp_path: Path) -> None:
    text = "groups: {x: {hosts: a, port: 23}, y: {hosts: a, port: 24}}\nhosts: {a: {port: 25}}"
    assert host(tmp_path, text).login.port == 25


def test_a_group_may_be_picked_by_pattern_and_exclusion(tmp_path: Path) -> None:
    text = 'groups: {x: {hosts: "n*!n2"}}\nhosts: {"n[1-3]": , m: }'
    assert loaded(tmp_path, text).groups == {"x": ("n1", "n3")}


def test_knobs_merge_one_by_one_and_keep_where_they_stand(tmp_path: Path) -> None:
    text = """\
    defaults: {knobs: {one: 1, two: 1}}
    groups: {x: {hosts: a, knobs: {two: 2, three: 2}}}
    hosts:
      a: {knobs: {three: 3}}
    """
    found = host(tmp_path, text)
    assert found.knobs == {"one": 1, "two": 2, "three": 3}
    assert {name: str(origin) for name, origin in found.knob_origins.items()} == {
        "one": "inventory/hosts.yml:1 defaults/knobs/one",
        "two": "inventory/hosts.yml:2 groups/x/knobs/two",
        "three": "inventory/hosts.yml:4 hosts/a/knobs/three",
    }


def test_a_host_says_where_it_stands(tmp_path: Path) -> None:
    origin = host(tmp_path, "hosts:\n  'n[1-2]':\n", "n2").origin
    assert str(origin) == "inventory/hosts.yml:2 hosts/n[1-2]"


@pytest.mark.parametrize(
    ("gateway", "jumps"),
    [
        ("none", []),
        ("near", [("near", 2222, "jump")]),
        ("far", [("near", 2222, "jump"), ("far", 22, "")]),
        ("[far, near]", [("near", 2222, "jump"), ("far", 22, ""), ("near", 2222, "jump")]),
        ("me@out.example.com:23", [("out.example.com", 23, "me")]),
        ("out.example.com", [("out.example.com", 22, "")]),
        ("me@[2001:db8::1]:23", [("2001:db8::1", 23, "me")]),
        ("me@out", [("out", 22, "me")]),
    ],
)
def test_a_gateway_brings_its_own_jumps(
    tmp_path: Path, gateway: str, jumps: list[tuple[str, int, str]]
) -> None:
    quoted = gateway if gateway.startswith("[far") else f"'{gateway}'"
    text = f"""\
    groups: {{x: {{hosts: a, gateway: near}}}}
    hosts:
      near: {{user: jump, port: 2222}}
      far: {{gateway: near}}
      a: {{gateway: {quoted}}}
    """
    found = host(tmp_path, text).login.gateway
    assert [(jump.address, jump.port, jump.user) for jump in found] == jumps
    assert not any(jump.gateway for jump in found)


def test_a_jump_from_outside_takes_the_hosts_own_key(tmp_path: Path) -> None:
    text = "hosts: {a: {gateway: 'me@b:22', key_file: ~/.ssh/k, agent: true, connect_s: 2}}"
    assert host(tmp_path, text).login.gateway == (
        Login("b", user="me", key_file="~/.ssh/k", agent=True, connect_s=2.0),
    )


def test_the_gateway_of_all_is_itself_reached_directly(tmp_path: Path) -> None:
    found = loaded(tmp_path, "defaults: {gateway: b}\nhosts: {a: , b: }").hosts
    assert [len(found[name].login.gateway) for name in ("a", "b")] == [1, 0]


def test_gateway_none_is_kept_as_the_word_that_it_is(tmp_path: Path) -> None:
    found = loaded(tmp_path, "defaults: {gateway: c}\nhosts: {a: {gateway: none}, b: , c: }").hosts
    assert [found[name].login.is_direct for name in ("a", "b")] == [True, False]


def test_two_hosts_may_share_an_address_on_two_ports(tmp_path: Path) -> None:
    text = "hosts: {a: {address: 127.0.0.1, port: 2201}, b: {address: 127.0.0.1, port: 2202}}"
    assert [*loaded(tmp_path, text).hosts] == ["a", "b"]


def roles(tmp_path: Path, text: str) -> dict[str, tuple[tuple[str, ...], ...]]:
    deployment = DEPLOYMENT.replace("  serve: {mode: aggregated, hosts: b200-01}", text)
    hosts = 'groups: {g: {hosts: "n[1-4]"}}\nhosts: {"n[1-5]": , b200-01: }'
    found = loaded(tmp_path, hosts, deployment).deployments["demo"]
    return {role.name: role.workers for role in found.roles}


@pytest.mark.parametrize(
    ("text", "workers"),
    [
        ("  r: {mode: decode, hosts: n1}", (("n1",),)),
        ('  r: {mode: decode, hosts: "@g!n4"}', (("n1",), ("n2",), ("n3",))),
        ('  r: {mode: decode, hosts: "n[1-4]", nodes_per_worker: 2}', (("n1", "n2"), ("n3", "n4"))),
        ("  r: {mode: decode, workers: [[n3, n1], [n2]]}", (("n3", "n1"), ("n2",))),
        ('  r: {mode: decode, workers: ["n[1-2]"]}', (("n1", "n2"),)),
    ],
)
def test_a_role_says_its_workers(
    tmp_path: Path, text: str, workers: tuple[tuple[str, ...], ...]
) -> None:
    assert roles(tmp_path, text) == {"r": workers}


def test_two_roles_share_a_host_when_each_has_gpus_of_its_own(tmp_path: Path) -> None:
    text = """\
      p: {mode: prefill, hosts: n1, gpus: [0]}
      d: {mode: decode, hosts: n1, gpus: [1]}
    """
    deployment = DEPLOYMENT.replace("  serve: {mode: aggregated, hosts: b200-01}", text)
    found = loaded(tmp_path, "hosts: {n1: }", deployment).deployments["demo"]
    assert [role.mode for role in found.roles_of("n1")] == [Mode.PREFILL, Mode.DECODE]


def test_an_image_folder_is_found_and_overlaid(tmp_path: Path) -> None:
    digest = "sha256:" + "0" * 64
    text = DEPLOYMENT.replace(
        'name: vllm, reference: "vllm:1"', f"name: vllm-nixl, digest: {digest}"
    )
    found = load(write(tmp_path, deployment=text), ROOT / "images").deployments["demo"].image
    assert found.reference.startswith("vllm-nixl:")
    assert (found.digest, found.engine_version) == (digest, "0.24.0")


def test_kinds_take_the_name_of_their_file(tmp_path: Path) -> None:
    kind = load(write(tmp_path)).kinds["b300"]
    assert (kind.name, kind.product_names) == ("b300", ("NVIDIA B300 SXM6 AC",))


def test_kinds_and_deployments_may_be_missing(tmp_path: Path) -> None:
    found = load(write(tmp_path, hosts="hosts: {a: }", kind="", deployment=""))
    assert (found.kinds, found.deployments) == ({}, {})


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (None, "cannot find the inventory: there is no folder {folder}"),
        ("deployments/x.yml", "cannot find the inventory: no {folder}/hosts.yml"),
    ],
)
def test_a_missing_inventory_says_how_to_begin(
    tmp_path: Path, made: str | None, message: str
) -> None:
    folder = tmp_path / "inventory"
    if made:
        (folder / made).parent.mkdir(parents=True)
        (folder / made).write_text("")
    with pytest.raises(UsageError) as raised:
        load(folder)
    assert raised.value.message == message.format(folder=folder)
    assert "hosts.yml" in raised.value.remedy


def test_a_file_with_the_other_suffix_is_named(tmp_path: Path) -> None:
    folder = write(tmp_path)
    (folder / "hosts.yml").rename(folder / "hosts.yaml")
    with pytest.raises(UsageError) as raised:
        load(folder)
    assert raised.value.remedy == f"mv {folder}/hosts.yaml {folder}/hosts.yml"
