"""How a host's key was trusted stands among the facts, and moves no digest."""

from __future__ import annotations

from bringup.core.facts import Facts
from bringup.core.reading import Known
from bringup.core.remote import Trusted
from bringup.flow.provision import facts_digest
from bringup.probes.access import HostKey, trusting


def test_key_accepted_is_a_fact_of_the_host() -> None:
    facts = trusting(Facts(), Trusted("first use", "SHA256:abc"))
    assert facts[HostKey] == Known(HostKey("first use", "SHA256:abc"), "first use: SHA256:abc")


def test_host_that_no_key_speaks_for_gains_no_fact() -> None:
    assert trusting(Facts(), None) == Facts()


def test_a_plan_made_at_first_use_stays_true_once_the_key_is_known() -> None:
    first, known = (trusting(Facts(), Trusted(by, "SHA256:abc")) for by in ("first use", "known"))
    assert facts_digest(first) == facts_digest(known)
