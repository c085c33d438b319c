"""By which way an image goes to a host: decided from facts, before anything is sent."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bringup.core.reading import Absent, Known, Unknown
from bringup.image.facts import ImageFacts, common_bottom, differing, parse_images
from bringup.image.names import kept_images, previous, to_remove
from bringup.image.route import Cargo, HostImages, Route, Way, cure, human, route

GIB = 1024**3
ID = "sha256:" + "a" * 64
FACTS = ImageFacts(ID, ("one", "two", "three"), size=30 * GIB)
CARGO = Cargo(FACTS, "k3:1", "k3:1-aaaaaaaaaaaa", (10 * GIB, 1 * GIB, 1000))
EMPTY = HostImages(Known(()), Known(900 * GIB), Known(900 * GIB), {})


def holding(*layers: str, **changed: object) -> HostImages:
    image = ImageFacts("sha256:" + "b" * 64, layers)
    return replace(EMPTY, images=Known((image,)), **changed)  # type: ignore[arg-type]


def way(there: HostImages, *, tunnels: bool = True, cargo: Cargo = CARGO) -> Route:
    return route("h", cargo, there, tunnels=tunnels)


@pytest.mark.parametrize(
    ("there", "tunnels", "wanted", "sends"),
    [
        (holding("one", "two"), True, Way.LAYERS, 1000),
        (holding("one"), True, Way.LAYERS, 1 * GIB + 1000),
        (holding("two", "three"), True, Way.PULL, 11 * GIB + 1000),  # not from the bottom
        (EMPTY, True, Way.PULL, 11 * GIB + 1000),
        (EMPTY, False, Way.LAYERS, 11 * GIB + 1000),
        (replace(EMPTY, is_docker=False), True, Way.PULL, 11 * GIB + 1000),
        (replace(EMPTY, is_docker=False), False, Way.ARCHIVE, 11 * GIB + 1000),
    ],
)
def test_cheapest_way_that_works_is_taken(
    there: HostImages, tunnels: bool, wanted: Way, sends: int
) -> None:
    found = way(there, tunnels=tunnels)
    assert (found.way, found.sends, found.trouble) == (wanted, sends, "")


def test_controller_without_a_registry_sends_an_archive() -> None:
    assert way(EMPTY, cargo=replace(CARGO, sizes=())).way is Way.ARCHIVE


def test_registry_of_the_inventory_goes_first() -> None:
    assert route("h", CARGO, EMPTY, tunnels=True, own_registry=True).way is Way.REGISTRY


CONTAINERD = replace(EMPTY, is_containerd=True)


def in_containerd(*layers: str, context: str = "c", tags: tuple[str, ...] = ()) -> HostImages:
    """A host whose engine names images by their manifests."""
    manifest = "sha256:" + "d" * 64
    image = ImageFacts(
        manifest, layers, {"bringup.context": context}, tags=tags, digests=(f"k3@{manifest}",)
    )
    return replace(CONTAINERD, images=Known((image,)))


LABELLED = replace(CARGO, facts=replace(FACTS, labels={"bringup.context": "c"}))


def test_image_under_the_id_of_another_store_is_known_by_its_layers_and_labels() -> None:
    whole = in_containerd(*FACTS.layers, tags=("k3:1", "k3:1-aaaaaaaaaaaa"))
    assert way(whole, cargo=LABELLED).way is Way.SAME
    other = in_containerd(*FACTS.layers, context="another")
    assert way(other, cargo=LABELLED).way is not Way.NAMED


def test_engine_that_loads_whole_archives_only_pulls() -> None:
    assert way(CONTAINERD).way is Way.PULL
    found = way(in_containerd("one", "two"))
    assert (found.way, "containerd's image store" in found.why) == (Way.PULL, True)
    forced = route("h", CARGO, CONTAINERD, tunnels=True, forced=Way.LAYERS)
    assert "take --way pull or archive" in forced.trouble


def test_image_of_a_controller_with_containerds_store_is_known_by_its_description() -> None:
    """Its ID is a manifest's digest there, and the sum of its description on other hosts."""
    manifest = "sha256:" + "e" * 64
    there = replace(CARGO, facts=replace(FACTS, id=manifest), config=FACTS.id)
    assert way(replace(EMPTY, images=Known((FACTS,))), cargo=there).way is Way.NAMED


def test_pull_counts_layers_that_the_host_knows_by_the_bases_digest() -> None:
    base = ImageFacts("sha256:base", FACTS.layers[:2], digests=("team/base@sha256:d",))
    there = replace(EMPTY, images=Known((base,)))
    cargo = replace(CARGO, base_digest="sha256:d", base_layers=2)
    pulled = route("h", cargo, there, tunnels=True, forced=Way.PULL)
    loaded = route("h", CARGO, there, tunnels=True, forced=Way.PULL)
    assert (pulled.sends, loaded.sends) == (1000, 11 * GIB + 1000)
    assert "a pull may not know them" in loaded.why


def test_image_that_is_there_sends_nothing() -> None:
    both = replace(FACTS, tags=("k3:1", "k3:1-aaaaaaaaaaaa"))
    assert way(replace(EMPTY, images=Known((both,)))).way is Way.SAME
    assert way(replace(EMPTY, images=Known((FACTS,)))).way is Way.NAMED


@pytest.mark.parametrize(
    ("there", "words"),
    [
        (replace(EMPTY, images=Unknown("timed out")), "its engine does not answer: timed out"),
        (replace(EMPTY, images=Absent("no engine")), "it has no engine"),
        (replace(EMPTY, free=Known(20 * GIB)), "its engine has 20 GiB free, 30 GiB are needed"),
        (
            holding("one", room=Known(GIB)),
            "its staging folder has 1.0 GiB free, 1.5 GiB are needed",
        ),
    ],
)
def test_host_that_cannot_take_it_is_told_before(there: HostImages, words: str) -> None:
    assert words in way(there).trouble


@pytest.mark.parametrize(
    ("there", "command"),
    [
        (replace(EMPTY, free=Known(GIB)), "bringup image.prune k3 --host h"),
        (holding("one", room=Known(GIB)), "--way pull, which stages nothing"),
        (replace(EMPTY, images=Unknown("permission denied")), "usermod -aG docker LOGIN"),
        (replace(EMPTY, images=Unknown("exit 1", "Is the daemon running?")), "provision --host h"),
        (replace(EMPTY, images=Absent("no engine")), "bringup provision --host h --fix"),
    ],
)
def test_host_that_cannot_take_it_is_told_what_to_do(there: HostImages, command: str) -> None:
    assert command in cure(way(there).trouble, host="h", name="k3")


def test_unknown_space_is_said_and_no_refusal() -> None:
    found = way(replace(EMPTY, free=Unknown("permission denied")))
    assert not found.trouble
    assert "free space of its engine unknown: permission denied" in found.why


def test_layers_count_from_the_bottom_alone() -> None:
    assert common_bottom(("a", "b", "c"), [("a", "b", "x"), ("b", "c")]) == 2


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ({"p": Known("sha256:1"), "d": Known("sha256:1")}, ""),
        ({"p": Known("sha256:1"), "d": Known("sha256:2")}, "d has sha256:2; p has sha256:1"),
        ({"p": Known("sha256:1"), "d": Absent()}, "d: does not have it"),
        ({"p": Known("sha256:1"), "d": Unknown("timed out")}, "d: timed out"),
    ],
)
def test_pair_on_different_or_unknown_images_is_told(found: dict[str, object], why: str) -> None:
    assert differing(found) == why  # type: ignore[arg-type]


def image(digit: str, created: str, *tags: str) -> ImageFacts:
    own = f"k3:1-{digit * 12}"
    return ImageFacts(f"sha256:{digit * 64}", tags=(own, *tags), created=created)


IMAGES = (
    image("a", "2026-01-01"),
    image("b", "2026-01-02"),
    image("c", "2026-01-03", "k3:1"),
    image("d", "2025-12-01", "other:1", "k3:1-eeeeeeeeeeee", "k3:10-dddddddddddd"),
)


def test_only_names_made_of_reference_and_own_id_are_ours() -> None:
    kept = kept_images(IMAGES, "k3:1")
    assert [k.name[-1] for k in kept] == ["c", "b", "a", "d"]
    assert {k.name for k in kept} & {"other:1", "k3:1-eeeeeeeeeeee", "k3:10-dddddddddddd"} == set()


def test_rollback_takes_the_one_before_or_the_one_named() -> None:
    kept = kept_images(IMAGES, "k3:1")
    before, named = previous(kept), previous(kept, to="sha256:dd")
    assert before is not None
    assert named is not None
    assert (before.image.short[0], named.image.short[0]) == ("b", "d")
    assert previous(kept, to="f") is None


def test_prune_never_takes_the_current_one() -> None:
    kept = kept_images(IMAGES, "k3:1")
    assert [k.name[-1] for k in to_remove(kept, keep=1)] == ["a", "d"]
    assert [k.name[-1] for k in to_remove(kept, keep=0)] == ["b", "a", "d"]


@pytest.mark.parametrize("text", ["", "{}", "[1]", '[{"Tags": 1}]', "no json"])
def test_garbage_is_no_list_of_images(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        parse_images(text)


def test_sizes_read_as_people_say_them() -> None:
    said = [human(count) for count in (9, 2048, 81_111, 5_000_000)]
    assert said == ["9 B", "2.0 KiB", "79 KiB", "4.8 MiB"]
