"""Why is it so: rules, knobs and flags, and the chain that led to them on a host."""

from __future__ import annotations

from typing import Annotated

from ..core.errors import Exit
from ..core.verb import Help, Verb
from ..options.hosts import DeploymentName, Hosts, HostSelection, Workspace
from ..report.screen import Screen


def explain(
    screen: Screen,
    name: Annotated[
        str, Help("a check, rule, knob, variable, or flag, as --tp-size", may_be_flag=True)
    ] = "",
    *,
    host: Hosts = (),
    deployment: DeploymentName = "",
    workspace: Workspace,
) -> Exit:
    """Tell what a rule, knob or flag is about, and with --host why it is so there.

    Without a name it lists every check, rule and knob. Without --host nothing is contacted:
    reason, remedy, source, engines and versions. With --host the host and its peers are looked at,
    and the chain from fact to flag is shown.
    """
    from ..report.explain import explanation_view

    name = name.partition("=")[0]  # --tp-size=8, as it stands in a script
    if not name:
        from ..engines.explain import contents

        found = contents()
    elif host:
        from ..flow.explain import explain_there

        wanted = HostSelection(host=host)
        found = explain_there(workspace, wanted, deployment, name, screen.tell)
    else:
        from ..engines.explain import explain as explain_anywhere

        found = (explain_anywhere(name),)
    screen.show(*(explanation_view(one) for one in found))
    for one in found:
        screen.emit({"schema": "bringup.explanation/1", "explanation": one})
    return Exit.DONE


VERBS = (Verb("explain", explain, reads_only=True),)
