"""Signs: words for states of a deployment, which rows of the catalogue ask for.

One place declares them; `watch` and `verdict` give them, `failures/*.yml` uses them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

SIGNS: Mapping[str, str] = MappingProxyType(
    {
        "container.exited": "the worker's container or process has ended",
        "container.exit": "its exit code is that, as container.exit=2",
        "container.oom": "it was ended for lack of memory",
        "container.not-oom": "it was ended, and not for lack of memory",
        "container.loop": "it was restarted three times or more while we waited",
        "container.gone": "there is no container or process of it",
        "etcd.down": "etcd does not answer a worker's host",
        "nats.down": "NATS does not answer a worker's host",
        "frontend.down": "the frontend does not answer",
        "worker.unregistered": "its engine has said that it is up, and etcd has nothing of it",
        "worker.dynamo": "the deployment's workers are to register with Dynamo",
        "worker.unreachable": "an announced address does not answer from a host of the deployment",
        "cards.none": "nobody has registered",
        "cards.some": "some roles have registered, not all",
        "cards.complete": "every role of the deployment has registered",
        "cards.names-differ": "prefill and decode have registered under different names",
        "cards.namespaces-differ": "prefill and decode have registered in different namespaces",
        "cards.other-name": "workers of this deployment registered under another name",
        "cards.other-namespace": "workers registered in another namespace than the deployment's",
        "peers.up": "every worker runs, and its engine has said that it is up",
        "transport.nats": "workers announce a NATS address",
        "list.empty": "/v1/models does not list the model",
        "listed": "/v1/models lists the model",
        "ready.404": "/v1/models/NAME/ready does not know the model",
        "ready.missing": "/v1/models/NAME/ready misses a role",
        "chat.error": "a chat completion gave an error",
        "chat.silent": "a chat completion gave nothing until its limit",
        "chat.empty": "a chat completion ended without a token",
        "paired.no": "one request did not pass through both workers",
    }
)


def said(signs: Iterable[str]) -> str:
    """Return signs in words, as the evidence of a state."""
    return "; ".join(_said(*sign.partition("=")) for sign in signs)


def _said(name: str, _equals: str, value: str) -> str:
    return f"exit code {value}" if name == "container.exit" else SIGNS.get(name, name)
