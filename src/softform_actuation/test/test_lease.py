"""The lease of a driver: who gets it while somebody has it, and what a commander makes of what the driver says."""

import numpy as np
import pytest

from softform_actuation.clock import SteadyClock
from softform_actuation.lease import LeasedCommands, LeaseError
from softform_ros.command_lease import KnownLease


def test_who_lost_the_answer_asks_again_at_once_until_it_has_commanded() -> None:
    commands = LeasedCommands(SteadyClock(), 3.0)
    lost = commands.acquire("collector")
    with pytest.raises(LeaseError, match="'collector' holds the lease"):
        commands.acquire("planner")
    lease = commands.acquire("collector")
    assert lease > lost
    with pytest.raises(LeaseError):
        commands.put("collector", lost, np.zeros(9))
    with pytest.raises(LeaseError):  # the late answer's lease, given back
        commands.require("collector", lost)
    commands.put("collector", lease, np.zeros(9))
    with pytest.raises(LeaseError, match="'collector' holds the lease"):
        commands.acquire("collector")


def test_a_lease_of_a_driver_that_was_killed_is_known_to_be_dead_from_the_next_one() -> None:
    killed = LeasedCommands(SteadyClock(), 3.0)
    known = KnownLease()
    known.grant(killed.acquire("planner"))
    assert not known.note(*killed.holder)
    after_it = LeasedCommands(SteadyClock(), 3.0)
    assert known.note(*after_it.holder) and known.lease == 0
    known.grant(after_it.acquire("planner"))
    assert not known.note(*after_it.holder)


def test_what_the_driver_said_before_it_gave_a_lease_does_not_end_it() -> None:
    leases = LeasedCommands(SteadyClock(), 3.0)
    said_before = leases.holder
    known = KnownLease()
    known.grant(leases.acquire("planner"))
    assert not known.note(*said_before) and known.lease
    leases.end("stop")
    assert known.note(*leases.holder)
