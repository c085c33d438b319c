"""A container engine, driven by its own command over a `Remote`: docker, podman or buildah."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from subprocess import PIPE, Popen, TimeoutExpired

from ..core.errors import Blocked, CommandFailed
from ..core.reading import Known, Reading, Unknown
from ..core.remote import Remote, Result
from ..core.script import Section
from ..core.steps import Run
from ..core.words import Word, shown
from ..image.facts import ImageFacts, parse_image, parse_images

OnLine = Callable[[str], None]


class Builder(Enum):
    """How an image is built. Podman and buildah are for hosts without docker."""

    BUILDKIT = "buildkit"
    CLASSIC = "classic"
    PODMAN = "podman"
    BUILDAH = "buildah"


@dataclass(frozen=True, slots=True)
class Engine:
    """The engine of one host. `words` start every command; environment goes before them."""

    remote: Remote
    words: tuple[str, ...] = ("docker",)
    name: str = "controller"

    @property
    def is_docker(self) -> bool:
        return "docker" in self.words[0]

    def run(
        self,
        *words: Word,
        stdin: bytes = b"",
        seconds: int = 120,
        on_line: OnLine | None = None,
        environment: tuple[str, ...] = (),
    ) -> Result:
        """Run one engine command; its exit code is data."""
        prefix = ("env", *environment) if environment else ()
        action = Run((*prefix, *self.words, *words), seconds, input=stdin)
        return self.remote.run(action, on_line=on_line)

    def do(self, *words: Word, why: str, stdin: bytes = b"", seconds: int = 120) -> str:
        """Run one engine command that must succeed; raises CommandFailed starting with `why`."""
        result = self.run(*words, stdin=stdin, seconds=seconds)
        if result.exit != 0:
            raise CommandFailed(
                f"{why}: exit {result.exit}",
                ran=shown((*self.words, *words)),
                exit_code=result.exit,
                said=result.tail(),
                host=self.name,
            )
        return result.stdout

    def silent(self, cannot: str, reading: Unknown) -> Blocked:
        """Return the error of an engine that does not answer, starting with `cannot`."""
        said = reading.evidence
        if "permission denied" in f"{reading.why} {said}".lower():
            cure = "let this user use docker: usermod -aG docker USER, then log in again"
        elif "daemon" in said:
            cure = "start it (systemctl start docker), or name another one: --engine, --on HOST"
        else:
            cure = "install docker, or name an engine: --engine podman, --on HOST"
        return Blocked(f"{cannot}: {reading.why}", host=self.name, said=said, remedy=cure)

    def image(self, reference: str) -> Reading[ImageFacts]:
        """Return an image by name or ID: known, surely absent, or nobody could look."""
        result = self.run("image", "inspect", reference, seconds=60)
        said = result.stdout if result.exit == 0 else result.stdout + result.stderr
        return parse_image(Section("image", result.exit, said))

    def images(self) -> tuple[ImageFacts, ...]:
        """Return every image that has a name or lies under one."""
        listed = self.do("image", "ls", "--quiet", "--no-trunc", why="cannot list images")
        identities = sorted(set(listed.split()))
        if not identities:
            return ()
        return parse_images(self.do("image", "inspect", *identities, why="cannot read images"))

    def tag(self, source: str, reference: str) -> None:
        self.do("tag", source, reference, why=f"cannot tag {reference}")

    def untag(self, reference: str) -> None:
        """Take a name away; the image stays while it has another. A missing name is fine."""
        self.run("image", "rm", "--no-prune", reference)

    def make_folder(self) -> str:
        """Make a private temporary folder beside the engine; raises CommandFailed."""
        made = self.remote.run(Run(("mktemp", "-d")))
        folder = made.stdout.strip()
        if made.exit != 0 or not folder.startswith("/"):
            raise CommandFailed(
                "cannot make a temporary folder", ran="mktemp -d", exit_code=made.exit,
                said=made.tail(), host=self.name,
            )  # fmt: skip
        return folder

    def remove_folder(self, folder: str) -> None:
        self.remote.run(Run(("rm", "-rf", folder)))

    def save(self, reference: str, path: Path, packer: str, *, seconds: int = 7200) -> None:
        """Write an archive to a file of this machine, whose engine it must be.

        `packer` is gzip or zstd, at its fastest, on all processors where it can. Raises
        CommandFailed, also where it takes longer than `seconds`.
        """
        options = ("-1", "-T0") if packer == "zstd" else ("-1",)
        words = (*self.words, "save", reference)
        saved, packed, said = _piped(words, (packer, "-c", *options), path, seconds)
        if packed or saved:
            raise CommandFailed(
                f"cannot save {reference}: "
                + (f"{packer} ended with {packed}" if packed else f"exit {saved}"),
                ran=f"{' '.join(words)} | {packer} >{path}",
                exit_code=packed or saved,
                said=said,
                host=self.name,
                remedy=f"df -h {path.parent} (TMPDIR names another folder), or ship by another way",
            )

    def version(self, part: str = "Server") -> Reading[str]:
        """Return the version of the engine's server, which shows that it answers, or client."""
        result = self.run("version", "--format", "{{json .}}", seconds=30)
        if result.exit != 0:
            return Unknown(f"the engine does not answer: {result.tail(1)}")
        try:
            document = json.loads(result.stdout)
        except ValueError:
            return Unknown("its version does not read", result.tail(1))
        found = document.get(part) or document.get("Client") or {}
        return Known(str(found.get("Version", "")))

    def builder(self) -> Builder:
        """Return the best builder that is there: BuildKit, classic, podman's."""
        if not self.is_docker:
            return Builder.PODMAN
        if self.run("buildx", "version", seconds=30).exit == 0:
            return Builder.BUILDKIT
        version = self.version("Client")
        major = re.match(r"\d+", version.value) if isinstance(version, Known) else None
        # Before 23, docker's client had BuildKit built in; from 23 on it needs the plug-in.
        is_old = major is not None and 18 < int(major[0]) < 23
        return Builder.BUILDKIT if is_old else Builder.CLASSIC

    def build(
        self,
        context: bytes,
        *,
        tag: str,
        labels: Mapping[str, str],
        arguments: Mapping[str, str],
        builder: Builder,
        network: str = "",
        cache_from: str = "",
        seconds: int = 7200,
        on_line: OnLine | None = None,
    ) -> Result:
        """Build a context sent as a tar; its exit code is data, its log comes line by line."""
        options = (
            "--tag", tag,
            *(w for k, v in sorted(labels.items()) for w in ("--label", f"{k}={v}")),
            *(w for k, v in sorted(arguments.items()) for w in ("--build-arg", f"{k}={v}")),
            *(("--network", network) if network else ()),
        )  # fmt: skip
        if builder in (Builder.BUILDKIT, Builder.CLASSIC):
            modern = builder is Builder.BUILDKIT
            more = ("--progress", "plain") if modern else _cache(cache_from)
            return self.run(
                "build", *options, *more, "-",
                stdin=context, seconds=seconds, on_line=on_line,
                environment=(f"DOCKER_BUILDKIT={int(modern)}",),
            )  # fmt: skip
        return self._build_unpacked(context, options, builder, seconds, on_line)

    def _build_unpacked(
        self,
        context: bytes,
        options: tuple[str, ...],
        builder: Builder,
        seconds: int,
        on_line: OnLine | None,
    ) -> Result:
        """Podman and buildah read no tar from standard input: unpack it, build, clean up."""
        folder = self.make_folder()
        # A chroot needs no runtime that agrees with the host's control groups, but has its network.
        isolation = "oci" if "--network" in options and "host" not in options else "chroot"
        try:
            unpacked = self.remote.run(Run(("tar", "-x", "-C", folder), 600, input=context))
            if unpacked.exit != 0:
                return unpacked
            program, verb = (
                ("buildah", "bud") if builder is Builder.BUILDAH else ("podman", "build")
            )
            same_store = replace(self, words=(program, *self.words[1:]))
            return same_store.run(
                verb, "--isolation", isolation, "--pull=never", "--format", "docker",
                *options, folder, seconds=seconds, on_line=on_line,
            )  # fmt: skip
        finally:
            self.remove_folder(folder)

    def ask(
        self,
        image: str,
        words: tuple[str, ...],
        *,
        stdin: bytes = b"",
        gpus: bool = False,
        seconds: int = 900,
    ) -> Result:
        """Run one command in a fresh container without a network, and throw the container away."""
        options = ("--gpus", "all") if gpus and self.is_docker else ()
        return self.run(
            "run", "--rm", "--interactive", "--network", "none", *options,
            "--entrypoint", words[0], image, *words[1:],
            stdin=stdin, seconds=seconds,
        )  # fmt: skip


def _piped(
    words: tuple[str, ...], packer: tuple[str, ...], path: Path, seconds: int
) -> tuple[int, int, str]:
    """Write what one program says through another into a file; return how both ended."""
    with (
        path.open("wb") as file,
        _ended(Popen(words, stdout=PIPE)) as first,
        _ended(Popen(packer, stdin=first.stdout, stdout=file, stderr=PIPE)) as second,
    ):
        assert first.stdout is not None
        first.stdout.close()  # else the first writes for ever where the second is gone
        try:
            said = second.communicate(timeout=seconds)[1].decode(errors="replace").strip()
            return first.wait(), second.returncode, said
        except TimeoutExpired:
            return 0, 124, f"stopped: ran longer than {seconds} s"


@contextmanager
def _ended(process: Popen[bytes]) -> Iterator[Popen[bytes]]:
    """Give a process of this machine, and kill it where it outlives the work with it."""
    with process:
        try:
            yield process
        finally:
            process.kill()


def _cache(reference: str) -> tuple[str, ...]:
    return ("--cache-from", reference) if reference else ()
