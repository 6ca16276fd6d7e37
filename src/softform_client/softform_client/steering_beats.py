"""Who steers a robot through the servo's node says so by beats (`SteeringBeat`), and hears whether others do."""

import secrets
import threading
import time
from types import TracebackType

from rclpy.duration import Duration
from rclpy.node import Node

from softform_core.errors import SoftformError
from softform_interfaces.msg import SteeringBeat
from softform_ros import qos
from softform_ros.standstill import STANDSTILL_SECONDS, Standstill

_ELSEWHERE = "Another console or program steers this robot."

LONGEST_SECONDS = 10.0
"""Longest silence that a beat may announce, s; see SteeringBeat.msg."""

_MOST_OTHERS = 32
"""Others that steer at most; a flood of names must not grow for ever."""

_PERIOD_SECONDS = 0.1

_LISTEN_SECONDS = 0.3
"""Time to hear whether others steer, before the first target, s; they beat at 10 Hz at least."""

_ARRIVAL_SECONDS = 1.0
"""Longest wait for the last beat's arrival, s; a reader that is frozen is not waited for."""

_IDLE_SECONDS = 1.0
"""Time without a target after which a program steers no more, and what is held stays held, s."""


class SteeringBeats:
    """The beats of one who steers, and those of others.

    Args:
        node: A node in the namespace of the stack; another thread spins it.
        dead_man: Silence of this one after which the servo's node lets go, s.

    Attributes:
        sender: Name of this one, which no other has.
    """

    def __init__(self, node: Node, dead_man: float) -> None:
        self._node, self._dead_man = node, dead_man
        self.sender, self._others = secrets.token_hex(8), dict[str, float]()
        self._beats = node.create_publisher(SteeringBeat, "steering_beat", qos.STEERING_BEAT)
        self._heard = node.create_subscription(SteeringBeat, "steering_beat", self.note, qos.STEERING_BEAT)

    def close(self) -> None:
        """Close the topic once what was said has arrived: a last word that is lost is taken for a silence."""
        self._beats.wait_for_all_acked(Duration(seconds=_ARRIVAL_SECONDS))
        self._node.destroy_subscription(self._heard)
        self._node.destroy_publisher(self._beats)

    def beat(self, is_there: bool, of_goal: bool = False) -> None:
        """Say that this one steers, and whether by a goal, or steers no more: without beats the robot is let go of."""
        dead_man = self._dead_man if is_there else 0.0
        self._beats.publish(SteeringBeat(sender=self.sender, dead_man=dead_man, of_goal=of_goal))

    def check_alone(self) -> None:
        """Reject what begins to move the robot while somebody else steers it: a console, or a program.

        Raises:
            SoftformError: If beats of another sender are heard.
        """
        if self._steering():
            raise SoftformError(_ELSEWHERE, "Ask its user to let go; stop works anyway.")

    @property
    def refusal(self) -> str:
        """Why this one may not go on, if so: of those who began at once one does."""
        return _ELSEWHERE if min(self._steering(), default=self.sender) < self.sender else ""

    def note(self, message: SteeringBeat) -> None:
        """Take a beat of whoever steers the robot; what one says is none of another one."""
        if message.sender == self.sender:
            return
        now = time.monotonic()
        self._others = {sender: until for sender, until in self._others.items() if now < until}
        if message.dead_man > 0.0 and len(self._others) < _MOST_OTHERS:  # as many keep it from steering as well as more
            self._others[message.sender] = now + min(message.dead_man, LONGEST_SECONDS)
        elif message.dead_man == 0.0:
            self._others.pop(message.sender, None)

    def _steering(self) -> list[str]:
        """Return the others whose next beat is not overdue."""
        now = time.monotonic()
        return [sender for sender, until in tuple(self._others.items()) if now < until]


class ProgramBeats:
    """Beats of a program while it sends targets, by a thread of its own: it may be busy with its next target.

    A program that is killed, frozen or cut off is noticed by that, and the robot let go of. One that ends, or sends
    nothing for long, says so, and the robot holds.

    Args:
        node: A node in the namespace of the stack; another thread spins it.
    """

    def __init__(self, node: Node) -> None:
        self._beats = SteeringBeats(node, STANDSTILL_SECONDS)
        self._sent_at, self._tells, self._ends = -float("inf"), False, threading.Event()
        self._standstill, self._stood_still, self._looking = Standstill(), 0.0, threading.Lock()
        self._thread = threading.Thread(target=self._run, name="beats", daemon=True)

    def __enter__(self) -> "ProgramBeats":
        """Begin; listens first whether others steer."""
        self._thread.start()
        time.sleep(_LISTEN_SECONDS)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Say that nothing is steered any more."""
        self._ends.set()
        self._thread.join()
        if self._tells and not self._stood_still:
            self._beats.beat(False)
        self._beats.close()

    def note_target(self) -> None:
        """Note that a target is sent now.

        Raises:
            SoftformError: If somebody else steers the robot, or this process stood still: the robot was let go of then.
        """
        self._look()
        if self._stood_still:
            raise SoftformError(
                f"This program stood still for {self._stood_still:.1f} s, and what it steered was let go of.",
                "Look at the robot, and begin anew.",
            )
        now = time.monotonic()
        if now - self._sent_at > _IDLE_SECONDS:
            self._beats.check_alone()
        elif refusal := self._beats.refusal:
            raise SoftformError(refusal, "Ask its user to let go; stop works anyway.")
        self._sent_at = now
        if not self._tells:  # not only with the next turn of the thread: from the first target on it is watched
            self._tell()

    def _tell(self) -> None:
        steers = time.monotonic() - self._sent_at < _IDLE_SECONDS
        if steers or self._tells:
            self._beats.beat(steers)
        self._tells = steers

    def _look(self) -> None:
        with self._looking:
            self._stood_still = self._standstill.seconds() or self._stood_still

    def _run(self) -> None:
        while not self._ends.wait(_PERIOD_SECONDS):
            self._look()
            if not self._stood_still:
                self._tell()
