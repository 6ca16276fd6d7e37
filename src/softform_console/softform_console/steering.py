"""What the operator moves the robot by: points that the servo follows, values of the actuators, or a goal."""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from softform_console.operator_role import OperatorRole
from softform_console.protocol import Point
from softform_core.arrays import Array
from softform_core.errors import SoftformError

Mode = Literal["none", "points", "held", "manual", "goal"]

_BEATING = ("points", "held", "goal")
"""Modes in which the servo's node moves or holds the robot for this."""

REPEAT_SECONDS = 0.05
"""Period of repeating what is wanted, so that servo and driver see that it is still meant, s."""

_IDLE_SECONDS = 1.0


class RobotPort(Protocol):
    """What steering does to the robot; may be called from any thread but the node's."""

    def publish_points(self, points: Sequence[Point]) -> str:
        """Send points to the servo, stamped now; returns why it has not followed them for long, if so."""

    def beat(self, is_there: bool, of_goal: bool) -> None:
        """Tell the servo's node that who steers is there, and whether by a goal, or steers no more."""

    def begin_manual(self) -> None:
        """Get the driver's lease, from the servo if that holds it; waits. Raises SoftformError with the reason."""

    def send_values(self, values: Array) -> bool:
        """Command actuators (k,); returns whether the lease is held."""

    def end_manual(self) -> None:
        """Give up the driver's lease: the robot is made safe."""

    def let_go(self, released: Callable[[], None]) -> None:
        """Let the servo give up what it holds: the robot is made safe. Calls `released` once the servo says so."""

    def cancel_goal(self) -> None:
        """Cancel the goal that runs."""


class Steering:
    """Repeats what the operator wants while the page beats; ends the motion when it does not.

    Its own thread sends, so that a busy server or node delays nothing, and ends the motion, so that a server that hangs
    cannot keep it up. While the servo's node holds or moves the robot for it this thread beats there in turn, so that a
    process that is frozen, killed or cut off cannot keep it up either.

    Args:
        port: The robot.
        role: Who the operator is.
        tell: Takes what the operator should know.
    """

    def __init__(self, port: RobotPort, role: OperatorRole, tell: Callable[[str], None] = lambda text: None) -> None:
        self._port, self._role, self._tell = port, role, tell
        self._news, self._mode, self._is_closed = threading.Condition(), "none", False
        self._points: tuple[Point, ...] = ()
        self._values: Array | None = None
        self._changes = 0
        self._silences = role.silences
        self._has_lease = self._beats = False
        self._work = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="steering", daemon=True)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def close(self) -> None:
        """End the motion and the thread."""
        self.end()
        with self._news:
            self._is_closed = True
            self._changed()
        if self._thread.is_alive():
            self._thread.join(2.0)

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    @property
    def mode(self) -> Mode:
        """What moves the robot from here."""
        return self._mode  # type: ignore[return-value]

    @property
    def points(self) -> tuple[Point, ...]:
        """The points that are wanted."""
        return self._points

    @property
    def values(self) -> Array | None:
        """The values (k,) that are wanted, in manual mode."""
        return self._values

    def set_points(self, points: Sequence[Point], optimise: bool) -> None:
        """Let the servo follow points from now on, or hold while they are edited.

        Raises:
            SoftformError: If a goal moves the robot.
        """
        with self._news:
            self._check_free()
            self._points = tuple(points)
            follows = optimise and bool(points)
            if not follows and self._mode in ("none", "manual"):
                return  # nothing moves yet; what is moved by hand stays so
            self._begin()
            self._mode, self._values = ("points" if follows else "held"), None
            self._changed()

    def set_values(self, values: Array) -> None:
        """Command these values (k,) of the actuators from now on.

        Raises:
            SoftformError: If a goal moves the robot.
        """
        with self._news:
            self._check_free()
            self._begin()
            self._mode, self._values, self._points = "manual", values, ()
            self._changed()

    def begin_goal(self) -> None:
        """Leave the robot to a goal.

        Raises:
            SoftformError: If one moves it already.
        """
        with self._news:
            self._check_free()
            self._begin()
            self._mode, self._values, self._points = "goal", None, ()
            self._changed()

    def end_goal(self) -> None:
        """Note that the goal has ended; what it reached is held by the servo's node."""
        with self._news:
            if self._mode == "goal":
                self._mode = "none"

    def forget(self) -> bool:
        """Want nothing any more: the robot was stopped, or is somebody else's. Returns whether something was wanted."""
        with self._news:
            had, self._mode, self._values, self._points = self._mode, "none", None, ()
            self._changed()
        if had == "goal":
            self._port.cancel_goal()
        return had != "none"

    def end(self) -> bool:
        """End the motion, a goal too, and let go: the driver makes the robot safe. Returns whether there was any."""
        with self._news:
            had, self._mode, self._values, self._points = self._mode, "none", None, ()
            if had in _BEATING:
                self._beats = False  # not told to be over: if the request is lost, the silence lets go
            self._changed()
        if had == "goal":
            self._port.cancel_goal()
        if had in _BEATING:
            self._port.let_go(self._note_released)
        self._drop_lease()
        return had != "none"

    def step(self) -> None:
        """Send what is wanted, or end the motion if the operator's page is silent."""
        if self._mode != "none" and not (self._role.is_alive and self._role.silences == self._silences):
            self._role.vacate()
            self.end()
            self._tell("The page that moved the robot fell silent: its motion was ended. Take over and go on.")
            return
        with self._news:
            mode, points, values = self._mode, self._points, self._values
        if mode != "manual":
            self._drop_lease()
        self._beat(mode)
        if mode == "points":
            if refusal := self._port.publish_points(points):
                self.forget()
                self._tell(f"The servo does not follow: {refusal}")
        elif mode == "manual" and values is not None:
            self._send(values)

    def _beat(self, mode: str) -> None:
        is_there = mode in _BEATING
        with self._news:
            if mode != self._mode:
                return  # it has ended meanwhile, and how that is told is for who ended it
            tells, self._beats = is_there or self._beats, is_there
        if tells:
            self._port.beat(is_there, mode == "goal")

    def _note_released(self) -> None:
        """Tell the servo's node that this steers no more, which has let go: a goal of others is none of it."""
        if self._mode == "none":
            self._port.beat(False, False)

    def _send(self, values: Array) -> None:
        with self._work:
            try:
                if not self._has_lease:
                    self._port.begin_manual()
                    self._has_lease = True
                if not (self._mode == "manual" and self._role.is_alive):
                    return  # the lease was long in coming
                if not self._port.send_values(values):
                    raise SoftformError("The robot does not follow this page any more.", "Move a slider to go on.")
            except SoftformError as error:
                self._has_lease = False
                with self._news:
                    if self._mode == "manual":
                        self._mode, self._values = "none", None
                self._tell(str(error))

    def _drop_lease(self) -> None:
        if not self._has_lease:
            return
        with self._work:
            if self._has_lease:
                self._has_lease = False
                self._port.end_manual()

    def _check_free(self) -> None:
        if self._mode == "goal":
            raise SoftformError("A goal moves the robot.", "Wait for its end, or cancel it.")

    def _begin(self) -> None:
        """Let no silence of before count where a motion begins; each since then ends it, however soon it was over."""
        if self._mode == "none":
            self._silences = self._role.silences

    def _changed(self) -> None:
        """Wake the thread for what is wanted now."""
        self._changes += 1
        self._news.notify_all()

    def _run(self) -> None:
        seen = -1
        while True:
            with self._news:
                period = REPEAT_SECONDS if self._mode != "none" or self._has_lease else _IDLE_SECONDS
                if seen == self._changes:
                    self._news.wait(period)
                if self._is_closed:
                    return
                seen = self._changes
            try:
                self.step()
            except Exception as error:  # the dead-man must outlive whatever a step raises
                logging.getLogger(__name__).exception("steering failed")
                self._fail(error)

    def _fail(self, error: Exception) -> None:
        with contextlib.suppress(Exception):
            self._tell(f"The console failed at moving the robot: {error}. See its log.")
        try:
            self.end()
        except Exception:
            logging.getLogger(__name__).exception("the motion could not be ended")
            time.sleep(REPEAT_SECONDS)
