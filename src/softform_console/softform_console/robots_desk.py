"""Carries out what pages ask of several robots, of which one at a time is moved; and stops them all."""

import time
from collections.abc import Callable, Sequence

from softform_console import protocol
from softform_console.robot_seat import RobotSeat
from softform_console.stop_request import StopRequests
from softform_core.errors import SoftformError

_MOVING = (
    protocol.Points
    | protocol.Actuators
    | protocol.Reach
    | protocol.RunMotion
    | protocol.GoHome
    | protocol.ShapeObject
    | protocol.Program
)  # a program that is only read is not in the way of what moves another robot, and can wait


class RobotsDesk:
    """`control_channel.Desk` of all robots.

    Args:
        seats: The robots, by their index; more may come.
        stops: Stops them.
    """

    def __init__(self, seats: Sequence[RobotSeat], stops: StopRequests) -> None:
        self._seats, self._stops = seats, stops

    def hello(self) -> list[protocol.RobotInfo]:
        """Return the robots."""
        return [seat.desk.info for seat in self._seats]

    def states(self) -> list[protocol.RobotState]:
        """Return the state of each robot."""
        return [seat.desk.state() for seat in self._seats]

    def page_lost(self) -> None:
        """End what the operator's page moved."""
        for seat in self._seats:
            seat.desk.page_lost()

    def handle(self, message: protocol.ToServer) -> None:
        """Do what a page asks.

        Raises:
            SoftformError: If it cannot be done.
        """
        if isinstance(message, protocol.Stop):
            self._stops.ask()
            return
        index = getattr(message, "robot", 0)
        if not 0 <= index < len(self._seats):
            raise SoftformError(f"There is no robot of index {index}.", f"There are {len(self._seats)}, from 0 on.")
        if isinstance(message, _MOVING):
            self.check_alone(index)
        self._seats[index].desk.handle(message)

    def check_alone(self, index: int) -> None:
        """Reject what moves a robot while another one is moved from here.

        Raises:
            SoftformError: If one is.
        """
        for other, seat in enumerate(self._seats):
            if other != index and seat.steering.mode != "none":
                raise SoftformError(f"'{seat.robot.title}' is steered from here.", "Let go of it first.")


class EveryDriver:
    """`stop_request.DriverPort` of all robots: each is asked at once, and all must be at rest.

    A driver that is gone and was not heard of since the console began holds nothing up.

    Args:
        seats: The robots.
    """

    def __init__(self, seats: Sequence[RobotSeat]) -> None:
        self._seats = seats
        self._asked: list[RobotSeat] = []

    def call_stop(self) -> Callable[[], tuple[bool, str] | None]:
        """Ask every driver to stop; returns what tells the answer of all, once each has come, or the first failure."""
        others = [seat for seat in self._seats[1:] if time.monotonic() - seat.view.driver_heard_at < _GONE_SECONDS]
        self._asked = [self._seats[0], *others]
        answers = [_answer_of(seat) for seat in self._asked]

        def answer() -> tuple[bool, str] | None:
            said = [one() for one in answers]
            failed = [one for one in said if one is not None and not one[0]]
            if failed or None in said:
                return failed[0] if failed else None
            return True, " ".join(dict.fromkeys(one[1] for one in said if one is not None))

        return answer

    def rest(self, since: float) -> bool | None:
        """Return whether all is measured at rest, as each driver has said since; None if one has said nothing."""
        said = [seat.link.rest(since) for seat in self._asked]
        return None if None in said else all(said)

    def acknowledged(self, since: float) -> bool:
        """Return whether each device of each driver has acknowledged, as they have said since."""
        return all(seat.link.acknowledged(since) for seat in self._asked)


def _answer_of(seat: RobotSeat) -> Callable[[], tuple[bool, str] | None]:
    """Ask a driver to stop; if that fails, the others are asked all the same."""
    try:
        return seat.link.call_stop()
    except Exception as error:
        failed = False, f"The stop of '{seat.robot.title}' could not be asked for: {error}."
        return lambda: failed


_GONE_SECONDS = 5.0
"""Silence of another robot's driver after which its stack has ended, and a stop does not wait for it, s."""
