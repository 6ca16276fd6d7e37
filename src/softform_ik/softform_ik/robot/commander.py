"""Who commands the robot: the newest goal that moves it, or else the stream of targets; never two at once.

Goals and stream set the one held command through here. A goal of any action takes the robot from the stream, and from a
goal of another action. The stream has it again with the first target that is stamped after the goal ended; likewise
after a stop, a fault or a deactivation, so that nothing moves for a wish that was meant before.
"""

import threading
import time
from collections.abc import Callable

from softform_client.held_command import HeldCommand
from softform_core.arrays import Array
from softform_ik.robot.stop_request import StopRequest


class Commander:
    """Gives the held command to one commander at a time; a goal is known by its `StopRequest`.

    Args:
        held: What the robot holds.
        wall_clock: ns since the epoch, the clock of stamps.

    Attributes:
        on_change: Called when a goal takes the robot, ends or loses it, and after a release, from whatever thread.
    """

    def __init__(self, held: HeldCommand, wall_clock: Callable[[], int] = time.time_ns) -> None:
        """No goal moves the robot; targets count from now on."""
        self._held, self._wall_clock = held, wall_clock
        self._lock = threading.Lock()
        self._goal: StopRequest | None = None
        self._preempted_code = 0
        self._stream_from = wall_clock()
        self.on_change: Callable[[], None] = lambda: None

    @property
    def pressures(self) -> Array | None:
        """What is held, (k,) Pa, or None."""
        return self._held.pressures

    @property
    def is_moved_by_goal(self) -> bool:
        """Whether a goal has the robot."""
        with self._lock:
            return self._goal is not None

    def begin(self, goal: StopRequest, preempted_code: int) -> None:
        """Give the robot to a goal that will move it, until `end`.

        Args:
            goal: The wish to end it.
            preempted_code: With which it is asked to stop when a newer goal takes the robot: its action's `PREEMPTED`.
        """
        with self._lock:
            if self._goal is not None:
                self._goal.request(self._preempted_code)  # before it loses the robot, so that it knows why
            self._goal, self._preempted_code = goal, preempted_code
        self.on_change()

    def end(self, goal: StopRequest) -> None:
        """Note that a goal has ended; harmless if it has not, or no longer, the robot."""
        with self._lock:
            if self._goal is not goal:
                return
            self._goal = None
            self._stream_from = self._wall_clock()
        self.on_change()

    def hold(self, pressures: Array, goal: StopRequest, permitted: Callable[[], bool] = lambda: True) -> bool:
        """Hold (k,) Pa for a goal; returns whether it is held: only if the goal has the robot and `permitted` says so.

        Args:
            pressures: What to hold.
            goal: Who asks.
            permitted: As in `HeldCommand.hold`.
        """
        return self._held.hold(pressures, lambda: self.has_robot(goal) and permitted())

    def hold_for_stream(self, pressures: Array, target_stamp: int) -> bool:
        """Hold (k,) Pa for the stream, as an answer to a target of that stamp (see `admits`); returns whether it is."""
        return self._held.hold(pressures, lambda: self.admits(target_stamp))

    def admits(self, target_stamp: int) -> bool:
        """Whether the stream may follow a target stamped so many ns since the epoch."""
        with self._lock:
            self._stream_from = min(self._stream_from, self._wall_clock())  # the clock may have been set back
            return self._goal is None and target_stamp > self._stream_from

    def release(self) -> bool:
        """Hold nothing, for the driver has stopped following or is back; returns whether something was held.

        A goal that had the robot has it no longer, and what targets asked for before is forgotten: the robot moves
        again with a new one of either, not by itself.
        """
        with self._lock:
            self._goal = None
            self._stream_from = self._wall_clock()
        held = self._held.release()
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
        self._held.enable()

    def has_robot(self, goal: StopRequest) -> bool:
        """Whether a goal has the robot: from `begin` to `end`, unless it lost it meanwhile."""
        with self._lock:
            return self._goal is goal

    def is_over(self, goal: StopRequest) -> bool:
        """Whether a waiting goal need not wait any longer: it shall end, or has lost the robot."""
        return goal() or not self.has_robot(goal)
