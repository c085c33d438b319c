"""The login of an own registry, named in the inventory by the variable that holds it."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from bringup.core.errors import InventoryError, UsageError
from bringup.core.host import Host, Login
from bringup.core.steps import Carry
from bringup.edge.engine import Engine
from bringup.flow.freight import ImageFreight
from bringup.flow.image_open import registry_login
from bringup.flow.open import read_inventory
from bringup.flow.ship_types import Shipping

from .here import Here

HOSTS = (
    "registry: registry.example.com:5000\nregistry_login: {variable}\nhosts: {{b300-04: {{}}}}\n"
)


def test_the_inventory_names_the_variable(tmp_path: Path) -> None:
    (tmp_path / "hosts.yml").write_text(HOSTS.format(variable="REGISTRY_LOGIN"))
    known = read_inventory(str(tmp_path))
    assert (known.registry, known.registry_login) == (
        "registry.example.com:5000", "REGISTRY_LOGIN",
    )  # fmt: skip


def test_a_login_itself_is_refused_in_the_inventory(tmp_path: Path) -> None:
    (tmp_path / "hosts.yml").write_text(HOSTS.format(variable="'shipper:open sesame'"))
    with pytest.raises(InventoryError, match="registry_login") as refused:
        read_inventory(str(tmp_path))
    told = f"{refused.value.message} {refused.value.said}"
    assert "name of an environment variable" in told
    assert "sesame" not in told


def test_a_run_asks_for_the_login_when_it_carries_an_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REGISTRY_LOGIN", raising=False)
    shipping = Shipping(Engine(Here(), ("docker",), "here"), {}, tmp_path)
    freight = ImageFreight(shipping, None, ExitStack(), login_from="REGISTRY_LOGIN")
    with pytest.raises(UsageError, match="REGISTRY_LOGIN does not hold user:password"):
        freight.carry(Host("b300-04", Login("")), Carry("k3", "k3:1", "sha256:a"))


def test_a_password_may_hold_a_colon() -> None:
    login = registry_login("REGISTRY_LOGIN", {"REGISTRY_LOGIN": "shipper:open:sesame"})
    assert login is not None
    assert (login.user, login.password.reveal) == ("shipper", "open:sesame")
