"""When something that may start motion was asked for, and how the driver's epoch is known."""

import math
import time

import pytest
from builtin_interfaces.msg import Time

from softform_core.errors import SoftformError
from softform_interfaces.msg import DriverState
from softform_interfaces.srv import Reset
from softform_ros import qos
from softform_ros.asked import EpochWatch, age_of, require_recent
from softform_ros.background_node import BackgroundNode
from softform_ros.service_calls import call_driver


@pytest.mark.parametrize(
    ("age", "epoch", "said"),
    [
        (math.nan, 5, "does not say when"),
        (0.0, 0, "does not say when"),
        (2.1, 5, "was asked for 2.1 s ago"),
        (-0.2, 5, "0.2 s in the future"),
        (math.inf, 5, "inf s ago"),
    ],
)
def test_what_was_not_asked_for_just_now_is_rejected(age: float, epoch: int, said: str) -> None:
    with pytest.raises(SoftformError, match=said) as rejection:
        require_recent(age, epoch, "The goal")
    assert rejection.value.next_step


@pytest.mark.parametrize("age", [-0.05, 0.0, 1.9])
def test_what_was_asked_for_just_now_is_not(age: float) -> None:
    require_recent(age, 5, "The goal")


def test_no_stamp_raises() -> None:
    assert math.isnan(age_of(Time(), 1e9))
    assert math.isnan(age_of(Time(sec=-(2**31)), 1e9))
    assert age_of(Time(sec=10, nanosec=500_000_000), 12.0) == pytest.approx(1.5)
    assert age_of(Time(sec=2**31 - 1, nanosec=2**32 - 1), 1e9) < 0.0


def test_an_epoch_is_waited_for_by_who_has_just_come_and_not_by_who_waits_in_vain() -> None:
    with BackgroundNode("driver", "/asked_test") as driver:
        with BackgroundNode("early", "/asked_test") as node:
            watch = EpochWatch(node)
            assert watch.asked().epoch == 0
            before = time.monotonic()
            assert watch.asked().epoch == 0 and time.monotonic() - before < 0.5
        driver.create_publisher(DriverState, "driver_state", qos.LATCHED_STATE).publish(DriverState(epoch=9))
        with BackgroundNode("planner", "/asked_test") as node:
            told = EpochWatch(node).asked()
        assert told.epoch == 9 and abs(age_of(told.stamp, time.time())) < 1.0


def test_a_reset_is_of_the_epoch_that_the_driver_tells_and_leaves_nothing_behind() -> None:
    requests = []

    def answer(request: Reset.Request, response: Reset.Response) -> Reset.Response:
        requests.append(request)
        response.success, response.message = True, "Cleared: stopped."
        return response

    with BackgroundNode("actuation", "/asked_test") as driver, BackgroundNode("operator", "/asked_test") as node:
        states = driver.create_publisher(DriverState, "driver_state", qos.LATCHED_STATE)
        driver.create_service(Reset, "reset", answer)
        states.publish(DriverState(epoch=9))
        before = len(list(node.subscriptions))
        for _ in range(2):
            told = call_driver(node, "reset", 20.0)
            assert told is not None and told.message == "Cleared: stopped."
        assert [one.asked.epoch for one in requests] == [9, 9]
        assert len(list(node.subscriptions)) == before
