"""Arbiter of who commands the robot: the newest goal that moves it, or else the stream of targets; never both.

Goals and stream set the one held command through here. A goal of any action takes the robot from the stream, and from a
goal of another action. The stream has it again with the first target that is stamped after the goal ended; likewise
after a stop, a fault or a deactivation, so that nothing moves for an earlier request.
"""

import threading
import time
from collections.abc import Callable

from softform_client.held_command import HeldCommand
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_ik.robot.stop_request import StopRequest
from softform_ros.command_lease import CommandLease, is_of_one_driver
from softform_ros.goal_error import GoalCode, in_code
from softform_ros.standstill import Standstill, since_boot


class Commander:
    """Gives the held command to one commander at a time; a goal is known by its `StopRequest`.

    Args:
        held: The held command.
        lease: The right to command.
        stream_pause: s without targets after which a stream that was released is a new one.
        wall_clock: ns since the epoch, the clock of stamps.
        clock: Steady time, s.
        since_boot: Steady time that goes on while the computer sleeps, s.

    Attributes:
        on_change: Called when a goal takes the robot, ends or loses it, and after a release, from whatever thread.
    """

    def __init__(
        self,
        held: HeldCommand,
        lease: CommandLease,
        stream_pause: float = 0.5,
        wall_clock: Callable[[], int] = time.time_ns,
        clock: Callable[[], float] = time.monotonic,
        since_boot: Callable[[], float] = since_boot,
    ) -> None:
        self._held, self._lease = held, lease
        self._stream_pause, self._wall_clock, self._clock = stream_pause, wall_clock, clock
        self._standstill = Standstill(since_boot)
        self._since_boot, self._let_go_at = since_boot, -float("inf")
        self._barred_since: float | None = None
        self._asked: StopRequest | None = None
        self._reason = ""
        self._lock = threading.Lock()
        self._goal: StopRequest | None = None
        self._has_commanded = False
        self._goal_epoch = self._stream_epoch = 0
        self._stream_from = wall_clock()
        self.on_change: Callable[[], None] = lambda: None

    @property
    def values(self) -> Array | None:
        """Values that are held, (k,), or None."""
        return self._held.values

    @property
    def is_moved_by_goal(self) -> bool:
        """Whether a goal moves the robot."""
        with self._lock:
            return self._goal is not None

    @property
    def is_held_by_goal(self) -> bool:
        """Whether what is held is of the goal that has the robot: one that still solves has commanded nothing."""
        with self._lock:
            return self._goal is not None and self._has_commanded

    def note_alive(self) -> bool:
        """Drop what was asked for before this process stood still, or the computer slept; called at least each second.

        Returns:
            Whether it had stood still.
        """
        if not (stood_still := self._standstill.seconds()):
            return False
        self.release(f"This node stood still for {stood_still:.1f} s; what was asked for before is over.")
        return True

    def is_outdated(self, epoch: int, stamp: int) -> bool:
        """Return whether what was asked for is over, as far as this commander has heard.

        Args:
            epoch: The driver's epoch that the asker saw; it may have begun another one since.
            stamp: Time of the request, ns since the epoch of stamps; `let_go` may have been called since.
        """
        is_earlier = is_of_one_driver(epoch, self._lease.epoch) and epoch < self._lease.epoch
        age = (self._wall_clock() - stamp) * 1e-9  # the time of day may have been set since, so that it tells no order
        return is_earlier or self._since_boot() - age <= self._let_go_at

    def let_go(self) -> bool:
        """Release, as somebody asks for; also what was asked for before, and has not come yet, is over."""
        self._let_go_at = self._since_boot()
        return self.release()

    def begin(self, goal: StopRequest, epoch: int) -> None:
        """Give the robot to a goal that will move it, until `end`; a newer goal preempts it.

        The `epoch` of the driver is what the asker saw.
        """
        with self._lock:
            if self._goal is not None:
                self._goal.request(GoalCode.PREEMPTED)  # before it loses the robot, so that it knows why
            self._goal, self._goal_epoch, self._has_commanded = goal, epoch, False
        self.on_change()

    def end(self, goal: StopRequest) -> None:
        """Note that a goal has ended; harmless if it has not, or no longer, the robot."""
        with self._lock:
            if self._goal is not goal:
                return
            self._goal = None
            self._stream_from = self._wall_clock()
        self.on_change()

    def hold(self, values: Array, goal: StopRequest, permitted: Callable[[], bool] = lambda: True) -> bool:
        """Hold (k,) for a goal; returns whether it is held: only if the goal has the robot and `permitted` says so.

        Raises:
            GoalError: If the lease, which is acquired with the goal's first hold, is rejected.
        """
        self.note_alive()
        with self._lock:
            asks, self._asked = self._goal is goal and self._asked is not goal, goal
            epoch = self._goal_epoch
        if asks:
            if not permitted():
                return False
            with in_code(GoalCode.DRIVER_NOT_READY):
                self._lease.acquire(epoch)
        is_held = self._held.hold(values, lambda: self.has_robot(goal) and self._lease.is_held and permitted())
        with self._lock:
            if is_held and self._goal is goal:
                self._has_commanded = True
        return is_held

    def take_for_stream(self) -> None:
        """Acquire the lease for a stream that begins, unless it is held.

        Raises:
            SoftformError: If it is rejected; the stream is not followed then.
        """
        try:
            self._lease.acquire(self._stream_epoch)
        except SoftformError as error:
            self.release(str(error))
            raise

    def hold_for_stream(self, values: Array, target_stamp: int) -> bool:
        """Hold (k,) for the stream, as an answer to a target of that stamp (see `admits`); returns whether it is."""
        return self._held.hold(values, lambda: self.admits(target_stamp) and self._lease.is_held)

    def admits(self, target_stamp: int) -> bool:
        """Return whether the stream may follow a target stamped so many ns since the epoch."""
        with self._lock:
            self._stream_from = min(self._stream_from, self._wall_clock())  # the clock may have been set back
            return self._goal is None and self._barred_since is None and target_stamp > self._stream_from

    def note_target(self) -> None:
        """Note that a target has come: a stream that was released is a new one if none had come for a while."""
        with self._lock:
            self._stream_epoch = self._lease.epoch
            if self._barred_since is None:
                return
            now = self._clock()
            self._barred_since = None if now - self._barred_since > self._stream_pause else now

    @property
    def stream_bar(self) -> str | None:
        """Return why a stream has to pause before it is followed again; None if it need not."""
        with self._lock:
            return None if self._barred_since is None else self._reason

    def release(self, reason: str = "") -> bool:
        """Hold nothing and give the lease up, for that reason; returns whether something was held.

        A goal that had the robot has it no longer, and what targets asked for before is forgotten: the robot moves
        again with a new goal or a new stream, not by itself.
        """
        with self._lock:
            self._goal = None
            self._stream_from = self._wall_clock()
            if self._barred_since is None:  # one that has paused since the first release is a new stream
                self._barred_since = self._clock()
            self._reason = reason or self._reason
        held = self._held.release()
        self._lease.release()
        self.on_change()
        return held

    def disable(self) -> bool:
        """Hold nothing, and nothing more until `enable`; returns as `release`."""
        held = self._held.disable()
        return self.release() or held

    def enable(self) -> None:
        """Hold again what goals and targets ask for from now on."""
        with self._lock:
            self._stream_from = self._wall_clock()
            self._barred_since = None
        self._held.enable()

    def has_robot(self, goal: StopRequest) -> bool:
        """Return whether a goal has the robot: from `begin` to `end`, unless it lost it meanwhile."""
        with self._lock:
            return self._goal is goal

    def is_over(self, goal: StopRequest) -> bool:
        """Return whether a waiting goal need not wait any longer: it shall end, or has lost the robot."""
        return goal() or not self.has_robot(goal)
