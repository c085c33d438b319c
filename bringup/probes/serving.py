"""What a frontend lists, who registered with it, and whether both sides have the model's files."""

from __future__ import annotations

from dataclasses import dataclass

from ..core.reading import Reading
from .parts import NOT_ASKED

NO_ANSWER = "nothing until the limit"


@dataclass(frozen=True, slots=True)
class Serving:
    """Answers of the frontend and the two sides' model folders; no probe asks them by itself.

    `models` are names that `/v1/models` lists, `instances` are "component/endpoint". `*_files` are
    names in the folder `model_path`, absent where there is no such folder.
    """

    models: Reading[tuple[str, ...]] = NOT_ASKED
    instances: Reading[tuple[str, ...]] = NOT_ASKED
    worker_files: Reading[tuple[str, ...]] = NOT_ASKED
    frontend_files: Reading[tuple[str, ...]] = NOT_ASKED
    model_path: str = ""
    served_name: str = ""
    command: tuple[str, ...] | None = None  # of a worker, as its process shows it
    prefill_command: tuple[str, ...] | None = None
    decode_command: tuple[str, ...] | None = None
    answer: str = ""  # how a request ended: "HTTP 503", or NO_ANSWER
    hub_offline: bool | None = None
    said: tuple[str, ...] | None = None  # telling lines of the frontend's log
