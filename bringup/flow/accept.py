"""Put a load on a deployment and keep what came of it, with how far it can be trusted."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ..core.errors import ToolError
from ..core.event import Event
from ..edge import aiperf, http
from ..edge.forward import forwarded
from ..edge.store import load_document, save_document, write_atomic
from ..edge.streams import LoadRun, Place, prompt_tokens
from ..serve.acceptance import SCHEMA, Accepted, document, honesty
from ..serve.aiperf import Aiperf
from ..serve.gaps import Recorded, summarise
from ..serve.load import Limits, Load
from ..serve.metrics import Histogram, gaps, pools, widened
from ..serve.words import prompt
from .look import Looker
from .targets import Target
from .types import Tools

SAMPLE_WORDS = 400
GAUGE_S = 5.0


@dataclass(frozen=True, slots=True)
class Ran:
    """A run with all that it recorded, for plots."""

    accepted: Accepted
    seen: Recorded
    record: str = ""


@dataclass(frozen=True, slots=True)
class Second:
    """A second reader, AIPerf: its program, and the tokenizer that it is to make prompts with."""

    program: str
    tokenizer: str


def second(target: Target, program: str, tokenizer: str) -> Second:
    """Return AIPerf as it is to run; its tokenizer is the model's, where that lies here too.

    Raises UsageError where there is no AIPerf.
    """
    path = target.deployment.model.path
    own = path if Path(path).is_dir() else "builtin"
    return Second(aiperf.find(program), tokenizer or own)


def accept(
    tools: Tools,
    target: Target,
    load: Load,
    limits: Limits,
    *,
    url: str = "",
    via: str = "auto",
    beside: Second | None = None,
) -> Ran:
    """Run a load through the deployment's frontend, then a second reader where there is one."""
    looker = Looker(target, tools.fleet.remote, tools.nonce)
    model = target.deployment.model.served_name
    at = tools.moment()
    with reached(looker, url or looker.frontend, model, via) as (place, through, opener):
        words = _words_a_token(place, at)
        before = _histogram(url or looker.frontend, opener)
        with _gauges(looker) as seen_gauges:
            make = partial(_text, words, at)
            run = LoadRun(load, place, make, partial(_progress, tools, model))
            seen = asyncio.run(run.go())
        after = _histogram(url or looker.frontend, opener)
        other = _read_again(tools, beside, load, place) if beside else None
    between = after.since(before) if after and before else after
    summary = replace(summarise(load, seen, limits), gauges=dict(seen_gauges))
    result = Accepted(
        target.deployment.name, model, at, replace(load, limits=limits), summary,
        honesty(seen, between, through), _context(target), other,
    )  # fmt: skip
    return Ran(result, seen)


def _read_again(tools: Tools, beside: Second, load: Load, place: Place) -> Aiperf:
    tools.listen(Event(place.model, "accept", "AIPerf reads the streams alone"))
    url = f"http://{place.host}:{place.port}"
    return aiperf.run(beside.program, load, url=url, model=place.model, tokenizer=beside.tokenizer)


def _text(words_a_token: float, salt: str, number: int, tokens: int) -> str:
    return prompt(number, max(1, round(tokens * words_a_token)), salt)


def _progress(tools: Tools, model: str, text: str, share: float) -> None:
    tools.listen(Event(model, "accept", text, share))


def _words_a_token(place: Place, salt: str) -> float:
    """Ask the model how many tokens our words are."""
    try:
        counted = asyncio.run(prompt_tokens(place, prompt(-1, SAMPLE_WORDS, salt)))
    except (OSError, ValueError) as error:
        raise ToolError(
            f"cannot get an answer of {place.model} at {place.name}: {error}",
            remedy="see whether it serves: bringup ready --now",
        ) from error
    return SAMPLE_WORDS / counted if counted else 0.75


@contextmanager
def reached(
    looker: Looker, url: str, model: str, via: str
) -> Iterator[tuple[Place, str, http.Opener]]:
    """Yield where requests go: the URL itself, or a port here that a host's line leads on."""
    if not url:
        raise ToolError(
            "cannot find a frontend: the deployment names none", remedy="give one: --url"
        )
    place = Place.of(url, model)
    if via == "direct" or (via == "auto" and _answers(place)):
        yield place, "direct", http.direct
        return
    host = looker.stand()
    opener = looker.dialer(host)
    with forwarded(opener, place.host, place.port) as port:
        led = Place.of(url, model, host="127.0.0.1", port=port)
        yield led, host, opener


def _answers(place: Place) -> bool:
    with (
        contextlib.suppress(OSError),
        socket.create_connection((place.host, place.port), timeout=3),
    ):
        return True
    return False


def _histogram(url: str, opener: http.Opener) -> Histogram | None:
    with contextlib.suppress(ToolError):
        return gaps(http.ask(f"{url.rstrip('/')}/metrics", opener=opener).text)
    return None


@contextmanager
def _gauges(looker: Looker) -> Iterator[dict[str, tuple[float, float]]]:
    """Yield least and most of the workers' pool gauges, read now and then beside the load."""
    seen: dict[str, tuple[float, float]] = {}
    over = threading.Event()

    def watch() -> None:
        while not over.wait(GAUGE_S):
            for worker in looker.target.workers:
                if worker.metrics and not worker.is_front:
                    with contextlib.suppress(ToolError, OSError):
                        opener = looker.dialer(worker.host)
                        told = pools(http.ask(worker.metrics, opener=opener).text)
                        named = {f"{worker.key} {name}": value for name, value in told.items()}
                        seen.update(widened(seen, named))

    thread = threading.Thread(target=watch, name="gauges", daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join(1.0)


def _context(target: Target) -> dict[str, Any]:
    return {
        "workers": [
            {"host": w.host, "role": w.role, "image": w.image, "config": w.config}
            for w in target.workers
        ]
    }


def earlier(tools: Tools, deployment: str) -> list[dict[str, Any]]:
    """Return the results that are kept of a deployment, oldest first."""
    found = []
    for path in sorted(folder_of(tools, deployment).glob("*.json")):
        with contextlib.suppress(ToolError):
            found.append(load_document(path, SCHEMA))
    return found


def folder_of(tools: Tools, deployment: str) -> Path:
    return Path(tools.store.folder) / "acceptance" / deployment


def keep(tools: Tools, ran: Ran, page: str) -> str:
    """Keep a result and its page; return the page's file."""
    run = ran.accepted
    stamp = run.at.replace("-", "").replace(":", "")
    load = run.load.name.replace("*", "-changed")  # a * in a file's name is a shell's
    base = folder_of(tools, run.deployment) / f"{stamp}-{load}"
    save_document(base.with_name(f"{base.name}.json"), document(run))
    html = base.with_name(f"{base.name}.html")
    write_atomic(html, page.encode())
    return str(html)


__all__ = ["Ran", "accept", "earlier", "keep", "second"]
