"""Identify the pneumatic plant of a board's channel from recordings: pumps, valve, leaks (`plant.Plant`).

Output-error identification: the plant is simulated freely over the whole recording, and the simulated pressure is
compared with the measured one in every row. The closed loop is simulated by the board's known law (`control`), and only
the targets go in. Where the recorded commands are not those of that law, they may drive the pumps instead, if that fits
better: the valve then opens as the law has it, and each step begins anew at its first reading.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import differential_evolution, least_squares, minimize_scalar

from softform_core.arrays import Array
from softform_core.plant import Plant, Pump, load_plant
from softform_rig.channels import advance
from softform_rig.control import CONTROL_RATE, DEFAULT_THRESHOLD, PUMP_DEFLATE, PUMP_INFLATE, proportional_control
from softform_rig.plant_log import PlantLog

_BOUNDS = [(5.0, 500.0), (55.0, 250.0), (0.0, 0.3), (0.005, 0.15)] * 2 + [(0.5, 100.0), (0.5, 100.0), (0.03, 1.0)]
_SAME_DUTY = 0.02  # readings are recorded with two decimals, which the steepest gain makes 0.02 of
FOLLOWS_LAW = 0.9  # share of rows
_QUIET = 2.0  # s after a change of the target, when the pumps only hold
_LOWEST_QUIET = 10.0  # kPa, above which the pumps' pulsation is in the reading
_FEWEST_QUIET_ROWS = 30
_SEARCHED_ROWS = 5000
_VOLUMES = (0.05, 50.0)
_VOLUME_STEPS = 120


@dataclass(frozen=True)
class Drive:
    """How a recording drives the simulation.

    Attributes:
        closed_loop: Whether the board's law does, from the targets; else the recorded commands do.
        lead: Rows by which a target acts before it is recorded: a reading may be from after its row's target was set.
    """

    closed_loop: bool = True
    lead: int = 1


@numba.njit(cache=True)
def simulate_loop(
    start: float, targets: Array, coefficients: Array, threshold: float, row: float, ticks: int = 1
) -> Array:
    """Pressure of one channel under its own control, one value a row, (n,) kPa, the first being `start`.

    Args:
        start: first pressure, kPa.
        targets: (n,) kPa.
        coefficients: `Plant.coefficients()`.
        threshold: vent threshold, kPa.
        row: s a row.
        ticks: Number of consecutive control ticks.
    """
    pressure, speed = np.zeros(1), np.zeros((1, 2))
    pressure[0] = start
    inflate, deflate, vent = np.zeros(1), np.zeros(1), np.zeros(1, dtype=np.bool_)
    shut, extra_leak, volume = np.zeros(1, dtype=np.bool_), np.zeros(1), np.ones(1)
    result = np.empty(len(targets))
    for index in range(len(targets)):
        result[index] = pressure[0]
        target = targets[index]
        for _ in range(ticks):
            pump, duty, opened = proportional_control(target, pressure[0], threshold)
            inflate[0] = duty if pump == PUMP_INFLATE else 0.0
            deflate[0] = duty if pump == PUMP_DEFLATE else 0.0
            vent[0] = opened
            advance(pressure, speed, inflate, deflate, vent, shut, extra_leak, volume, coefficients, row / ticks)
    return result


@numba.njit(cache=True)
def simulate_commands(
    anchors: Array, inflating: Array, deflating: Array, venting: NDArray[np.bool_], coefficients: Array, row: float
) -> Array:
    """Pressure of one channel under recorded commands, one value a row, (n,) kPa.

    Args:
        anchors: (n,) kPa to begin anew with, NaN where the simulation goes on; the first must be a number.
        inflating: (n,) duty of the inflation pump.
        deflating: (n,) duty of the deflation pump.
        venting: (n,) whether the valve is open.
        coefficients: `Plant.coefficients()`.
        row: s a row.
    """
    pressure, speed = np.zeros(1), np.zeros((1, 2))
    shut, extra_leak, volume = np.zeros(1, dtype=np.bool_), np.zeros(1), np.ones(1)
    result = np.empty(len(anchors))
    for index in range(len(anchors)):
        if not np.isnan(anchors[index]):
            pressure[0] = anchors[index]
        result[index] = pressure[0]
        now = slice(index, index + 1)
        commands = (inflating[now], deflating[now], venting[now], shut, extra_leak, volume)
        advance(pressure, speed, *commands, coefficients, row)
    return result


def simulate(log: PlantLog, coefficients: Array, drive: Drive) -> Array:
    """Simulated pressures (n,) kPa of a recording."""
    first = float(log.measured[~np.isnan(log.measured)][0])
    if drive.closed_loop:
        targets = np.concatenate([log.targets[drive.lead :], np.repeat(log.targets[-1:], drive.lead)])
        ticks = max(1, round(log.row_period * CONTROL_RATE))
        return simulate_loop(first, targets, coefficients, DEFAULT_THRESHOLD, log.row_period, ticks)
    anchors = np.full(len(log), np.nan)
    for begin, end in log.steps():
        known = begin + np.flatnonzero(~np.isnan(log.measured[begin:end]))[:1]
        anchors[known] = log.measured[known]
    anchors[0] = first
    beyond = np.where(log.targets >= 0.0, 1.0, -1.0) * (np.nan_to_num(log.measured) - log.targets)
    venting = (beyond > DEFAULT_THRESHOLD) & (log.inflate == 0.0) & (log.deflate == 0.0)
    return simulate_commands(anchors, log.inflate, log.deflate, venting, coefficients, log.row_period)


def law_agreement(log: PlantLog) -> float:
    """Share of rows whose recorded commands are those of the board's law at the recorded reading and target."""
    decided = np.zeros((len(log), 2))
    for row, (target, reading) in enumerate(zip(log.targets, log.measured, strict=True)):
        pump, duty, _ = proportional_control(target, reading, DEFAULT_THRESHOLD)
        decided[row] = (duty * (pump == PUMP_INFLATE), duty * (pump == PUMP_DEFLATE))
    difference = np.abs(decided - np.stack([log.inflate, log.deflate], axis=1)).max(axis=1)
    return float(np.mean(difference[~np.isnan(log.measured)] <= _SAME_DUTY))


def errors(log: PlantLog, coefficients: Array, drive: Drive) -> Array:
    """Simulated minus measured pressure (n,) kPa; NaN where nothing was measured."""
    return simulate(log, coefficients, drive) - log.measured


def rmse(differences: Array) -> float:
    """Root mean square of differences, kPa, where there are any."""
    return float(np.sqrt(np.nanmean(differences**2)))


def identify(logs: Sequence[PlantLog], seed: int = 0, start: Plant | None = None) -> tuple[Plant, Drive]:
    """Fit all eleven coefficients by least squares to recordings, from `start` or globally; and how they drive it.

    Raises:
        SoftformError: If the shipped plant, from which the fit begins too, cannot be read.
    """
    drives = [Drive(True, 1), Drive(True, 0)]
    if any(law_agreement(log) < FOLLOWS_LAW for log in logs):
        drives.append(Drive(False, 0))
    starts = [np.clip((start or load_plant()).coefficients(), *np.array(_BOUNDS).T)]
    if start is None:
        starts += [_search(logs, drive, seed) for drive in drives if drive.lead == 1 or not drive.closed_loop]
    _, best, drive = min(
        (_polished(logs, drive, begin) for drive in drives for begin in starts), key=lambda found: found[0]
    )
    return as_plant(best, min(quiet_noise(log) for log in logs)), drive


NAMES = tuple(
    [f"{pump}.{part}" for pump in ("inflation", "deflation") for part in ("rate", "stall", "dead_duty", "spin_up")]
    + ["leak_time", "hold_time", "vent_time"]
)
"""Names of the coefficients, as in `Plant`."""

_AT_BOUND = 0.01
_CHANGE = 1.25
_SEEN = 0.02
"""kPa, the resolution of the board's readings: what changes the pressure by less cannot be found in them."""


def not_identified(logs: Sequence[PlantLog], plant: Plant, drive: Drive) -> dict[str, str]:
    """Coefficients that the recordings do not tell, by name, and why.

    One is not identified if it ends within 1 % of its bounds, or if a quarter more or less of it changes the simulated
    pressure of no recording by 0.02 kPa (root mean square).
    """
    found = plant.coefficients()
    simulated = [simulate(log, found, drive) for log in logs]
    reasons = {}
    for place, (name, (low, high)) in enumerate(zip(NAMES, _BOUNDS, strict=True)):
        changes = [
            rmse(simulate(log, np.where(np.arange(len(found)) == place, found * factor, found), drive) - before)
            for log, before in zip(logs, simulated, strict=True)
            for factor in (1.0 / _CHANGE, _CHANGE)
        ]
        if max(changes) < _SEEN:
            reasons[name] = f"never excited: a quarter more or less changes the pressure by {max(changes):.3f} kPa"
        elif not low + _AT_BOUND * (high - low) < found[place] < high - _AT_BOUND * (high - low):
            reasons[name] = f"it ends on its bound ({low:g} … {high:g})"
    return reasons


def relative_volume(log: PlantLog, plant: Plant, drive: Drive) -> tuple[float, float]:
    """Volume of a recorded chamber with its tube, in that for which a plant was identified, and the RMSE (kPa) with it.

    In a chamber twice as large, pumps, valve and leaks are half as fast; pumps stall and start as before.
    """

    def scaled(volume: float) -> Array:
        factors = np.array([1.0 / volume, 1.0, 1.0, 1.0] * 2 + [volume] * 3)
        return np.asarray(plant.coefficients() * factors)

    def error(logarithm: float) -> float:
        return rmse(errors(log, scaled(float(np.exp(logarithm))), drive))

    grid = np.log(np.geomspace(_VOLUMES[0], _VOLUMES[1], _VOLUME_STEPS))
    best = int(np.argmin([error(each) for each in grid]))
    near = grid[max(0, best - 1)], grid[min(len(grid) - 1, best + 1)]
    found = minimize_scalar(error, bounds=near, method="bounded", options={"xatol": 1e-3})
    return float(np.exp(found.x)), float(found.fun)


def _residual(logs: Sequence[PlantLog], drive: Drive, coefficients: Array) -> Array:
    """Errors of all recordings, scaled so that each has the same weight; the sum of squares is their mean square."""
    scaled = [errors(log, coefficients, drive) / np.sqrt(len(log) * len(logs)) for log in logs]
    return np.nan_to_num(np.concatenate(scaled))


def _search(logs: Sequence[PlantLog], drive: Drive, seed: int) -> Array:
    """Coefficients near the best, from all over their bounds; the first part of a long recording will do for that."""
    logs = [log.part(0, _SEARCHED_ROWS) for log in logs]
    return differential_evolution(
        lambda coefficients: float(np.sum(_residual(logs, drive, coefficients) ** 2)),
        _BOUNDS, seed=seed, popsize=8, maxiter=120, tol=1e-6, polish=False,
    ).x  # fmt: skip


def _polished(logs: Sequence[PlantLog], drive: Drive, begin: Array) -> tuple[float, Array, Drive]:
    """Mean square, coefficients and drive of the least-squares fit that begins somewhere."""
    found = least_squares(
        lambda coefficients: _residual(logs, drive, coefficients),
        begin, bounds=np.array(_BOUNDS).T, x_scale=begin + 1e-3, diff_step=1e-3,
    ).x  # fmt: skip
    return min(
        ((float(np.sum(_residual(logs, drive, each) ** 2)), each, drive) for each in (begin, found)),
        key=lambda candidate: candidate[0],
    )


def as_plant(coefficients: Array, sensor_noise: float) -> Plant:
    """The typed plant of (11,) coefficients."""
    names = ("rate", "stall", "dead_duty", "spin_up")
    values = [round(float(value), 4) for value in coefficients]
    return Plant(
        inflation=Pump(**dict(zip(names, values[0:4], strict=True))),
        deflation=Pump(**dict(zip(names, values[4:8], strict=True))),
        leak_time=values[8],
        hold_time=values[9],
        vent_time=values[10],
        sensor_noise=round(sensor_noise, 4),
    )


def quiet_noise(log: PlantLog) -> float:
    """Standard deviation of the reading's high-frequency part, kPa.

    From second differences, whose variance is six times that of white noise, where the board only holds a low pressure
    (anywhere, if a recording hardly has such rows); the median absolute deviation keeps the pumps' own pulsation out.
    """
    rows = np.arange(len(log))
    since = rows - np.maximum.accumulate(np.where(np.diff(log.targets, prepend=log.targets[0]) != 0.0, rows, 0))
    quiet = (since * log.row_period > _QUIET) & (np.abs(log.targets) <= _LOWEST_QUIET)
    second = log.measured[2:] - 2.0 * log.measured[1:-1] + log.measured[:-2]
    known = ~np.isnan(second)
    chosen = known & quiet[2:] if (known & quiet[2:]).sum() >= _FEWEST_QUIET_ROWS else known
    return float(1.4826 * np.median(np.abs(second[chosen])) / np.sqrt(6.0)) if chosen.any() else 0.0
