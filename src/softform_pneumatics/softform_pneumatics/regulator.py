"""Regulation: follow the goal at the robot's slew rate, and look at every measurement with suspicion."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from softform_core.robots import Robot
from softform_pneumatics.balance import Air, BalanceWatch
from softform_pneumatics.boards.interface import Measurement, PressureBoard
from softform_pneumatics.limits import FollowWatch, RangeWatch, UnusedWatch
from softform_pneumatics.regulation import SettleDetector, limit_rate
from softform_pneumatics.states import ChamberState, ChamberStatus, DriverSettings, UnsafeError
from softform_pneumatics.statistics import LoopStatistics
from softform_pneumatics.trim import SteadyErrorTrim
from softform_pneumatics.wiring import Wiring

_LONGEST_STEP_SECONDS = 0.2


class Regulator:
    """A board that regulates, from `begin` until somebody vents it."""

    def __init__(
        self,
        board: PressureBoard,
        robot: Robot,
        wiring: Wiring,
        settings: DriverSettings,
        statistics: LoopStatistics,
        air: Air | None,
    ) -> None:
        """Regulate nothing yet.

        Args:
            board: That does it.
            robot: Whose slew rate and range hold.
            wiring: Of its chambers.
            settings: Of the watches.
            statistics: Where measurements are counted.
            air: The identified plant; None if it is not known for this board and robot.
        """
        chambers = len(robot.actuators)
        self._board = board
        self._robot = robot
        self._wiring = wiring
        self._settings = settings
        self._statistics = statistics
        self._setpoint = np.zeros(chambers)
        self._trim = SteadyErrorTrim(robot.actuator_min, robot.actuator_max)
        self._last_step = 0.0
        self._last_measurement = 0.0
        self._command_seen = 0.0
        self._settle = SettleDetector(chambers, settings.settle_tolerance, settings.settle_time)
        self._range = RangeWatch(robot, settings.overpressure_margin)
        self._unused = UnusedWatch(settings.overpressure_margin + settings.offset_limit)
        self._follow = FollowWatch(robot, settings.follow_tolerance, settings.follow_timeout)
        self._balance: BalanceWatch | None = None
        if air is not None and board.vent_threshold is not None:
            self._balance = BalanceWatch(
                robot.actuators, air, board.vent_threshold, settings.follow_tolerance, settings.response_timeout
            )

    @property
    def leaks(self) -> dict[str, float]:
        """Chambers that leak though their pumps hold the pressure: name -> time constant of the leak, s."""
        return {} if self._balance is None else self._balance.leaks

    def begin(self, now: float) -> None:
        """Start the board with all chambers at ambient pressure.

        Raises:
            BoardError: If it does not confirm; it is vented then.
        """
        self._setpoint = np.zeros(len(self._setpoint))
        self._board.start(self._wiring.targets(self._setpoint))
        self._settle.reset()
        self._range.reset()
        self._unused.reset()
        self._follow.reset()
        self._trim.reset()
        if self._balance is not None:
            self._balance.reset()
        self._last_step = self._last_measurement = now
        self._statistics.restart_rate(now)

    def require_stream(self, now: float) -> None:
        """Look whether measurements still come.

        Raises:
            UnsafeError: If the last one is too old.
        """
        if now - self._last_measurement > self._settings.stream_timeout:
            raise UnsafeError(
                f"{self._board.identity} sent no pressures for {self._settings.stream_timeout:g} s.",
                "Check its power and cable, then reset.",
            )

    def step(
        self,
        command: tuple[NDArray[np.float64], float] | None,
        now: Callable[[], float],
        interrupted: Callable[[], bool],
    ) -> None:
        """Move the setpoint towards the command by what one period allows, and tell the board.

        Args:
            command: Goal (k,) Pa, and when it was taken over; None to stay.
            now: The steady clock, s.
            interrupted: Says that there is no time left in this period.

        Raises:
            BoardError: If the board does not take its targets.
        """
        started = now()
        if command is not None:
            step = min(started - self._last_step, _LONGEST_STEP_SECONDS)
            setpoint = limit_rate(self._setpoint, command[0], self._robot.slew_rate, step)
            if not np.array_equal(setpoint, self._setpoint):
                self._settle.reset()
            self._setpoint = setpoint
        self._last_step = started
        targets = self._trim.targets(self._setpoint, started)
        is_told = self._board.set_targets(self._wiring.targets(targets), interrupted)
        if self._balance is not None:
            self._balance.note_target(targets, started, is_told)
        if command is not None:
            sent = now()
            self._statistics.command_age = sent - command[1]
            if command[1] != self._command_seen:
                self._command_seen = command[1]
                self._statistics.count_sent_command(command[1], sent)

    def take(self, measurement: Measurement, goal: NDArray[np.float64] | None) -> ChamberState:
        """Look at a measurement; `goal`, (k,) Pa, is what is being followed, None at rest.

        Raises:
            UnsafeError: If something is wrong.
        """
        self._last_measurement = measurement.captured
        self._statistics.count_measurement(measurement.captured)
        pressures = self._wiring.pressures(measurement)
        self._range.check(pressures)
        self._unused.check(self._wiring.unused(measurement))
        self._follow.check(pressures, self._setpoint, measurement.captured)
        if self._balance is not None:
            self._balance.check(pressures, measurement.captured)
        self._trim.take(pressures, measurement.captured)
        status = np.full(len(pressures), ChamberStatus.VENTED, dtype=np.uint8)
        if goal is not None:
            settled = self._settle.update(pressures - goal, measurement.captured) & (self._setpoint == goal)
            settled &= self._trim.is_done
            status[:] = np.where(settled, ChamberStatus.SETTLED, ChamberStatus.REGULATING)
        return ChamberState(pressures, status, measurement.captured)
