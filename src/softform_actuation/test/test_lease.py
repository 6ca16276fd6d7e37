"""The lease of a driver: who gets it while somebody has it, and what a commander makes of what the driver says."""

import math
import time

import numpy as np
import pytest

from softform_actuation.clock import Clock
from softform_actuation.lease import Asked, Grant, LeaseCode, LeasedCommands, LeaseError
from softform_ros.command_lease import Held, KnownLease

ROBOT = "membrane"


def ask(leases: LeasedCommands, source: str, client: int = 0) -> Grant:
    return leases.acquire(source, client, Asked(0.0, leases.epoch), ROBOT)


class SetClock(Clock):
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.at = 0.0

    def now(self) -> float:
        return self.at


def test_who_lost_the_answer_asks_again_at_once_until_it_has_commanded() -> None:
    commands = LeasedCommands(Clock(), 3.0, ROBOT)
    lost = ask(commands, "collector", 5)
    with pytest.raises(LeaseError, match="^'collector' holds the lease") as rejected:
        ask(commands, "planner", 6)
    assert rejected.value.code is LeaseCode.HELD
    lease = ask(commands, "collector", 5)
    assert lease.lease == lost.lease + 1
    with pytest.raises(LeaseError):
        commands.put("collector", lost, np.zeros(9))
    with pytest.raises(LeaseError):  # the late answer's lease, given back
        commands.require("collector", lost)
    commands.put("collector", lease, np.zeros(9))
    with pytest.raises(LeaseError, match="'collector' holds the lease"):
        ask(commands, "collector", 5)


@pytest.mark.parametrize(("holder", "other"), [(5, 6), (5, 0), (0, 0), (0, 6)])
def test_a_second_program_of_the_same_name_is_reported_and_takes_nothing(holder: int, other: int) -> None:
    commands = LeasedCommands(SetClock(), 3.0, ROBOT)
    lease = ask(commands, "planner", holder)
    with pytest.raises(LeaseError, match="Another program named 'planner' holds the lease"):
        ask(commands, "planner", other)
    commands.put("planner", lease, np.zeros(9))
    assert commands.look() is not None


def test_a_program_that_is_started_again_gets_the_lease_once_that_of_the_killed_one_has_run_out() -> None:
    clock = SetClock()
    commands = LeasedCommands(clock, 3.0, ROBOT)
    killed = ask(commands, "planner", 5)
    assert not commands.expire(2.9)
    with pytest.raises(LeaseError, match="Another program"):
        ask(commands, "planner", 6)
    assert commands.expire(3.1)
    clock.at = 3.1
    lease = ask(commands, "planner", 6)
    assert lease > killed and commands.holder == ("planner", lease.lease)
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
        killed = LeasedCommands(Clock(), 3.0, ROBOT)
        known = KnownLease()
        known.grant(Held(*ask(killed, "planner"), killed.epoch))
        assert not known.note(*killed.holder)
        monkeypatch.setattr(time, "time_ns", lambda year=year: (year - 1971) * 31_557_600 * 10**9)
        after_it = LeasedCommands(Clock(), 3.0, ROBOT)
        assert known.note(*after_it.holder) and known.held == Held()
        known.grant(Held(*ask(after_it, "planner"), after_it.epoch))
        assert not known.note(*after_it.holder)


def test_what_the_driver_said_before_it_gave_a_lease_does_not_end_it() -> None:
    leases = LeasedCommands(Clock(), 3.0, ROBOT)
    said_before = leases.holder
    known = KnownLease()
    known.grant(Held(*ask(leases, "planner"), leases.epoch))
    assert not known.note(*said_before) and known.held.lease
    leases.end("stop")
    assert known.note(*leases.holder)


def test_a_lease_is_not_given_for_what_was_asked_for_before_a_stop() -> None:
    leases = LeasedCommands(Clock(), 3.0, ROBOT)
    before = leases.epoch
    leases.begin_epoch()
    with pytest.raises(LeaseError, match="before the robot was made safe, was at fault, or was reset") as rejected:
        leases.acquire("planner", 5, Asked(0.0, before), ROBOT)
    assert rejected.value.code is LeaseCode.OUTDATED and leases.holder[0] == ""
    with pytest.raises(LeaseError, match="before the robot was made safe"):  # an epoch of another driver
        leases.acquire("planner", 5, Asked(0.0, LeasedCommands(Clock(), 3.0, ROBOT).epoch), ROBOT)
    leases.acquire("planner", 5, Asked(0.0, leases.epoch), ROBOT)


@pytest.mark.parametrize(
    ("age", "epochs", "why"),
    [
        (2.1, 0, "asked for 2.1 s ago; up to 2 s"),
        (3600.0, 0, "3600.0 s ago"),
        (-0.2, 0, "0.2 s in the future"),
        (math.nan, 0, "does not say when"),
        (0.0, None, "does not say when"),
        (0.0, 1, "before the robot was made safe"),
    ],
)
def test_a_lease_is_not_given_for_what_waited_too_long_or_says_nothing(
    age: float, epochs: int | None, why: str
) -> None:
    leases = LeasedCommands(Clock(), 3.0, ROBOT)
    asked = Asked(age, 0 if epochs is None else leases.epoch + epochs)
    for require in (
        lambda: leases.acquire("planner", 5, asked, ROBOT),
        lambda: leases.require_asked(asked, "The reset"),
    ):
        with pytest.raises(LeaseError, match=why) as rejected:
            require()
        assert rejected.value.code is LeaseCode.OUTDATED
    assert leases.holder[0] == ""


@pytest.mark.parametrize("age", [2.0, 0.0, -0.1])
def test_a_request_of_the_last_two_seconds_is_in_time(age: float) -> None:
    leases = LeasedCommands(Clock(), 3.0, ROBOT)
    assert leases.acquire("planner", 5, Asked(age, leases.epoch), ROBOT).lease


def test_a_lease_for_another_robot_is_rejected() -> None:
    leases = LeasedCommands(Clock(), 3.0, ROBOT)
    with pytest.raises(LeaseError, match="'compressible', and this driver drives that of 'membrane'") as rejected:
        leases.acquire("planner", 5, Asked(0.0, leases.epoch), "compressible")
    assert rejected.value.code is LeaseCode.OTHER_ROBOT and leases.holder[0] == ""


def test_what_everybody_can_hear_of_a_lease_is_not_enough_to_command() -> None:
    leases = LeasedCommands(Clock(), 3.0, ROBOT)
    grant = ask(leases, "planner")
    heard = Grant(leases.holder[1], 0)
    for copied in (heard, heard._replace(key=grant.key ^ 1)):
        with pytest.raises(LeaseError, match="'planner' holds the lease"):
            leases.put("planner", copied, np.zeros(9))
    assert leases.look() is None
    leases.put("planner", grant, np.zeros(9))
    assert leases.look() is not None and ask(LeasedCommands(Clock(), 3.0, ROBOT), "planner").key != grant.key


def test_ids_fit_the_messages_and_are_never_none() -> None:
    grants = [ask(LeasedCommands(Clock(), 3.0, ROBOT), "planner") for _ in range(100)]
    assert all(2**32 < grant.lease < 2**64 and 0 < grant.key < 2**64 for grant in grants)
    assert len({grant.key for grant in grants}) == len({grant.lease for grant in grants}) == 100
    assert max(grant.key for grant in grants) > 2**60  # cannot be guessed


@pytest.mark.parametrize("grant", [Grant(0, 0), Grant(77, 5)])
def test_who_never_had_the_lease_is_told(grant: Grant) -> None:
    leases = LeasedCommands(Clock(), 3.0, ROBOT)
    with pytest.raises(LeaseError, match="^'stranger' commands without a lease") as rejected:
        leases.put("stranger", grant, np.zeros(9))
    assert rejected.value.code is LeaseCode.UNKNOWN_LEASE
    leases.end("stop")  # there was none
    with pytest.raises(LeaseError, match="has ended. It was never asked for"):
        leases.require("stranger", Grant(leases.holder[1], 0))


def test_a_lease_without_a_name_is_rejected() -> None:
    leases = LeasedCommands(Clock(), 3.0, ROBOT)
    with pytest.raises(LeaseError, match="The request names no source") as rejected:
        ask(leases, "")
    assert rejected.value.code is LeaseCode.INVALID_REQUEST
    with pytest.raises(LeaseError, match="The lease of 'planner' was asked for 9"):
        leases.acquire("planner", 0, Asked(9.0, leases.epoch), ROBOT)
