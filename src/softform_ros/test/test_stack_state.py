"""Who wants something of a stack that comes up waits for it, and is told for what."""

import threading
import time

import pytest

from softform_core.errors import SoftformError
from softform_interfaces.msg import BringupState
from softform_ros.background_node import BackgroundNode
from softform_ros.qos import LATCHED_STATE
from softform_ros.stack_state import wait_until_active, wait_while_starting

STARTING, ACTIVE, FAILED = BringupState.STARTING, BringupState.ACTIVE, BringupState.FAILED


@pytest.fixture
def tell():
    """What says something as the bring-up manager of a stack does."""
    with BackgroundNode("manager", "lab") as node:
        publisher = node.create_publisher(BringupState, "bringup_state", LATCHED_STATE)
        yield lambda state, reason="": publisher.publish(BringupState(state=state, reason=reason))


def soon(*said, tell, every=0.5):
    """Say each later."""

    def speak():
        for state, reason in said:
            time.sleep(every)
            tell(state, reason)

    threading.Thread(target=speak, daemon=True).start()


@pytest.mark.parametrize("end", [ACTIVE, BringupState.DEGRADED, FAILED])
def test_a_stack_that_starts_is_waited_for_and_says_what_it_does(tell, end):
    tell(STARTING)
    soon((STARTING, "scanner is active after 2.1 s"), (end, ""), tell=tell)
    told, begun = [], time.monotonic()
    wait_while_starting("lab", 30.0, told.append)
    assert 0.5 < time.monotonic() - begun < 20.0
    assert told == ["the stack is starting", "the stack is starting: scanner is active after 2.1 s"]


def test_one_that_is_up_or_has_no_manager_is_not_waited_for(tell):
    tell(ACTIVE)
    told = []
    wait_while_starting("lab", 30.0, told.append)
    begun = time.monotonic()
    wait_while_starting("elsewhere", 30.0, told.append)
    assert time.monotonic() - begun < 10.0 and not told


def test_one_that_does_not_come_up_is_waited_for_no_longer_than_asked(tell):
    tell(STARTING)
    begun = time.monotonic()
    wait_while_starting("lab", 1.5, lambda line: None)
    assert 1.4 < time.monotonic() - begun < 10.0


def test_who_launched_it_hears_the_same_and_why_it_failed(tell):
    soon((STARTING, "rig is active after 1.0 s"), (FAILED, "scanner did not appear."), tell=tell)
    told = []
    with pytest.raises(SoftformError, match=r"did not come up: failed: scanner did not appear\.$"):
        wait_until_active("lab", 30.0, lambda: False, told.append)
    assert told == ["the stack is starting: rig is active after 1.0 s"]
