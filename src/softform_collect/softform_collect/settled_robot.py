"""The robot between two frames: commanded, settled, or why not."""

import time
from collections.abc import Callable

from softform_client.driver_watch import MeasuredValues
from softform_client.robot_link import RobotLink
from softform_collect.goal import AGAIN, CollectSettings
from softform_core.arrays import Array
from softform_ros.command_lease import LeaseRejectedError
from softform_ros.goal_error import GoalCode, GoalError

_POLL_SECONDS = 0.1


class SettledRobot:
    """Brings the robot to an actuation and waits until it has settled there, or `stop` gives a code."""

    def __init__(self, link: RobotLink, settings: CollectSettings, stop: Callable[[], GoalCode]) -> None:
        self.link = link
        self._settings, self._stop = settings, stop

    def go_to(self, actuation: Array, what: str) -> MeasuredValues:
        """Hold an actuation (m,) from now on and wait until the robot has settled there, where `what` is captured.

        Returns:
            What the driver measured when it had settled.

        Raises:
            GoalError: If the driver fails or collecting is stopped.
        """
        commanded_at = time.time()
        try:
            is_held = self.link.hold(self.link.commands(actuation), lambda: not self.is_stopped())
        except LeaseRejectedError as error:
            raise GoalError(GoalCode.DRIVER_FAILED, error.message, f"{error.next_step} {AGAIN}") from error
        if not is_held:
            raise self._stop_error(what)
        return self.still_settled(actuation, commanded_at, what)

    def still_settled(self, actuation: Array, since: float, what: str) -> MeasuredValues:
        """Wait until the robot is settled after `since`, s since the epoch; arguments and errors else as `go_to`.

        Returns:
            What the driver measured then.
        """
        tolerance, timeout = self._settings.settle_tolerance, self._settings.settle_timeout
        try:
            commands = self.link.commands(actuation)
            settled = self.link.driver.wait_until_settled(commands, tolerance, timeout, since, self.is_stopped)
        except GoalError as error:  # the driver's word, which knows of no frames
            message = f"{what.capitalize()} was not captured. {error.message}"
            raise GoalError(GoalCode.DRIVER_FAILED, message, f"{error.next_step} {AGAIN}") from error
        if settled is None:
            raise self._stop_error(what)
        return settled

    def wait_until_ready(self) -> None:
        """Wait for a driver that follows commands.

        Raises:
            GoalError: If none does in time, or collecting is stopped.
        """
        deadline = time.monotonic() + self._settings.ready_timeout
        while not self.is_stopped():
            try:
                self.link.driver.check_ready()
                return
            except GoalError as error:
                if time.monotonic() > deadline:
                    raise GoalError(GoalCode.DRIVER_FAILED, error.message, error.next_step) from error
                time.sleep(_POLL_SECONDS)
        raise self._stop_error("a frame")

    def is_stopped(self) -> bool:
        """Return whether collecting shall end."""
        return self.link.stop_reason is not None or self._stop() is not GoalCode.NONE

    def nothing_came(self, topic: str, what: str) -> GoalError:
        """Return the reason why nothing was captured."""
        if self.is_stopped():
            return self._stop_error(what)
        return GoalError(
            GoalCode.CAPTURE_FAILED,
            f"No {topic} of the settled robot came within {self._settings.capture_timeout:g} s for {what}.",
            f"Check the capture device (its diagnostics say what it rejected). {AGAIN}",
        )

    def _stop_error(self, what: str) -> GoalError:
        if self._stop() is GoalCode.NONE:
            return GoalError(
                GoalCode.DRIVER_FAILED,
                f"The driver stopped following commands before {what} was captured: {self.link.stop_reason}.",
                f"Remove the cause. {AGAIN}",
            )
        why = {GoalCode.CANCELLED: "Collecting was cancelled", GoalCode.NODE_DEACTIVATED: "The node was deactivated"}
        reason = why.get(self._stop(), "Collecting was stopped")
        return GoalError(self._stop(), f"{reason} before {what} was captured; the robot vents.", AGAIN)
