"""The lease of a commander, against a driver whose answers come late, in any order, or never."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rclpy.callback_groups import ReentrantCallbackGroup

from softform_core.robots import load_robot
from softform_interfaces.msg import ActuatorCommand, DriverState
from softform_interfaces.srv import Lease
from softform_ros import command_lease, qos
from softform_ros.background_node import BackgroundNode
from softform_ros.command_lease import CommandLease, Held, KnownLease, LeaseRejectedError
from softform_ros.conversions import seconds_from_stamp

ANSWER_SECONDS = 0.5
KEY = 7000
ROBOT = load_robot("membrane")
GOAL = [1.0] * 9


@pytest.mark.parametrize(
    ("held", "holder", "lease", "dies"),
    [
        (7, "me", 7, False),  # as it was given
        (7, "", 7, True),  # it has ended
        (7, "", 6, False),  # said before it was given
        (7, "other", 6, False),
        (7, "other", 8, True),  # it ended, and another was given, between two reports
        (7, "", 8, True),
        (7 << 32, "", 6 << 32, True),  # of the next driver, whose half of the ids is lower
        ((7 << 32) + 3, "other", (9 << 32) + 1, True),
        (0, "other", 8, False),  # none is held
        (0, "", 0, False),
    ],
)
def test_a_lease_dies_by_what_the_driver_says_after_it_was_given(
    held: int, holder: str, lease: int, dies: bool
) -> None:
    known = KnownLease()
    known.grant(Held(held, 3, 5))
    assert known.note(holder, lease) is dies
    assert known.held == (Held() if dies else Held(held, 3, 5))
    assert known.note(holder, lease) is False, "it dies once"


@given(st.lists(st.sampled_from(["grant", "end", "other", "note"]), max_size=30))
def test_reports_that_come_late_and_in_order_never_leave_a_dead_lease_for_ever(events: list[str]) -> None:
    """The driver's reports reach the commander later, in order; whatever happened, after the last both agree."""
    known, holder, lease, told = KnownLease(), "", 0, []
    for event in events:
        if event in ("grant", "other") and not holder:
            holder, lease = ("me" if event == "grant" else "other"), lease + 1
            told.append((holder, lease))
            if event == "grant":
                known.grant(Held(lease, 3, 5))
        elif event == "end" and holder:
            holder = ""
            told.append((holder, lease))
        elif event == "note" and told:
            known.note(*told.pop(0))
    for report in told:
        known.note(*report)
    assert known.held.lease == (lease if holder == "me" else 0)


class Answers:
    """A driver's service `lease`: gives ids that grow; each ACQUIRE waits for its turn to be answered.

    As the driver, it begins an epoch at each RELEASE, and gives no lease for another one than the present.
    """

    def __init__(self) -> None:
        self.leases = 40
        self.epoch = 5
        self.released: list[tuple[int, int]] = []
        self.requests: list[Lease.Request] = []
        self.commands: list[ActuatorCommand] = []
        self.delays: list[float] = []
        self.release_delay = 0.0
        self.rejection = ""

    def answer(self, request: Lease.Request, response: Lease.Response) -> Lease.Response:
        if request.request == Lease.Request.RELEASE:
            self.released.append((request.lease, request.key))
            self.epoch += 1
            response.success, response.epoch = True, self.epoch
            time.sleep(self.release_delay)
            return response
        self.requests.append(request)
        response.message = self.rejection
        if request.asked.epoch != self.epoch:
            response.message = response.message or "It was asked for before the robot was made safe."
        if response.message:
            return response
        self.leases += 1
        response.success, response.lease, response.key = True, self.leases, self.leases + KEY
        time.sleep(self.delays.pop(0) if self.delays else 0.0)
        return response

    def state(self, holder: str = "") -> DriverState:
        """What it says after that."""
        return DriverState(holder=holder, lease=self.leases, epoch=self.epoch)


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Answers]:
    monkeypatch.setattr(command_lease, "_ANSWER_SECONDS", ANSWER_SECONDS)
    answers = Answers()
    with BackgroundNode("driver", "/lease_test") as node:
        node.create_service(Lease, "lease", answers.answer, callback_group=ReentrantCallbackGroup())
        node.create_subscription(ActuatorCommand, "actuator_command", answers.commands.append, qos.ACTUATOR_COMMAND)
        yield answers


@pytest.fixture
def lease(driver: Answers) -> Iterator[CommandLease]:
    with BackgroundNode("commander", "/lease_test") as node:
        lease = CommandLease(node, ROBOT)
        assert lease._client.wait_for_service(10.0)
        assert not lease.note(driver.state())
        yield lease


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10.0
    while not condition():
        assert time.monotonic() < deadline, "what was waited for did not happen"
        time.sleep(0.01)


def test_commands_go_out_under_the_lease_and_none_without(driver: Answers, lease: CommandLease) -> None:
    assert not lease.send(GOAL) and not lease.release()
    lease.acquire()
    lease.acquire()  # held: nothing is asked

    def is_heard() -> bool:
        assert lease.send(GOAL)
        return bool(driver.commands)

    wait_until(is_heard)
    command = driver.commands[0]
    assert (command.source, command.lease, command.key) == ("commander", 41, 41 + KEY)
    assert (command.name, command.unit) == (ROBOT.actuators, ["Pa"] * 9)
    assert command.fingerprint == driver.requests[0].fingerprint == ROBOT.command_fingerprint()
    assert lease.note(driver.state()) and not lease.send(GOAL), "it has ended"
    assert driver.leases == 41
    lease.acquire()
    assert lease.release() and not lease.is_held
    wait_until(lambda: driver.released == [(42, 42 + KEY)])


def test_the_epoch_is_what_the_driver_said_last_and_goes_with_the_request(driver: Answers, lease: CommandLease) -> None:
    before = time.time()
    assert lease.epoch == 5
    driver.epoch = 7
    assert lease.note(driver.state()), "a stop and a reset that were not seen"
    assert not lease.note(driver.state())
    with pytest.raises(LeaseRejectedError, match="before the robot was made safe"):
        lease.acquire(5)
    lease.acquire()
    assert [one.asked.epoch for one in driver.requests] == [5, 7]
    assert all(before - 0.1 < seconds_from_stamp(one.asked.stamp) < time.time() + 0.1 for one in driver.requests)


def test_no_lease_is_asked_for_in_an_epoch_that_nobody_has_seen(driver: Answers) -> None:
    with BackgroundNode("commander", "/lease_test") as node:
        lease = CommandLease(node, ROBOT)
        for epoch in (None, 0):
            with pytest.raises(LeaseRejectedError, match="No driver had announced itself"):
                lease.acquire(epoch)
    assert not driver.requests


def test_a_lease_that_is_held_is_not_for_what_was_asked_for_in_another_epoch(
    driver: Answers, lease: CommandLease
) -> None:
    lease.acquire(5)
    for epoch in (4, 6):
        with pytest.raises(LeaseRejectedError, match="before the robot was made safe"):
            lease.acquire(epoch)
    assert lease.is_held and len(driver.requests) == 1


@pytest.mark.parametrize("is_told", [False, True])
def test_who_gave_the_lease_up_goes_on_in_the_epoch_that_began_by_it(
    driver: Answers, lease: CommandLease, is_told: bool
) -> None:
    for _ in range(3):  # as often as it likes
        lease.acquire(5)
        assert lease.is_held
        lease.release(goes_on=True)
        if is_told:
            wait_until(lease._given_up.is_set)
            assert not lease.note(driver.state()), "its own doing does not end what it was asked for"
    lease.acquire(5)
    lease.release(goes_on=True)
    lease.acquire()  # decided just now
    assert [one.asked.epoch for one in driver.requests] == [5, 6, 7, 8, 9]


def test_an_epoch_that_is_told_before_the_release_is_answered_is_ones_own(driver: Answers, lease: CommandLease) -> None:
    driver.release_delay = 0.3
    lease.acquire(5)
    lease.release(goes_on=True)
    wait_until(lambda: driver.epoch == 6)
    assert not lease._given_up.is_set() and not lease.note(driver.state())
    lease.acquire(5)  # waits for the answer
    assert [one.asked.epoch for one in driver.requests] == [5, 6]


def test_a_stop_and_a_reset_after_a_lease_was_given_up_end_what_was_asked_for(
    driver: Answers, lease: CommandLease
) -> None:
    lease.acquire(5)
    lease.release(goes_on=True)
    wait_until(lease._given_up.is_set)
    driver.epoch += 2
    with pytest.raises(LeaseRejectedError, match="before the robot was made safe"):
        lease.acquire(5)  # this program has not heard of it yet
    assert lease.note(driver.state())
    with pytest.raises(LeaseRejectedError, match="before the robot was made safe"):
        lease.acquire(5)
    lease.acquire()


def test_what_was_asked_for_before_a_lease_was_given_up_for_good_is_over(driver: Answers, lease: CommandLease) -> None:
    lease.acquire(5)
    lease.release()
    wait_until(lambda: driver.epoch == 6)
    with pytest.raises(LeaseRejectedError, match="before the robot was made safe"):
        lease.acquire(5)  # this program has not heard of it yet
    assert lease.note(driver.state())
    lease.acquire()


def test_what_others_ended_does_not_go_on(driver: Answers, lease: CommandLease) -> None:
    """The driver makes safe by itself just before the release comes: it does not know that lease any more."""
    lease.acquire(5)
    driver.epoch = 6
    assert lease.note(driver.state()) and not lease.is_held
    assert not lease.release()
    with pytest.raises(LeaseRejectedError, match="before the robot was made safe"):
        lease.acquire(5)


def test_each_program_asks_by_a_number_of_its_own(driver: Answers, lease: CommandLease) -> None:
    driver.rejection = "'other' holds the lease."
    with BackgroundNode("commander", "/lease_test") as node:  # another one of that name
        for one in (lease, lease, CommandLease(node, ROBOT)):
            one.note(driver.state())
            with pytest.raises(LeaseRejectedError):
                one.acquire()
    first, again, other = clients = [one.client for one in driver.requests]
    assert first == again and first != other and 0 not in clients


def test_a_rejection_says_why(driver: Answers, lease: CommandLease) -> None:
    driver.rejection = "'collector' holds the lease."
    with pytest.raises(LeaseRejectedError, match="'collector' holds the lease"):
        lease.acquire()
    assert not lease.is_held


def test_an_answer_that_comes_late_is_given_back(driver: Answers, lease: CommandLease) -> None:
    driver.delays = [2.0 * ANSWER_SECONDS]
    before = time.monotonic()
    with pytest.raises(LeaseRejectedError, match="does not answer"):
        lease.acquire()
    assert time.monotonic() - before < 2.0 * ANSWER_SECONDS, "it waits no longer than it has to"
    wait_until(lambda: driver.released == [(41, 41 + KEY)])
    assert not lease.is_held and not lease.send(GOAL)


def test_a_late_answer_does_not_take_a_newer_lease_away(lease: CommandLease, driver: Answers) -> None:
    late = _held_back(lease)
    with pytest.raises(LeaseRejectedError, match="does not answer"):
        lease.acquire()
    lease.acquire()
    assert lease.is_held and driver.leases == 42
    late.set()
    wait_until(lambda: driver.released == [(41, 41 + KEY)])
    assert lease.is_held and lease.send(GOAL)
    lease.release()
    wait_until(lambda: driver.released == [(41, 41 + KEY), (42, 42 + KEY)])


def _held_back(lease: CommandLease) -> threading.Event:
    """Let the answer to the next request arrive only once the event is set, as that of a lossy network does."""
    client, ask, arrives = lease._client, lease._client.call_async, threading.Event()

    class Late:
        def __init__(self, future):  # type: ignore[no-untyped-def]
            self._future = future

        def add_done_callback(self, note):  # type: ignore[no-untyped-def]
            def later() -> None:
                arrives.wait(10.0)
                wait_until(self._future.done)
                note(self._future)

            threading.Thread(target=later, daemon=True).start()

    def first(request):  # type: ignore[no-untyped-def]
        client.call_async = ask
        return Late(ask(request))

    client.call_async = first
    return arrives
