"""Commands that run another one inside a container: of which container, and which command."""

from __future__ import annotations

from collections.abc import Sequence

_VALUES = (
    "-e", "--env", "-u", "--user", "-w", "--workdir", "-v", "--volume", "--name", "--gpus",
    "--runtime", "--network", "--net", "--ipc", "--shm-size", "--ulimit", "--device", "--cap-add",
    "-p", "--publish", "--mount", "--entrypoint", "--env-file", "--security-opt", "--memory", "-m",
    "--cpus", "--pid", "--hostname", "-h", "--restart", "--label", "-l", "--log-opt", "--gpu",
    "--index",
)  # fmt: skip
_POD_VALUES = ("-n", "--namespace", "-c", "--container", "--context", "--kubeconfig")
_ENGINES = ("docker", "podman", "nerdctl", "crictl", "docker-compose")


def entered(program: str, rest: Sequence[str]) -> tuple[str, list[str]] | None:
    """Return the place and the words of the inner command; None where nothing is entered.

    The place is "container NAME" or "image NAME"; it is "" where the line names none.
    """
    if program in ("kubectl", "oc"):
        return _pod(list(rest))
    if program == "nsenter":
        return _process(list(rest))
    words = list(rest)
    if program in _ENGINES and words[:1] in (["compose"], ["container"]):
        words = words[1:]
        while words and words[0].startswith("-"):
            words = words[2:] if words[0] in ("-f", "-p", "--file") else words[1:]
    if program not in _ENGINES or words[:1] not in (["exec"], ["run"]):
        return None
    return _container(words[0], words[1:])


def _container(verb: str, words: list[str]) -> tuple[str, list[str]]:
    entry = ""
    while words and words[0].startswith("-"):
        entry = words[1] if words[0] == "--entrypoint" and len(words) > 1 else entry
        takes = words[0] in _VALUES and len(words) > 1
        words = words[2:] if takes else words[1:]
    if not words:
        return "", []
    place = f"{'container' if verb == 'exec' else 'image'} {words[0]}"
    return place, [*([entry] if entry else []), *words[1:]]


def _process(words: list[str]) -> tuple[str, list[str]] | None:
    """Read ``nsenter -t 4242 -m COMMAND``: the files are those of the process's container."""
    number, flags = "", ""
    while words and words[0].startswith("-"):
        word = words.pop(0)
        if word in ("-t", "--target") and words:
            number = words.pop(0)
        elif word.startswith("--target="):
            number = word.partition("=")[2]
        flags += {"--mount": "m", "--all": "a"}.get(word, "" if word.startswith("--") else word)
    if not (number and words):
        return None
    return (f"container PID {number}" if set("ma") & set(flags) else "", words)


def _pod(words: list[str]) -> tuple[str, list[str]] | None:
    """Read ``kubectl -n NAMESPACE exec POD -c NAME -- COMMAND``."""
    if "exec" not in words or "--" not in words:
        return None
    cut = words.index("--")
    head, inner = words[:cut], words[cut + 1 :]
    names = [
        word
        for place, word in enumerate(head)
        if not word.startswith("-") and word != "exec" and head[place - 1 : place] not in _TAKING
    ]
    return (f"container {names[0].removeprefix('pod/')}", inner) if names else None


_TAKING = [[flag] for flag in _POD_VALUES]
