"""An Ansible inventory becomes ours: the same hosts, groups and logins, and no secret.

The JSON beside the sources is what ansible-core 2.19.14 printed for them.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bringup.core.errors import UsageError
from bringup.core.host import Inventory
from bringup.edge.ansible import convert, settle
from bringup.edge.ansible_read import VAULT, Tree, expand, from_json, parse
from bringup.edge.ansible_settings import carry
from bringup.edge.ansible_tree import variables_of
from bringup.edge.ansible_write import write
from bringup.edge.inventory import load, problems_in
from tests.conftest import Golden

RECORDED = Path(__file__).parent / "ansible"
SOURCES = ("hosts.ini", "hosts.yaml")


def recorded(source: str, how: str = "") -> Path:
    return RECORDED / f"{source.replace('.', '-')}{how}.json"


def loaded(source: Path, tmp_path: Path) -> Inventory:
    text, notes = convert(source)
    assert not [note for note in notes if note.startswith("to mend")]
    folder = tmp_path / source.name
    folder.mkdir()
    (folder / "hosts.yml").write_text(text)
    return load(folder)


@pytest.mark.parametrize("source", SOURCES)
def test_variables_hold_as_ansible_works_them_out(source: str) -> None:
    tree = parse((RECORDED / source).read_text(), source)
    said = from_json(recorded(source).read_text()).hosts
    assert {host: own for host, own in variables_of(tree).items() if own} == said


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("how", ["", "-export"])
def test_the_file_and_what_ansible_lists_come_to_the_same_hosts(
    source: str, how: str, tmp_path: Path
) -> None:
    own = loaded(RECORDED / source, tmp_path)
    listed = loaded(recorded(source, how), tmp_path)
    assert {name: host.login for name, host in own.hosts.items()} == {
        name: host.login for name, host in listed.hosts.items()
    }
    assert own.groups == listed.groups


@pytest.mark.parametrize("source", SOURCES)
def test_the_result_reads_well(source: str, golden: Golden) -> None:
    golden(f"{source}.yml", convert(RECORDED / source)[0])


@pytest.mark.parametrize("source", SOURCES)
def test_no_line_is_so_long_that_a_terminal_breaks_it(source: str) -> None:
    assert max(len(line) for line in convert(RECORDED / source)[0].splitlines()) < 80


@pytest.mark.parametrize("path", [*RECORDED.iterdir()], ids=lambda path: path.name)
def test_no_secret_is_carried_over(path: Path) -> None:
    text, notes = convert(path)
    everything = text + "\n".join(notes)
    assert "pass" in everything
    assert "hunter2" not in everything
    assert "ANSIBLE_VAULT" not in everything
    assert "6162" not in everything


@pytest.mark.parametrize(
    ("variables", "carried"),
    [
        ({"ansible_host": "192.0.2.4"}, {"address": "192.0.2.4"}),
        ({"ansible_ssh_host": "2001:db8::4"}, {"address": "2001:db8::4"}),
        ({"ansible_port": "2022"}, {"port": 2022}),
        ({"ansible_user": "ops"}, {"user": "ops"}),
        ({"ansible_ssh_private_key_file": "~/.ssh/k"}, {"key_file": "~/.ssh/k"}),
        ({"ansible_become": True}, {"sudo": True}),
        ({"ansible_become": "no"}, {}),
        ({"ansible_timeout": 30}, {"connect_s": 30}),
        ({"ansible_ssh_common_args": "-J a,me@b:22"}, {"gateway": ["a", "me@b:22"]}),
        ({"ansible_ssh_common_args": "-Ja"}, {"gateway": ["a"]}),
        ({"ansible_ssh_common_args": "-oProxyJump=a"}, {"gateway": ["a"]}),
        ({"ansible_ssh_common_args": "-o 'ProxyJump a'"}, {"gateway": ["a"]}),
        ({"ansible_ssh_common_args": "-o ProxyJump=none"}, {}),
        (
            {"ansible_ssh_common_args": "-o ProxyCommand='ssh -i k -q -p 23 -W %h:%p me@b'"},
            {"gateway": ["me@b:23"]},
        ),
        ({"ansible_ssh_extra_args": "-o ServerAliveInterval=5"}, {"keepalive_s": 5}),
        ({"ansible_ssh_args": "-C -o ControlMaster=auto -o ControlPersist=60s"}, {}),
        (
            {"ansible_ssh_common_args": "-o User=a -p 23 -i /k", "ansible_user": "b"},
            {"user": "b", "port": 23, "key_file": "/k"},
        ),
        ({"ansible_connection": "ssh", "ansible_python_interpreter": "/usr/bin/python3"}, {}),
    ],
)
def test_a_variable_becomes_a_setting(
    variables: dict[str, Any],
    carried: dict[str, Any],  # Any: whatever people put there
) -> None:
    found = carry(variables)
    assert (found.settings, found.notes) == (carried, {})


@pytest.mark.parametrize(
    ("variables", "note"),
    [
        ({"ansible_password": "x"}, "ansible_password: is a secret: log in by key, and let sudo "
         "work without a password"),
        ({"ansible_become_pass": VAULT}, "ansible_become_pass: is a secret: log in by key, and let "
         "sudo work without a password"),
        ({"hf_token": "x"}, "hf_token: is a secret: log in by key, and let sudo work without a "
         "password"),
        ({"rack": VAULT}, "rack: is a secret: log in by key, and let sudo work without a password"),
        ({"rack": "b7"}, "rack: has no meaning here"),
        ({"ansible_host": "{{ ip }}"}, "ansible_host: holds a template, which is not worked out "
         "here: write its value"),
        ({"ansible_host": "a b"}, "ansible_host: is no host name or IP address"),
        ({"ansible_port": "ssh"}, "ansible_port: is no number from 1 to 65535"),
        ({"ansible_private_key_file": "keys/k"}, "ansible_private_key_file: is a relative path: "
         "write key_file with the whole one"),
        ({"ansible_become_method": "su"}, "ansible_become_method: is not sudo or "
         "ansible.builtin.sudo, the only one used here"),
        ({"ansible_ssh_common_args": "-o StrictHostKeyChecking=no"},
         "ansible_ssh_common_args StrictHostKeyChecking: left out: host keys are always checked"),
        ({"ansible_ssh_common_args": "-o ForwardAgent=yes"},
         "ansible_ssh_common_args ForwardAgent: has no setting here: put it into ~/.ssh/config"),
        ({"ansible_ssh_common_args": "-o ProxyCommand='nc -X 5 %h %p'"},
         "ansible_ssh_common_args ProxyCommand: is no plain jump (ssh -W %h:%p HOST): put it into "
         "~/.ssh/config"),
        ({"ansible_ssh_common_args": "-o 'x"}, "ansible_ssh_common_args: does not parse as a shell "
         "would"),
    ],
)  # fmt: skip
def test_what_has_no_place_here_is_noted(
    variables: dict[str, Any],
    note: str,  # Any: whatever people put there
) -> None:
    found = carry(variables)
    assert found.settings == {}
    assert [f"{name}: {text}" for name, text in found.notes.items()] == [note]


def converted(tmp_path: Path, text: str) -> tuple[str, str]:
    """Return the hosts part of what an INI inventory becomes, and its notes."""
    (tmp_path / "hosts").write_text(text)
    result, notes = convert(tmp_path / "hosts")
    assert problems_in(result) == ()
    return result.partition("\nhosts:\n")[2], "\n".join(notes)


@pytest.mark.parametrize(
    ("text", "hosts", "notes"),
    [
        ("n[08:11] ansible_user=u", "  n[08-11]:\n", ""),
        ("n1 ansible_host=192.0.2.1\nn2 ansible_host=192.0.2.2",
         "  n[1-2]:\n    address: 192.0.2.[1-2]\n", ""),
        ("n1 ansible_host=192.0.2.7\nn2 ansible_host=192.0.2.9",
         "  n1:\n    address: 192.0.2.7\n  n2:\n    address: 192.0.2.9\n", ""),
        ("n1 ansible_host=fd00::1\nn2 ansible_host=fd00::2",
         "  n1:\n    address: fd00::1\n  n2:\n    address: fd00::2\n", ""),
        ("a ansible_host=b\nb", "  a:\n    address: b\n", "second name of a (b): left out"),
        ("a ansible_user=no", "  a:\n    user: \"no\"\n", ""),
        ("a ansible_host=a", "  a:\n", ""),
        ("a b=1\nb[ad\n", "  a:\n", "b (a): has no meaning here\nhost 'b[ad': is no name here: "
         "name it, and say its address"),
        ("a ansible_ssh_common_args='-J b'\nb ansible_ssh_common_args='-J a'\n", "  a:\n  b:\n",
         "gateway (a,b): left out: no address, or leads to itself"),
        ("a ansible_ssh_common_args='-J b'\nb ansible_ssh_common_args='-J b'\n",
         "  a:\n    gateway: b\n  b:\n",
         "gateway (b): left out: no address, or leads to itself"),
        ("a ansible_ssh_common_args='-J jump'\n", "  a:\n    gateway: jump:22\n", ""),
        ("x ansible_connection=docker\na", "  a:\n", "ansible_connection=docker (x): left out: "
         "not over SSH"),
    ],
)  # fmt: skip
def test_hosts_are_carried_over(tmp_path: Path, text: str, hosts: str, notes: str) -> None:
    assert converted(tmp_path, text) == (hosts, notes)


def test_variables_in_folders_beside_are_noted(tmp_path: Path) -> None:
    (tmp_path / "group_vars").mkdir()
    assert converted(tmp_path, "a")[1] == (
        f"group_vars beside hosts: not read; read the output of ansible-inventory -i "
        f"{tmp_path}/hosts --list"
    )


@pytest.mark.parametrize("text", ["", "a ansible_connection=local", "[g]\n"])
def test_an_inventory_without_hosts_is_told(tmp_path: Path, text: str) -> None:
    path = tmp_path / "hosts"
    path.write_text(text)
    with pytest.raises(UsageError) as raised:
        convert(path)
    assert raised.value.message == f"cannot find a host in {path} that is reached over SSH"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[g]\na hunter2='x", "line 2: No closing quotation"),
        ("a hunter2", "line 1: expected name=value; a value with spaces needs quotes"),
        ("[g:hosts]\nhunter2", "line 2: no section kind 'hosts'"),
        ("a[1:99999]", "line 1: [1:99999] stands for more than 4096 hosts"),
        ("a[1:x]", "line 1: [1:x] is no range"),
        ('{"a": "hunter2"}', "a should hold keys and values, not str"),
        ('{"a": {"hosts": "hunter2"}}', "a/hosts should be a list, not str"),
        ('{"a": hunter2', "Expecting value: line 1 column 7 (char 6)"),
        ("---\na: [hunter2\n", "line 3: expected ',' or ']', but got '<stream end>'"),
        ("---\nhunter2\n", "the file should hold keys and values, not str"),
        (
            "all:\n  &a\n  hosts: {h: }\n  children: {g: *a}\n",
            "there are more than 4096 groups, or a group holds itself",
        ),
    ],
)
def test_what_is_no_inventory_is_told_without_showing_it(text: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse(text, "hosts")
    assert raised.value.message == f"cannot read hosts as an Ansible inventory: {message}"


def test_a_program_is_told_what_to_run(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text("#!/bin/sh\n")
    with pytest.raises(UsageError) as raised:
        convert(path)
    assert raised.value.message == f"cannot read {path}: it is a program"
    assert raised.value.remedy.startswith(f"ansible-inventory -i {path} --list > inventory.json")


def test_a_folder_or_nothing_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="it is a folder"):
        convert(tmp_path)
    with pytest.raises(UsageError, match="No such file"):
        convert(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("pattern", "hosts"),
    [
        ("a", ["a"]),
        ("a[1:3]", ["a1", "a2", "a3"]),
        ("a[08:10]b", ["a08b", "a09b", "a10b"]),
        ("a[1:9:4]", ["a1", "a5", "a9"]),
        ("a[:2]", ["a0", "a1", "a2"]),
        ("[a:c]1", ["a1", "b1", "c1"]),
        ("r[1:2]n[1:2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
    ],
)
def test_a_range_stands_for_hosts(pattern: str, hosts: list[str]) -> None:
    assert expand(pattern) == hosts


NAMES = st.sampled_from(["a", "b", "n1", "n2", "n3", "n10", "g", "all", "x y", "no", "022"])
VALUES: dict[str, Any] = {  # Any: strategies of several types
    "ansible_host": st.sampled_from(["192.0.2.1", "192.0.2.2", "n1", "b", "fd00::1", "", 5]),
    "ansible_port": st.sampled_from([22, "2022", 0, "x"]),
    "ansible_user": st.sampled_from(["ops", "no", "022", "a b", "", None, "1e5", 5]),
    "ansible_become": st.booleans(),
    "ansible_private_key_file": st.sampled_from(["/k", "~/k", "k", "/a b", "/k#1"]),
    "ansible_ssh_common_args": st.sampled_from(
        ["-J a", "-J n1,b", "-J me@x:5", "-o ProxyJump=a@b@c", "-J x", "-J [::1]:5", "-J 'a b'"]
    ),
    "password": st.just("hunter2"),
    "other": st.none() | st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=1),
}
VARIABLES = st.fixed_dictionaries({}, optional=VALUES)
TREES = st.fixed_dictionaries(
    {
        "_meta": st.fixed_dictionaries({"hostvars": st.dictionaries(NAMES, VARIABLES)}),
    },
    optional={
        name: st.fixed_dictionaries(
            {},
            optional={
                "hosts": st.lists(NAMES, max_size=4),
                "children": st.lists(NAMES, max_size=2),
                "vars": VARIABLES,
            },
        )
        for name in ("all", "g", "h", "x y")
    },
)


@settings(max_examples=100, deadline=None)
@given(TREES)
def test_any_inventory_becomes_one_that_loads(data: dict[str, Any]) -> None:  # Any: JSON
    tree: Tree = from_json(json.dumps(data))
    fleet = settle(tree)
    if not fleet.hosts:
        return
    text = write(fleet, "x", fleet.notes)
    assert "hunter2" not in text
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "hosts.yml").write_text(text)
        found = load(Path(folder)).hosts
    variables = variables_of(tree)
    for name, host in found.items():
        wanted = carry(variables[name]).settings
        said = (host.login.address, host.login.port, host.login.user, host.login.key_file)
        assert said == (
            wanted.get("address", name),
            wanted.get("port", 22),
            wanted.get("user", ""),
            wanted.get("key_file", ""),
        )
        assert host.login.sudo == wanted.get("sudo", False)


@pytest.mark.parametrize(
    ("content", "told"), [(b"\xff\xfe", "it is no UTF-8 text"), (None, "No such file")]
)
def test_a_file_that_cannot_be_read_is_told_in_words(
    tmp_path: Path, content: bytes | None, told: str
) -> None:
    source = tmp_path / "hosts.ini"
    if content is not None:
        source.write_bytes(content)
    with pytest.raises(UsageError, match=told) as raised:
        convert(source)
    assert "Errno" not in raised.value.message
    assert raised.value.remedy
