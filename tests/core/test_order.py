"""Which hosts of a deployment an order means."""

from __future__ import annotations

import pytest

from bringup.flow.open import read_inventory
from bringup.flow.types import Order


@pytest.mark.parametrize(
    ("named", "meant"),
    [
        (("b300-04",), {"kimi-k3": ("b300-04",)}),
        (("b300-04", "b300-07"), {"kimi-k3": ()}),
        ((), {}),
    ],
    ids=["one of a pair", "the whole pair", "nothing"],
)
def test_a_deployment_is_meant_as_a_whole_only_where_all_its_hosts_are_named(
    named: tuple[str, ...], meant: dict[str, tuple[str, ...]]
) -> None:
    inventory = read_inventory("inventory")
    deployment = inventory.deployments["kimi-k3"]
    order = Order(
        inventory,
        tuple(inventory.hosts[name] for name in named),
        {role_host: deployment for role in deployment.roles for role_host in role.hosts},
    )
    assert order.served() == meant
