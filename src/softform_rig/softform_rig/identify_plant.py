"""Identify the pneumatic plant from recordings of the real board.

`python -m softform_rig.identify_plant STEP_CSV STEPS_CSV` fits the plant to the first recording, checks it on the
second and prints parameters and errors as JSON. A recording has five columns without header: measured and target
pressure (kPa), inflation and deflation command (counts, full scale 4090) and rate.

The whole closed loop is simulated freely: only the recorded targets go in, the board's own law drives the plant, and
the simulated pressure is compared with the measured one in every row (output-error identification). A row's pressure is
read up to one tick after its target was set (vents show in the very row of the change), so targets lead by one row.
"""

import json
from pathlib import Path

import click
import numba
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import differential_evolution, least_squares

from softform_core.errors import SoftformError
from softform_rig.control import DEFAULT_THRESHOLD, regulate
from softform_rig.plant import Plant, Pump, advance

STEP_ROW = 0.0427  # s a row of the 5 s steps: 117 rows between changes of the target
STEPS_ROW = 0.0417  # s a row of the 1 s steps: 24 rows
_BOUNDS = [(20.0, 200.0), (60.0, 250.0), (0.0, 0.3), (0.005, 0.15)] * 2 + [(0.5, 100.0), (0.5, 100.0), (0.05, 0.6)]


def read_recording(path: Path) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Measured pressure and the target that acts on it of a recording, (n − 1,) each, kPa.

    Raises:
        SoftformError: If the file is not five columns of finite numbers.
    """
    try:
        table = np.loadtxt(path, delimiter=",", ndmin=2)
    except (OSError, ValueError) as error:
        raise SoftformError(f"{path} is not a recording: {error}", "Give a CSV of five columns.") from error
    if table.shape[1] != 5 or not np.isfinite(table).all() or len(table) < 10:
        raise SoftformError(f"{path} is not five columns of finite numbers.", "Give a recording of the board.")
    return table[:-1, 0], table[1:, 1]


@numba.njit(cache=True)
def simulate_loop(
    start: float, targets: NDArray[np.float64], coefficients: NDArray[np.float64], threshold: float, row: float
) -> NDArray[np.float64]:
    """Pressure of one channel under its own control, one value a control tick.

    Args:
        start: first pressure, kPa.
        targets: (n,) kPa.
        coefficients: `Plant.coefficients()`.
        threshold: vent threshold, kPa.
        row: s a tick.

    Returns:
        (n,) kPa, the first being `start`.
    """
    pressure, speed = np.array([start]), np.zeros((1, 2))
    inflate, deflate, vent = np.zeros(1), np.zeros(1), np.zeros(1, dtype=np.bool_)
    shut, extra_leak, volume = np.zeros(1, dtype=np.bool_), np.zeros(1), np.ones(1)
    result = np.empty(len(targets))
    for tick in range(len(targets)):
        result[tick] = pressure[0]
        regulate(targets[tick : tick + 1], pressure, threshold, inflate, deflate, vent)
        advance(pressure, speed, inflate, deflate, vent, shut, extra_leak, volume, coefficients, row)
    return result


def as_plant(coefficients: NDArray[np.float64], sensor_noise: float) -> Plant:
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


def quiet_noise(measured: NDArray[np.float64], targets: NDArray[np.float64]) -> float:
    """Standard deviation of the reading's high-frequency part while settled at low pressure, kPa.

    Taken from second differences, whose variance is six times that of white noise, where the target has not changed for
    2 s; the median absolute deviation keeps the pumps' own pulsation out.
    """
    rows = np.arange(len(targets))
    since = rows - np.maximum.accumulate(np.where(np.diff(targets, prepend=targets[0]) != 0.0, rows, 0))
    quiet = (since > 48) & (np.abs(targets) <= 10.0)
    second = measured[2:] - 2.0 * measured[1:-1] + measured[:-2]
    return float(1.4826 * np.median(np.abs(second[quiet[2:]])) / np.sqrt(6.0))


def identify(measured: NDArray[np.float64], targets: NDArray[np.float64], row: float, seed: int = 0) -> Plant:
    """Fit all eleven coefficients by differential evolution, then least squares.

    Args:
        measured: (n,) kPa.
        targets: (n,) kPa.
        row: s a row.
        seed: of the evolution.
    """

    def residual(coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        return simulate_loop(measured[0], targets, coefficients, DEFAULT_THRESHOLD, row) - measured

    found = differential_evolution(
        lambda c: float(np.mean(residual(c) ** 2)), _BOUNDS, seed=seed, popsize=12, maxiter=300, tol=1e-6, polish=False
    )
    polished = least_squares(residual, found.x, bounds=np.array(_BOUNDS).T, x_scale=found.x, diff_step=1e-3)
    best = min((found.x, polished.x), key=lambda c: float(np.mean(residual(c) ** 2)))
    return as_plant(best, quiet_noise(measured, targets))


def loop_error(
    plant: Plant, measured: NDArray[np.float64], targets: NDArray[np.float64], row: float, reach: float = np.inf
) -> float:
    """Root mean square of simulated minus measured pressure, kPa, over the rows whose target is 0…`reach` kPa."""
    simulated = simulate_loop(measured[0], targets, plant.coefficients(), DEFAULT_THRESHOLD, row)
    counted = (targets >= 0.0) & (targets <= reach) if np.isfinite(reach) else np.ones(len(targets), dtype=bool)
    return float(np.sqrt(np.mean((simulated - measured)[counted] ** 2)))


@click.command()
@click.argument("step_csv", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("steps_csv", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--seed", default=0, show_default=True, help="Seed of the search.")
def main(step_csv: Path, steps_csv: Path, seed: int) -> None:
    """Fit the plant to STEP_CSV (5 s steps), check it on STEPS_CSV (1 s steps), print both as JSON."""
    fitted, checked = read_recording(step_csv), read_recording(steps_csv)
    plant = identify(*fitted, STEP_ROW, seed)
    report = {
        "plant": plant.model_dump(),
        "fit_rmse_kpa": round(loop_error(plant, *fitted, STEP_ROW), 3),
        "check_rmse_kpa": round(loop_error(plant, *checked, STEPS_ROW), 3),
        "check_rmse_within_5_kpa": round(loop_error(plant, *checked, STEPS_ROW, reach=5.0), 3),
        "rows": [len(fitted[0]), len(checked[0])],
    }
    click.echo(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
