"""The driver's side of the lease: who gets it while somebody has it."""

import numpy as np
import pytest

from softform_actuation.clock import SteadyClock
from softform_actuation.lease import LeasedCommands, LeaseError


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
