"""The lease of a commander: asked for, renewed by every command, dropped when it is dead, given up at the end."""

import secrets
import threading
from collections.abc import Iterable, Sequence

from rclpy.node import Node
from rclpy.task import Future

from softform_core.errors import SoftformError
from softform_interfaces.msg import ActuatorCommand, DriverState
from softform_interfaces.srv import Lease
from softform_ros import qos

_ANSWER_SECONDS = 3.0
_COUNTER_BITS = 32


class LeaseRejectedError(SoftformError):
    """The driver does not give its lease."""


class KnownLease:
    """What a commander knows of its lease, from the driver's answers and from what the driver says.

    The upper half of an id is one driver's own, the lower half grows: so its
    state before this lease, its state after, and that of the next driver are distinguished.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lease = 0

    @property
    def lease(self) -> int:
        """Its id, 0 without one."""
        with self._lock:
            return self._lease

    def grant(self, lease: int) -> None:
        """Hold this one."""
        with self._lock:
            self._lease = lease

    def drop(self) -> int:
        """Hold none any more; returns which was held, 0 if none."""
        with self._lock:
            lease, self._lease = self._lease, 0
            return lease

    def note(self, holder: str, lease: int) -> bool:
        """Take what the driver says of its lease; returns whether the one held here has died by that."""
        with self._lock:
            is_of_another_driver = lease >> _COUNTER_BITS != self._lease >> _COUNTER_BITS
            is_later = lease > self._lease or (lease == self._lease and not holder)
            dead = bool(self._lease) and (is_of_another_driver or is_later)
            if dead:
                self._lease = 0
            return dead


class CommandLease:
    """Commands a robot under the driver's lease. A lease that died is never asked for again by itself."""

    def __init__(self, node: Node, names: Sequence[str], unit: str) -> None:
        self._node, self._names, self._unit = node, list(names), unit
        self._known, self._client_number, self._epoch = KnownLease(), 1 + secrets.randbelow(2**64 - 1), 0
        self._commands = node.create_publisher(ActuatorCommand, "actuator_command", qos.ACTUATOR_COMMAND)
        self._client = node.create_client(Lease, "lease")

    @property
    def source(self) -> str:
        """By which name it asks: that of the node."""
        return str(self._node.get_name())

    @property
    def epoch(self) -> int:
        """The driver's epoch, as far as it has said; 0 if it has said nothing."""
        return self._epoch

    @property
    def is_held(self) -> bool:
        """Whether the lease is held, as far as the driver has said."""
        return self._known.lease != 0

    def acquire(self, epoch: int | None = None) -> None:
        """Ask for the lease, unless it is held already; waits for the answer, in another thread than the executor's.

        Args:
            epoch: The driver's epoch when what is to be commanded was asked for; None if that is now.

        Raises:
            LeaseRejectedError: If the driver does not answer, or rejects, with the reason and who holds it.
        """
        if self.is_held:
            return
        if epoch == 0:
            raise LeaseRejectedError(
                "No driver had announced itself on driver_state when this was asked for.", "Ask for it again."
            )
        if not self._client.wait_for_service(_ANSWER_SECONDS):
            raise LeaseRejectedError("No driver offers the service 'lease'.", "Start the driver and activate it.")
        answered, is_given_up, deciding = threading.Event(), False, threading.Lock()
        request = Lease.Request(
            request=Lease.Request.ACQUIRE, source=self.source, client=self._client_number, epoch=epoch or 0
        )
        future = self._client.call_async(request)

        def note(done: Future) -> None:
            answer = None if done.cancelled() or done.exception() else done.result()
            with deciding:
                if answer is not None and answer.success:
                    if is_given_up:  # of this lease alone: a newer one may be held by now
                        self._give_up(answer.lease)
                    else:
                        self._known.grant(answer.lease)
                answered.set()

        future.add_done_callback(note)
        answered.wait(_ANSWER_SECONDS)
        with deciding:
            is_given_up = not answered.is_set()
        if is_given_up:
            raise LeaseRejectedError("The driver does not answer who may command.", "Check that it runs.")
        if (error := future.exception()) is not None:
            raise LeaseRejectedError(f"The lease could not be asked for: {error}.", "Try again.")
        answer = future.result()
        if not answer.success:
            raise LeaseRejectedError(f"The driver gives no lease: {answer.message}", "Then ask again.")

    def send(self, values: Iterable[float]) -> bool:
        """Command (k,) values; returns whether a lease is held: without one nothing is sent."""
        lease = self._known.lease
        if not lease:
            return False
        message = ActuatorCommand(
            source=self.source,
            lease=lease,
            name=self._names,
            unit=[self._unit] * len(self._names),
            value=[float(value) for value in values],
        )
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._commands.publish(message)
        return True

    def release(self) -> bool:
        """Give the lease up, without waiting: the driver makes the robot safe at once. Returns whether it was held."""
        lease = self._known.drop()
        if lease:
            self._give_up(lease)
        return bool(lease)

    def note(self, state: DriverState) -> bool:
        """Take a `driver_state`; returns whether the lease held here has died, or what was asked for before is over."""
        is_over = self._epoch not in (0, state.epoch)
        self._epoch = state.epoch
        return self._known.note(state.holder, state.lease) or is_over

    def close(self) -> None:
        """Give the lease up and close topic and service."""
        self.release()
        self._node.destroy_client(self._client)
        self._node.destroy_publisher(self._commands)

    def _give_up(self, lease: int) -> None:
        self._client.call_async(Lease.Request(request=Lease.Request.RELEASE, source=self.source, lease=lease))
