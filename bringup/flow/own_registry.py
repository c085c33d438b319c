"""Push an image to the registry that the inventory names, for its hosts to pull from there."""

from __future__ import annotations

import re

from ..core.errors import CommandFailed
from ..core.remote import Result
from ..image.route import Cargo
from .pull import logged_in
from .ship_types import Shipping


def own_reference(own: str, cargo: Cargo) -> str:
    return f"{own.rstrip('/')}/{cargo.kept}"


def push_to(shipping: Shipping, cargo: Cargo) -> None:
    """Push to the inventory's registry; layers that it has stay unsent."""
    reference = own_reference(shipping.own_registry, cargo)
    source = shipping.source
    source.tag(cargo.facts.id, reference)
    with logged_in(source, shipping.login, reference) as words:
        result = source.run(*words, "push", reference, seconds=7200)
    if result.exit != 0:
        raise _refused(shipping, reference, result)


def _refused(shipping: Shipping, reference: str, result: Result) -> CommandFailed:
    """Return the error of a push to the inventory's registry; most are about logins."""
    said, server = result.tail(), reference.partition("/")[0]
    denied = re.search("denied|unauthorized|authentication required|no basic auth", said)
    login = f"docker login {server} here and on the hosts, or --login-from VARIABLE"
    return CommandFailed(
        f"cannot push {reference}: exit {result.exit}",
        ran=f"{' '.join(shipping.source.words)} push {reference}", exit_code=result.exit,
        said=said, host=shipping.source.name,
        remedy=login if denied else f"see that {server} (registry: in hosts.yml) answers from here",
    )  # fmt: skip
