"""The lease of a commander: asked for, renewed by every command, dropped when it is dead, given up at the end."""

import secrets
import threading
from collections.abc import Callable, Iterable
from typing import NamedTuple

from rclpy.node import Node
from rclpy.task import Future

from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_interfaces.msg import ActuatorCommand, Asked, DriverState
from softform_interfaces.srv import Lease
from softform_ros import qos

_ANSWER_SECONDS = 3.0
_COUNTER_BITS = 32


def is_of_one_driver(one: int, other: int) -> bool:
    """Return whether one driver gave two ids of leases, or two epochs: the upper half is each driver's own."""
    return one >> _COUNTER_BITS == other >> _COUNTER_BITS


class LeaseRejectedError(SoftformError):
    """The driver does not give its lease."""


class Held(NamedTuple):
    """A lease: its id, its key, and the epoch in which the motion was asked for; zeros without one."""

    lease: int = 0
    key: int = 0
    epoch: int = 0


class KnownLease:
    """State of a commander's lease, from the driver's answers and from what the driver says.

    The upper half of an id is one driver's own, the lower half grows: so its
    state before this lease, its state after, and that of the next driver are distinguished.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held = Held()

    @property
    def held(self) -> Held:
        """The lease that is held."""
        with self._lock:
            return self._held

    def grant(self, held: Held) -> None:
        """Hold this one."""
        with self._lock:
            self._held = held

    def drop(self) -> Held:
        """Hold none any more; returns what was held."""
        with self._lock:
            held, self._held = self._held, Held()
            return held

    def note(self, holder: str, lease: int) -> bool:
        """Take what the driver says of its lease; returns whether the one held here has died by that."""
        with self._lock:
            own = self._held.lease
            is_of_another_driver = not is_of_one_driver(lease, own)
            is_later = lease > own or (lease == own and not holder)
            dead = bool(own) and (is_of_another_driver or is_later)
            if dead:
                self._held = Held()
            return dead


class CommandLease:
    """Commands a robot under the driver's lease. A lease that died is never asked for again by itself.

    Args:
        node: Node that commands.
        robot: The robot; the driver rejects who means another one.
        wait: Waits for an event so many seconds, and returns whether it is set.
    """

    def __init__(
        self, node: Node, robot: Robot, wait: Callable[[threading.Event, float], bool] = threading.Event.wait
    ) -> None:
        self._node, self._wait = node, wait
        self._names, self._units = list(robot.actuators), robot.actuator_units
        self._fingerprint = robot.command_fingerprint()
        self._known, self._client_number, self._epoch = KnownLease(), 1 + secrets.randbelow(2**64 - 1), 0
        # First and last of epochs that each ended as the lease was given up here.
        self._continued: tuple[int, int] = (0, 0)
        self._gives_up_in, self._given_up = 0, threading.Event()
        self._commands = node.create_publisher(ActuatorCommand, "actuator_command", qos.ACTUATOR_COMMAND)
        self._client = node.create_client(Lease, "lease")

    @property
    def source(self) -> str:
        """Name under which it asks: that of the node."""
        return str(self._node.get_name())

    @property
    def epoch(self) -> int:
        """The driver's epoch, as far as it has said; 0 if it has said nothing."""
        return self._epoch

    @property
    def is_held(self) -> bool:
        """Whether the lease is held, as far as the driver has said."""
        return self._known.held.lease != 0

    def acquire(self, epoch: int | None = None) -> None:
        """Ask for the lease, unless it is held already; waits for the answer, in another thread than the executor's.

        Args:
            epoch: The driver's epoch as it was seen by who asked for the motion; None if that is decided just now. One
                that ended because the lease was given up here goes on in the next one.

        Raises:
            LeaseRejectedError: If the driver does not answer, or rejects, with the reason and who holds it; or if the
                lease is held for what was asked for in another epoch.
        """
        asked_in = self._present(self._epoch if epoch is None else epoch)
        if asked_in == 0:
            raise LeaseRejectedError(
                "No driver had announced itself on driver_state when this was asked for.", "Ask for it again."
            )
        if held := self._known.held.epoch:
            if held != asked_in:
                raise LeaseRejectedError(
                    "This was asked for before the robot was made safe, was at fault, or was reset.",
                    "Ask for it again.",
                )
            return
        if not self._client.wait_for_service(_ANSWER_SECONDS):
            raise LeaseRejectedError("No driver offers the service 'lease'.", "Start the driver and activate it.")
        answered, is_given_up, deciding = threading.Event(), False, threading.Lock()
        request = Lease.Request(
            request=Lease.Request.ACQUIRE,
            source=self.source,
            client=self._client_number,
            asked=Asked(stamp=self._node.get_clock().now().to_msg(), epoch=asked_in),
            fingerprint=self._fingerprint,
        )
        future = self._client.call_async(request)

        def note(done: Future) -> None:
            answer = None if done.cancelled() or done.exception() else done.result()
            with deciding:
                if answer is not None and answer.success:
                    held = Held(answer.lease, answer.key, asked_in)
                    if is_given_up:  # of this lease alone: a newer one may be held by now
                        self._give_up(held)
                    else:
                        self._known.grant(held)
                answered.set()

        future.add_done_callback(note)
        self._wait(answered, _ANSWER_SECONDS)
        with deciding:
            is_given_up = not answered.is_set()
        if is_given_up:
            raise LeaseRejectedError("The driver does not answer who may command.", "Check that it runs.")
        if (error := future.exception()) is not None:
            raise LeaseRejectedError(f"The lease could not be asked for: {error}.", "Try again.")
        answer = future.result()
        if not answer.success:
            raise LeaseRejectedError(f"The driver gives no lease: {answer.message}", "Then ask again.")

    def _present(self, epoch: int) -> int:
        """Return the epoch that continues a request's epoch: another one after the lease was given up here."""
        first, last = self._continued
        if self._gives_up_in and self._gives_up_in == (last if first <= epoch <= last else epoch):
            self._wait(self._given_up, _ANSWER_SECONDS)
            first, last = self._continued
        return last if first <= epoch <= last else epoch

    def send(self, values: Iterable[float]) -> bool:
        """Command (k,) values; returns whether a lease is held: without one nothing is sent."""
        held = self._known.held
        if not held.lease:
            return False
        message = ActuatorCommand(
            source=self.source,
            lease=held.lease,
            key=held.key,
            fingerprint=self._fingerprint,
            name=self._names,
            unit=self._units,
            value=[float(value) for value in values],
        )
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._commands.publish(message)
        return True

    def release(self, goes_on: bool = False) -> bool:
        """Give the lease up, without waiting: the driver makes the robot safe at once. Returns whether it was held.

        If it `goes_on`, what was asked for before may get the lease again: a motion that rests in between.
        """
        held = self._known.drop()
        if held.lease:
            self._give_up(held, goes_on)
        return bool(held.lease)

    def note(self, state: DriverState) -> bool:
        """Take a `driver_state`; returns whether the lease held here has died, or what was asked for before is over."""
        before, self._epoch = self._epoch, state.epoch
        is_own = state.epoch in (self._continued[1], self._gives_up_in + bool(self._gives_up_in))
        is_over = before not in (0, state.epoch) and not is_own
        return self._known.note(state.holder, state.lease) or is_over

    def close(self) -> None:
        """Give the lease up and close topic and service."""
        self.release()
        self._node.destroy_client(self._client)
        self._node.destroy_publisher(self._commands)

    def _give_up(self, held: Held, goes_on: bool = False) -> None:
        self._gives_up_in = held.epoch if goes_on else 0
        self._given_up.clear()
        request = Lease.Request(request=Lease.Request.RELEASE, source=self.source, lease=held.lease, key=held.key)

        def note(done: Future) -> None:
            answer = None if done.cancelled() or done.exception() else done.result()
            if goes_on and answer is not None and answer.success and answer.epoch != held.epoch:
                first = self._continued[0] if self._continued[1] == held.epoch else held.epoch
                self._continued = (first, answer.epoch)
            self._given_up.set()

        self._client.call_async(request).add_done_callback(note)
