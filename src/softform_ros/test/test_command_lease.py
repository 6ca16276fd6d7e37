"""The lease of a commander, against a driver whose answers come late, in any order, or never."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rclpy.callback_groups import ReentrantCallbackGroup

from softform_interfaces.msg import ActuatorCommand, DriverState
from softform_interfaces.srv import Lease
from softform_ros import command_lease, qos
from softform_ros.background_node import BackgroundNode
from softform_ros.command_lease import CommandLease, KnownLease, LeaseRejectedError

ANSWER_SECONDS = 0.5


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
    known.grant(held)
    assert known.note(holder, lease) is dies
    assert known.lease == (0 if dies else held)
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
                known.grant(lease)
        elif event == "end" and holder:
            holder = ""
            told.append((holder, lease))
        elif event == "note" and told:
            known.note(*told.pop(0))
    for report in told:
        known.note(*report)
    assert known.lease == (lease if holder == "me" else 0)


class Answers:
    """A driver's service `lease`: gives ids that grow; each ACQUIRE waits for its turn to be answered."""

    def __init__(self) -> None:
        self.leases = 40
        self.released: list[int] = []
        self.clients: list[int] = []
        self.epochs: list[int] = []
        self.commands: list[ActuatorCommand] = []
        self.delays: list[float] = []
        self.rejection = ""

    def answer(self, request: Lease.Request, response: Lease.Response) -> Lease.Response:
        if request.request == Lease.Request.RELEASE:
            self.released.append(request.lease)
            response.success = True
            return response
        self.clients.append(request.client)
        self.epochs.append(request.epoch)
        if self.rejection:
            response.message = self.rejection
            return response
        self.leases += 1
        response.success, response.lease = True, self.leases
        time.sleep(self.delays.pop(0) if self.delays else 0.0)
        return response


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
        lease = CommandLease(node, ["c1"], "Pa")
        assert lease._client.wait_for_service(10.0)
        yield lease


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10.0
    while not condition():
        assert time.monotonic() < deadline, "what was waited for did not happen"
        time.sleep(0.01)


def test_commands_go_out_under_the_lease_and_none_without(driver: Answers, lease: CommandLease) -> None:
    assert not lease.send([1.0]) and not lease.release()
    lease.acquire()
    lease.acquire()  # held: nothing is asked

    def is_heard() -> bool:
        assert lease.send([1.0])
        return bool(driver.commands)

    wait_until(is_heard)
    command = driver.commands[0]
    assert (command.source, command.lease, command.name, command.unit) == ("commander", 41, ["c1"], ["Pa"])
    assert lease.note(DriverState(holder="", lease=41)) and not lease.send([1.0])
    assert driver.leases == 41
    lease.acquire()
    assert lease.release() and not lease.is_held
    wait_until(lambda: driver.released == [42])


def test_the_epoch_is_what_the_driver_said_last_and_goes_with_the_request(driver: Answers, lease: CommandLease) -> None:
    with pytest.raises(LeaseRejectedError, match="No driver had announced itself"):
        lease.acquire(lease.epoch)
    assert not lease.note(DriverState(epoch=5)) and lease.epoch == 5
    asked = lease.epoch
    assert lease.note(DriverState(epoch=7)), "a stop and a reset that were not seen"
    assert not lease.note(DriverState(epoch=7))
    lease.acquire(asked)
    assert driver.epochs == [5]


def test_each_program_asks_by_a_number_of_its_own(driver: Answers, lease: CommandLease) -> None:
    driver.rejection = "'other' holds the lease."
    with BackgroundNode("commander", "/lease_test") as node:  # another one of that name
        for one in (lease, lease, CommandLease(node, ["c1"], "Pa")):
            with pytest.raises(LeaseRejectedError):
                one.acquire()
    first, again, other = driver.clients
    assert first == again and first != other and 0 not in driver.clients


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
    wait_until(lambda: driver.released == [41])
    assert not lease.is_held and not lease.send([1.0])


def test_a_late_answer_does_not_take_a_newer_lease_away(lease: CommandLease, driver: Answers) -> None:
    late = _held_back(lease)
    with pytest.raises(LeaseRejectedError, match="does not answer"):
        lease.acquire()
    lease.acquire()
    assert lease.is_held and driver.leases == 42
    late.set()
    wait_until(lambda: driver.released == [41])
    assert lease.is_held and lease.send([1.0])
    lease.release()
    wait_until(lambda: driver.released == [41, 42])


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
