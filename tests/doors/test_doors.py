"""Both doors offer the same verbs, options and exit codes, from one declaration."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Annotated

import click
import pytest
from click.testing import CliRunner

from bringup.core.errors import Blocked, Exit, UsageError
from bringup.core.verb import Help, Verb, Without, arguments, options
from bringup.doors import cli
from bringup.doors import invoke as tasks
from bringup.doors.run import offered, perform
from bringup.doors.spelling import spelled
from bringup.report.screen import Screen
from bringup.verbs import collect

ROOT = Path(__file__).parents[2]
VERBS = {verb.name: verb for verb in collect()}


@pytest.mark.parametrize("name", VERBS)
def test_a_default_is_of_the_type_that_its_option_says(name: str) -> None:
    for option in options(VERBS[name]):
        if option.default is not None and not option.is_repeatable:
            assert type(option.default) is option.type, option.name


def sample(
    screen: Screen,
    rule: Annotated[str, Help("a rule")],
    *,
    host: Annotated[tuple[str, ...], Help("hosts")] = (),
    check: Annotated[bool, Help("look only")] = False,
    seconds: Annotated[int, Help("a limit")] = 5,
) -> Exit:
    """Do a thing.

    At length.
    """
    if rule == "bad":
        raise UsageError("cannot do it", host="h1", step="s", said="a\nb", remedy="do this")
    screen.emit({"rule": rule, "host": host, "check": check, "seconds": seconds})
    return Exit.WOULD_CHANGE if check else Exit.DONE


SAMPLE = Verb("room.sample", sample)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    most: Annotated[int, Help("the most")] = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Options that go together."""

    from_: Annotated[str, Help("where from")]
    inner: Inner
    quiet: Annotated[bool, Help("say less")] = False


def grouped(screen: Screen, *, first: bool = False, group: Group, last: bool = False) -> Exit:
    """Take a group."""
    screen.emit({"first": first, "group": group, "last": last})
    return Exit.DONE


def partial(screen: Screen, *, group: Annotated[Group, Without(("quiet",))]) -> Exit:
    """Take a part of a group."""
    return grouped(screen, group=group)


def test_a_group_unfolds_in_its_place() -> None:
    names = [option.name for option in options(Verb("grouped", grouped))]
    assert names == ["first", "from_", "most", "quiet", "last"]


def test_a_group_carries_help_default_and_need_of_its_fields() -> None:
    source, most, *_ = options(Verb("grouped", grouped))[1:]
    assert (source.help.text, source.flag, source.is_needed) == ("where from", "--from", True)
    assert (most.type, most.default, most.is_needed) == (int, 3, False)


def test_a_verb_gets_its_groups_filled_from_the_command_line() -> None:
    words = ["--from", "here", "--most", "9", "--last", "--json"]
    done = CliRunner().invoke(cli.command(Verb("grouped", grouped)), words)
    assert json.loads(done.output) == {
        "first": False,
        "group": {"from_": "here", "inner": {"most": 9}, "quiet": False},
        "last": True,
    }


def test_a_field_that_a_verb_leaves_out_is_no_option_and_keeps_its_default() -> None:
    verb = Verb("partial", partial)
    assert [option.name for option in options(verb)] == ["from_", "most"]
    given = arguments(verb, {"from_": "here", "most": 1})
    assert given == {"group": Group(from_="here", inner=Inner(most=1), quiet=False)}


@pytest.mark.parametrize("name", VERBS)
def test_no_two_groups_of_a_verb_have_an_option_in_common(name: str) -> None:
    flags = [option.flag for option in offered(VERBS[name])]
    assert len(flags) == len(set(flags))


@pytest.mark.parametrize("name", VERBS)
def test_only_arguments_of_a_function_are_arguments_of_its_verb(name: str) -> None:
    found = signature(VERBS[name].act).parameters.values()
    own = {one.name for one in found if one.kind is not one.KEYWORD_ONLY}
    assert {option.name for option in options(VERBS[name]) if option.is_argument} <= own


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_and_option_has_help(name: str) -> None:
    verb = VERBS[name]
    assert verb.summary.endswith("."), f"{name}: the docstring opens with a whole sentence"
    assert all(option.help.text for option in options(verb))


@pytest.mark.parametrize("name", VERBS)
def test_both_doors_offer_the_same_options(name: str) -> None:
    verb = VERBS[name]
    task = tasks.task(verb)
    invoke_names = {argument.names[0].replace("-", "_") for argument in task.get_arguments()}
    declared = {option.name for option in offered(verb)}
    click_names = {parameter.name for parameter in cli.command(verb).params}
    assert click_names == declared
    assert invoke_names == {name.strip("_") for name in declared}


LOCAL = {
    "image.pin", "image.rebase", "bundle.kubernetes",
    "engine.schema", "inventory.show", "inventory.import", "demo", "lab.up", "lab.down",
    "lab.status", "test",
}  # fmt: skip
"""Verbs that open no connection to a host of an inventory."""


def test_every_verb_that_contacts_hosts_tells_what_it_cost() -> None:
    silent = {name for name in VERBS if "stats" not in {o.name for o in offered(VERBS[name])}}
    assert silent == LOCAL


def test_fleets_are_opened_in_one_place_so_that_none_goes_uncounted() -> None:
    sources = (ROOT / "bringup").rglob("*.py")
    makers = [path.relative_to(ROOT) for path in sources if "SshFleet(" in path.read_text()]
    assert makers == [Path("bringup/flow/open.py")]


@pytest.mark.parametrize("name", VERBS)
def test_no_option_has_a_short_flag(name: str) -> None:
    for argument in tasks.task(VERBS[name]).get_arguments():
        assert all(len(flag) > 1 for flag in argument.names)


def test_click_hands_over_what_was_typed() -> None:
    done = CliRunner().invoke(cli.command(SAMPLE), ["r1", "--host", "a", "--host", "b", "--json"])
    assert done.output == '{"rule": "r1", "host": ["a", "b"], "check": false, "seconds": 5}\n'
    assert done.exit_code == 0


def test_exit_codes_come_through() -> None:
    assert CliRunner().invoke(cli.command(SAMPLE), ["r", "--check"]).exit_code == 5
    assert CliRunner().invoke(cli.command(SAMPLE), ["bad"]).exit_code == 2
    assert CliRunner().invoke(cli.command(SAMPLE), ["--rule", "r", "--check"]).exit_code == 5
    assert CliRunner().invoke(cli.command(SAMPLE), ["--check", "--rule=r"]).exit_code == 5
    assert CliRunner().invoke(cli.command(SAMPLE), []).exit_code == 2


def test_an_error_is_shown_with_place_words_and_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    values = {"rule": "bad", "host": (), "check": False, "seconds": 1}
    assert perform(SAMPLE, values) == Exit.USAGE
    text = capsys.readouterr().err
    for part in ("h1", "cannot do it", "said", "do this"):
        assert part in text


def test_an_error_is_one_json_object_for_machines(capsys: pytest.CaptureFixture[str]) -> None:
    values = {"rule": "bad", "host": (), "check": False, "seconds": 1, "json": True}
    perform(SAMPLE, values)
    out = capsys.readouterr().out
    assert '"error": "UsageError"' in out
    assert '"exit": 2' in out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stopped_run_says_so_whatever_stopped_it(
    number: signal.Signals, capsys: pytest.CaptureFixture[str]
) -> None:
    def act(screen: Screen) -> Exit:
        signal.raise_signal(number)
        return Exit.DONE

    before = signal.getsignal(number)
    assert perform(Verb("room.long", act), {}) == Exit.INTERRUPTED
    assert "run the same command again" in capsys.readouterr().err
    assert signal.getsignal(number) is before


def invoke(*words: str) -> subprocess.CompletedProcess[str]:
    program = "from invoke.main import program; program.run()"
    return subprocess.run(
        [sys.executable, "-c", program, *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("probe", "--hosts", "x"), "no option --hosts; did you mean --host"),
        (("prob",), "no such verb; did you mean probe?"),
        (("probe", "extra"), "it takes no such word"),
        (("bundle.make",), "SOURCE is missing"),
        (("image.rebase", "dynamo-sglang-k3"), "--to is missing"),
        (("weights.sync", "--at-once", "abc"), "--at-once wants a whole number, not 'abc'"),
        (("topology.advise", "k3", "--reuse", "x"), "--reuse wants a number, not 'x'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_wrong_command_line_is_wrong_input_to_invoke_as_well(
    words: tuple[str, ...], said: str
) -> None:
    done = invoke(*words)
    assert done.returncode == 2, done.stdout + done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_invoke_lists_every_verb_with_its_summary() -> None:
    text = invoke("--list").stdout
    for verb in VERBS.values():
        assert verb.summary[:30] in text


@pytest.mark.parametrize(
    "words", [("tp-size",), ("--tp-size",), ("--", "--tp-size"), ("--tp-size=8",)]
)
@pytest.mark.parametrize("door", ["bringup", "invoke"])
def test_a_flag_of_an_engine_is_explained_however_it_is_typed(
    door: str, words: tuple[str, ...]
) -> None:
    done = run("explain", *words) if door == "bringup" else invoke("explain", *words)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("knob tensor_parallel")


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bringup", *words], cwd=ROOT, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


def test_help_of_a_task_that_must_have_an_argument_is_shown() -> None:
    assert "kinds.learn" in invoke("kinds.learn", "--help").stdout.splitlines()[0]


@pytest.mark.parametrize(
    ("words", "rest", "wanted"),
    [
        ("explain tp-size --json", "", "explain --name=tp-size --json"),
        ("explain --host a --tp-size", "", "explain --host a --name=--tp-size"),
        ("explain --host=a --json", "", "explain --host=a --json"),
        ("explain", "--tp-size", "explain --name=--tp-size"),
        ("serve.start --check", "", "serve.start --check"),
        ("kinds.learn b300 --host h1", "", "kinds.learn --name=b300 --host h1"),
        ("", "", ""),
    ],
)
def test_an_argument_is_spelled_as_an_option_to_invoke(words: str, rest: str, wanted: str) -> None:
    assert spelled(words.split(), collect(), rest=rest) == wanted.split()


def test_a_reader_who_leaves_early_ends_the_output_without_a_word() -> None:
    done = subprocess.run(
        ["sh", "-c", '"$0" -m bringup explain | true', sys.executable], cwd=ROOT,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr == ""


HEAVY = ("fabric", "paramiko", "jinja2", "pydantic", "rich", "asyncssh", "ClusterShell")


@pytest.mark.parametrize("door", ["import bringup.doors.cli as c; c.group()", "import tasks"])
def test_opening_a_door_loads_nothing_heavy(door: str) -> None:
    program = f"import sys; {door}; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


MOST_MODULES = 60
"""Most modules of ours that the table of contents may load: the verbs and what declares them."""


@pytest.mark.parametrize("door", ["import bringup.doors.cli as c; c.group()", "import tasks"])
def test_opening_a_door_loads_few_modules_of_ours(door: str) -> None:
    found = modules_after(door)
    ours = [name for name in found if name.startswith("bringup.")]
    assert len(ours) <= MOST_MODULES, ours
    wanted_later = ("bringup.probes", "bringup.rules", "bringup.engines", "bringup.edge",
                    "bringup.core.host", "bringup.core.plan")  # fmt: skip
    assert not [name for name in ours if name.startswith(wanted_later)]


def test_a_local_no_op_loads_no_ssh() -> None:
    act = (
        "import sys; from bringup.doors.cli import group;"
        " group()(['explain', 'FAB-03'], standalone_mode=False)"
    )
    found = modules_after(f"try:\n  {act}\nexcept SystemExit: pass")
    assert "bringup.verbs.explain" in found
    assert not {"paramiko", "fabric", "invoke", "jinja2", "asyncssh"} & set(found)


def modules_after(program: str) -> list[str]:
    """Return the modules that a fresh interpreter has after a program."""
    tell = "import sys; sys.stderr.write(chr(10).join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", f"{program}\n{tell}"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stderr.splitlines()


def test_blocked_changes_nothing_and_exits_four() -> None:
    assert Blocked("cannot").code == 4


def test_every_verb_is_a_click_command() -> None:
    group = cli.group()
    assert isinstance(group, click.Group)
    assert set(group.commands) == set(VERBS)


def test_a_remote_loads_no_invoke() -> None:
    found = modules_after(
        "from bringup.core.host import Host, Login\n"
        "from bringup.edge.ssh import SshFleet\n"
        "SshFleet({'h': Host('h', Login('h'))}).remote('h')\n"
        "import bringup.edge.ssh_lines"
    )
    assert "paramiko" in found
    assert not {"invoke", "fabric", "asyncio", "unittest"} & set(found)


def test_fabric_loads_after_a_remote() -> None:
    modules_after(
        "from bringup.core.host import Host, Login\n"
        "from bringup.edge.ssh import SshFleet\n"
        "SshFleet({'h': Host('h', Login('h'))}).remote('h')\n"
        "import bringup.edge.ssh_connection, invoke, fabric"
    )
