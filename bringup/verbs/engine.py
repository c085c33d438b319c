"""Verbs about engines: what a version accepts, and which topology suits a deployment."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from ..core.errors import Exit, UsageError
from ..core.verb import Help, Verb
from ..options.hosts import Hosts, HostSelection, Workspace
from ..report.screen import Screen

Package = Annotated[str, Help("sglang, vllm, dynamo.sglang, dynamo.vllm, dynamo.frontend, …")]


@dataclass(frozen=True, slots=True, kw_only=True)
class UsualLoad:
    """The usual load of a deployment and its goals; 0 is not known, or no goal."""

    input_tokens: Annotated[int, Help("usual length of a prompt, tokens")] = 0
    output_tokens: Annotated[int, Help("usual length of an answer, tokens")] = 0
    concurrency: Annotated[int, Help("requests at a time")] = 0
    requests_s: Annotated[float, Help("requests that arrive each second")] = 0
    first_token_ms: Annotated[float, Help("goal: until the first token, ms")] = 0
    token_gap_ms: Annotated[float, Help("goal: 95th percentile between tokens, ms")] = 0
    prefill_tokens_s: Annotated[float, Help("measured prefill rate of one worker, tokens/s")] = 0
    reuse: Annotated[float, Help("share of a prompt that was seen before, 0 to 1")] = 0


def engine_inspect(
    screen: Screen,
    image: Annotated[str, Help("image on the host, as repository:tag")],
    *,
    host: Hosts = (),
    package: Annotated[tuple[str, ...], Help("package to ask; repeatable")] = (
        "dynamo.sglang",
        "sglang",
    ),
    cdi: Annotated[bool, Help("give the container its GPUs by CDI")] = False,
    workspace: Workspace,
) -> Exit:
    """Ask an image which flags its engine accepts; later checks believe it over published lists.

    Starts one container on the host, which prints versions and --help and is removed again.
    """
    from ..edge.engine import Engine
    from ..flow.engine import inspect
    from ..flow.open import choose, read_inventory, tools_for
    from ..report.engine import inspected_view

    known = read_inventory(workspace.inventory)
    hosts = choose(known, HostSelection(host=host))
    if len(hosts) != 1:
        raise UsageError(f"cannot ask {len(hosts)} hosts at once", remedy="name one: --host NAME")
    with tools_for(known, workspace, screen.tell) as tools:
        engine = Engine(tools.fleet.remote(hosts[0].name), name=hosts[0].name)
        found = inspect(tools, engine, image, package, cdi=cdi)
    screen.show(inspected_view(found))
    screen.emit({"schema": "bringup.inspected/1", "image": image, "packages": list(found)})
    return Exit.DONE if all(one.schema for one in found) else Exit.FAILED


def engine_schema(
    screen: Screen,
    package: Package,
    version: Annotated[str, Help("version that the source is of")],
    *,
    help_text: Annotated[str, Help("file with what its --help printed")] = "",
    source: Annotated[str, Help("wheel, or folder with an unpacked one")] = "",
    into: Annotated[str, Help("write PACKAGE-VERSION.json into this folder")] = "",
) -> Exit:
    """Make the list of flags and variables of one engine version.

    A help text gives exact forms and choices; a wheel adds the variables. With both, the flags
    come from the help and the variables from the wheel.
    """
    from ..edge.schema_source import make
    from ..edge.store import write_atomic
    from ..engines.schema import dump

    made = make(package, version, help_text=help_text, source=source)
    if into:
        path = Path(into) / f"{package}-{version}.json"
        write_atomic(path, dump(made).encode())
        screen.show(f"wrote {path}: {len(made.flags)} flags")
    else:
        screen.show(dump(made))
    screen.emit({"schema": "bringup.engine-schema/1", "flags": len(made.flags)})
    return Exit.DONE


def topology_advise(
    screen: Screen,
    deployment: Annotated[str, Help("deployment of the inventory")],
    *,
    load: UsualLoad,
    aiconfigurator: Annotated[str, Help("file with aiconfigurator's output, as a witness")] = "",
    workspace: Workspace,
) -> Exit:
    """Argue for copies, tensor parallel, or prefill and decode apart, with figures.

    Looks at the deployment's hosts; changes nothing. Says what would change its mind.
    """
    from ..engines.topology import aiconfigurator as verdict
    from ..engines.topology_load import Workload
    from ..flow.topology import advise_on
    from ..report.engine import advice_view

    if load.input_tokens < 1 or load.output_tokens < 1:
        raise UsageError(
            "cannot argue without lengths", remedy="give --input-tokens and --output-tokens"
        )
    witness = verdict(Path(aiconfigurator).read_text()) if aiconfigurator else None
    workload = Workload(
        load.input_tokens, load.output_tokens, load.concurrency or None, load.requests_s or None,
        token_gap_ms=load.token_gap_ms or None, first_token_ms=load.first_token_ms or None,
        prefill_tokens_s=load.prefill_tokens_s or None, reuse=load.reuse,
    )  # fmt: skip
    advice, subject = advise_on(workspace, deployment, workload, witness, screen.tell)
    screen.show(advice_view(advice))
    screen.emit({"schema": "bringup.advice/1", "advice": advice, "subject": subject})
    return Exit.DONE


VERBS = (
    Verb("engine.inspect", engine_inspect),
    Verb("engine.schema", engine_schema),
    Verb("topology.advise", topology_advise, reads_only=True),
)
