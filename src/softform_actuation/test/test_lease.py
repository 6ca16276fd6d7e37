"""The lease of a driver: who gets it while somebody has it, and what a commander makes of what the driver says."""

import time

import numpy as np
import pytest

from softform_actuation.clock import Clock
from softform_actuation.lease import LeaseCode, LeasedCommands, LeaseError
from softform_ros.command_lease import KnownLease


class SetClock(Clock):
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.at = 0.0

    def now(self) -> float:
        return self.at


def test_who_lost_the_answer_asks_again_at_once_until_it_has_commanded() -> None:
    commands = LeasedCommands(Clock(), 3.0)
    lost = commands.acquire("collector", 5)
    with pytest.raises(LeaseError, match="'collector' holds the lease"):
        commands.acquire("planner", 6)
    lease = commands.acquire("collector", 5)
    assert lease > lost
    with pytest.raises(LeaseError):
        commands.put("collector", lost, np.zeros(9))
    with pytest.raises(LeaseError):  # the late answer's lease, given back
        commands.require("collector", lost)
    commands.put("collector", lease, np.zeros(9))
    with pytest.raises(LeaseError, match="'collector' holds the lease"):
        commands.acquire("collector", 5)


@pytest.mark.parametrize(("holder", "other"), [(5, 6), (5, 0), (0, 0), (0, 6)])
def test_a_second_program_of_the_same_name_is_reported_and_takes_nothing(holder: int, other: int) -> None:
    commands = LeasedCommands(SetClock(), 3.0)
    lease = commands.acquire("planner", holder)
    with pytest.raises(LeaseError, match="Another program named 'planner' holds the lease"):
        commands.acquire("planner", other)
    commands.put("planner", lease, np.zeros(9))
    assert commands.look() is not None


def test_a_program_that_is_started_again_gets_the_lease_once_that_of_the_killed_one_has_run_out() -> None:
    clock = SetClock()
    commands = LeasedCommands(clock, 3.0)
    killed = commands.acquire("planner", 5)
    assert not commands.expire(2.9)
    with pytest.raises(LeaseError, match="Another program"):
        commands.acquire("planner", 6)
    assert commands.expire(3.1)
    clock.at = 3.1
    lease = commands.acquire("planner", 6)
    assert lease > killed and commands.holder == ("planner", lease)
    clock.at = 5.1
    assert commands.held_for == pytest.approx(2.0)
    commands.end("stop")
    assert commands.held_for == 0.0


def test_a_lease_of_a_driver_that_was_killed_is_known_to_be_dead_from_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever the time of day is then: a clock may be set back between two drivers."""
    for year in (2030, 2020, 2010, 2000):
        monkeypatch.setattr(time, "time_ns", lambda year=year: (year - 1970) * 31_557_600 * 10**9)
        killed = LeasedCommands(Clock(), 3.0)
        known = KnownLease()
        known.grant(killed.acquire("planner"))
        assert not known.note(*killed.holder)
        monkeypatch.setattr(time, "time_ns", lambda year=year: (year - 1971) * 31_557_600 * 10**9)
        after_it = LeasedCommands(Clock(), 3.0)
        assert known.note(*after_it.holder) and known.lease == 0
        known.grant(after_it.acquire("planner"))
        assert not known.note(*after_it.holder)


def test_what_the_driver_said_before_it_gave_a_lease_does_not_end_it() -> None:
    leases = LeasedCommands(Clock(), 3.0)
    said_before = leases.holder
    known = KnownLease()
    known.grant(leases.acquire("planner"))
    assert not known.note(*said_before) and known.lease
    leases.end("stop")
    assert known.note(*leases.holder)


def test_a_lease_is_not_given_for_what_was_asked_for_before_a_stop() -> None:
    leases = LeasedCommands(Clock(), 3.0)
    before = leases.epoch
    leases.begin_epoch()
    with pytest.raises(
        LeaseError, match="stopped, at fault, reset or deactivated after 'planner' was asked"
    ) as rejected:
        leases.acquire("planner", 5, before)
    assert rejected.value.code is LeaseCode.OUTDATED and leases.holder[0] == ""
    with pytest.raises(LeaseError, match="after 'planner' was asked"):  # an epoch of another driver
        leases.acquire("planner", 5, LeasedCommands(Clock(), 3.0).epoch)
    leases.acquire("planner", 5, leases.epoch)
    leases.end("given up")
    leases.acquire("planner", 5)  # decided now


def test_ids_fit_the_messages_and_are_never_none() -> None:
    for _ in range(100):
        lease = LeasedCommands(Clock(), 3.0).acquire("planner")
        assert 2**32 < lease < 2**64
