"""The host's clock against the controller's."""

from __future__ import annotations

import pytest

from bringup.core.facts import Facts
from bringup.core.reading import Known
from bringup.core.script import Section
from bringup.probes.clock import Clock, parse, timed
from bringup.probes.rdma import LaterLinkCounters


def facts(epoch: float, *, uptime: float | None = None, last: float | None = None) -> Facts:
    told = Facts().replace(Clock, Known(Clock(epoch_s=epoch, uptime_s=uptime)))
    return told if last is None else told.replace(LaterLinkCounters, Known(LaterLinkCounters(last)))


def clock(of: Facts) -> Clock:
    reading = of[Clock]
    assert isinstance(reading, Known)
    return reading.value


def test_a_lead_is_uncertain_by_half_of_the_trip() -> None:
    found = clock(timed(facts(1001.0), 1000.0, 1002.0))
    assert found.offset_s == pytest.approx(0.0)
    assert found.uncertain_s == pytest.approx(1.0)


def test_the_last_word_of_the_host_takes_its_own_work_out_of_the_doubt() -> None:
    """Asked at 1000, the clock spoke at 1000.1, the last section 1.8 s later, back at 1002."""
    found = clock(timed(facts(1000.1, uptime=50.0, last=51.8), 1000.0, 1002.0))
    assert found.uncertain_s == pytest.approx(0.1)
    assert found.offset_s == pytest.approx(0.0)


def test_a_host_ahead_of_us_leads() -> None:
    found = clock(timed(facts(1007.1, uptime=50.0, last=51.8), 1000.0, 1002.0))
    assert found.offset_s == pytest.approx(7.0)


def test_chrony_outweighs_timedatectl() -> None:
    text = (
        "timedatectl NTPSynchronized=no\nchronyc Leap status     : Normal\n"
        "chronyc System time     : 0.000012 seconds slow of NTP time\nepoch 1795969409.66\n"
    )
    reading = parse(Section("clock", 0, text))
    assert isinstance(reading, Known)
    assert (reading.value.synchronized, reading.value.by) == (True, "chronyc")
