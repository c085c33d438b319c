"""Every flag and variable that is rendered exists in every version that is shipped."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import pytest

from bringup.core.host import Deployment, Image
from bringup.core.rules import Level, judge
from bringup.engines import ENGINES
from bringup.engines.engine import CommandLine
from bringup.engines.knobs import knobs_of
from bringup.engines.schema import Schema, dump, hold, parse, shipped
from bringup.engines.settle import settled
from bringup.engines.spec import specify
from bringup.rules import fallbacks

from .situations import DP2, K3, PD1, TP2, world

DYNAMO_OF = {"0.5.9": "1.3.0.post1", "0.5.14": "1.3.0.post1", "0.5.15.post1": "1.3.0.post1",
             "0.5.17": "1.3.0.post1", "0.5.18": "1.3.0.post1", "0.5.21": "1.6.1",
             "0.5.23": "1.6.1", "0.23.0": "1.3.0.post1", "0.31.0": "1.6.1"}  # fmt: skip


def with_versions(deployment: Deployment, engine: str, version: str) -> Deployment:
    image = replace(
        deployment.image, engine_version=version, dynamo_version=DYNAMO_OF.get(version, "1.6.1")
    )
    roles = tuple(
        replace(role, knobs={n: v for n, v in role.knobs.items() if n in knobs_of(engine)})
        for role in deployment.roles
    )
    return replace(deployment, engine=engine, image=image, roles=roles)


def line_of(deployment: Deployment, role: str) -> CommandLine:
    seen = world(deployment, role)
    findings = judge(fallbacks.ROWS, seen)
    assert seen.role is not None
    decisions = settled(seen, findings)
    made = specify(ENGINES[deployment.engine], deployment, seen.role, seen, decisions, peers={})
    return made.command


def small(deployment: Deployment) -> Deployment:
    """The pair of the K3 report without what only Kimi K3 and newer versions have."""
    model = replace(deployment.model, architecture="", draft_path="")
    roles = tuple(replace(role, knobs={}) for role in deployment.roles)
    image = Image("plain", "plain:1", engine_version=deployment.image.engine_version, nvcc="none")
    return replace(deployment, model=model, roles=roles, image=image)


@cache
def cases() -> list[tuple[Deployment, str]]:
    found: list[tuple[Deployment, str]] = []
    for schema in shipped():
        if schema.package == "sglang":
            newest = schema.key >= hold("sglang", "0.5.17").lists[0].key
            base = K3 if newest else small(K3)
            found += [(with_versions(base, "dynamo.sglang", schema.version), role.name)
                      for role in base.roles]  # fmt: skip
            plain = small(K3)
            found += [(with_versions(plain, "dynamo.sglang", schema.version), role.name)
                      for role in plain.roles]  # fmt: skip
        if schema.package == "vllm":
            for base in (DP2, TP2, PD1):
                found += [(with_versions(base, "vllm", schema.version), r.name)
                          for r in base.roles]  # fmt: skip
            found += [(with_versions(PD1, "dynamo.vllm", schema.version), r.name)
                      for r in PD1.roles]  # fmt: skip
    return found


def name(case: tuple[Deployment, str]) -> str:
    deployment, role = case
    return f"{deployment.engine}-{deployment.image.engine_version}-{deployment.name}-{role}"


@pytest.mark.parametrize("case", cases(), ids=name)
def test_every_rendered_word_exists_in_that_version(case: tuple[Deployment, str]) -> None:
    deployment, role = case
    engine = ENGINES[deployment.engine]
    found = engine.check(line_of(deployment, role), engine.versions(deployment))
    # A layout that old versions lack is refused by a rule before; the check says so as well.
    wrong = [f.evidence[0] for f in found if f.level in (Level.BLOCK, Level.WARN)]
    too_old = [w for w in wrong if "VLLM_SSM_CONV_STATE_LAYOUT" in w]
    assert [w for w in wrong if w not in too_old] == []
    assert not too_old or any(
        f.id == "hybrid-nixl-layout" and f.level is Level.BLOCK
        for f in judge(fallbacks.ROWS, world(deployment, role))
    )


@pytest.mark.parametrize("schema", shipped(), ids=lambda s: f"{s.package}-{s.version}")
def test_a_shipped_list_survives_being_written_again(schema: Schema) -> None:
    assert parse(dump(schema)) == schema
    json.loads(dump(schema))
