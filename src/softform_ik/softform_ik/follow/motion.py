"""Moves the robot along a schedule, and notes when each waypoint was reached. At any error it stops where it is."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from softform_client.driver_watch import DriverWatch
from softform_core.arrays import Array
from softform_core.inverse.timing import Schedule
from softform_ik.robot.commander import Commander
from softform_ik.robot.hardware import Hardware
from softform_ik.robot.stop_request import StopRequest
from softform_ros.goal_error import GoalCode, GoalError

LONGEST_STEP = 2.0
"""Longest step of the schedule between two commands, in periods of commands. After a stall of this process the schedule
goes on later instead of making up for what was lost, which would command faster than the slew rate."""

_SHORTEST_SLEEP = 1e-3
"""Shortest sleep, s; what rounding leaves is waited for, too."""


@dataclass
class Motion:
    """Progress of a motion; it can be read after any end.

    Attributes:
        times: s after the start at which each waypoint was reached.
        stamps: The same moments, s since the epoch.
    """

    times: list[float] = field(default_factory=list)
    stamps: list[float] = field(default_factory=list)


class PathMover:
    """Commands one robot along schedules each `period`, through the one held command; all times are in s."""

    def __init__(
        self,
        period: float,
        driver: DriverWatch,
        commander: Commander,
        hardware: Hardware,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._period, self._driver, self._commander, self._hardware = period, driver, commander, hardware
        self._clock, self._wall_clock, self._sleep = clock, wall_clock, sleep

    @property
    def here(self) -> Array | None:
        """Held actuator values (k,), else the measured ones; None if neither is known."""
        held = self._commander.values
        return held if held is not None else self._driver.values

    def follow(
        self,
        schedule: Schedule,
        values_of: Callable[[Array], Array],
        settles: bool,
        stop: StopRequest,
        motion: Motion,
        on_moved: Callable[[int, Array], None],
    ) -> None:
        """Move along a schedule until its end, or until a stop request.

        The last waypoint is held. Cancelled, the robot stays where it is: the values measured then are held.

        Args:
            schedule: Schedule that starts at the robot's present values.
            values_of: Actuator values (k,) at a point (d,) of the schedule.
            settles: Whether the robot waits at each waypoint until the driver calls it settled; the rest of the
                schedule is then late by what it waited. At the end it always waits.
            stop: Request to end the motion, of the goal that has the robot.
            motion: Each waypoint that was reached is noted there.
            on_moved: Called with the number of waypoints reached and the commanded values (k,).

        Raises:
            GoalError: If the driver does not follow, or a waypoint does not settle in time.
        """
        begun = before = self._clock()
        moment = 0.0

        for due in schedule.due:
            moment, before = self._play(schedule, values_of, moment, before, due, stop)
            if settles:
                self._settle(values_of(schedule.at(due)), stop)
                moment, before = due, self._clock()
            if stop():
                break
            motion.times.append(self._clock() - begun)
            motion.stamps.append(self._wall_clock())
            on_moved(len(motion.times), values_of(schedule.at(due)))
        if not stop() and not settles:
            self._settle(values_of(schedule.at(schedule.duration)), stop)
        if stop.code == GoalCode.CANCELLED:
            self._hardware.stay(stop)

    def _play(
        self,
        schedule: Schedule,
        values_of: Callable[[Array], Array],
        moment: float,
        before: float,
        until: float,
        stop: StopRequest,
    ) -> tuple[float, float]:
        """Command the schedule from a `moment` of it, s, which was at the steady time `before`, until another.

        Returns both as they are then: what a sleep took too long is not lost, or it would add up.
        """
        while not stop():
            self._command(values_of(schedule.at(min(moment, until))), stop)
            if moment >= until:
                break
            self._sleep(max(_SHORTEST_SLEEP, min(self._period, until - moment)))
            now = self._clock()
            moment, before = moment + min(now - before, LONGEST_STEP * self._period), now
        return moment, before

    def _command(self, values: Array, stop: StopRequest) -> None:
        if not self._commander.hold(values, stop, self._hardware.is_ready) and not stop():
            raise GoalError(
                GoalCode.DRIVER_FAULT,
                "The driver stopped following, and nothing is held any longer.",
                "Its last driver_state says why; then send the rest of the path.",
            )

    def _settle(self, values: Array, stop: StopRequest) -> None:
        self._hardware.settle(values, self._wall_clock(), stop)
        self._hardware.check_held(stop)
