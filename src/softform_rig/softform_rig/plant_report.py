"""How well an identified plant reproduces its recordings: fitted on a part, checked on what it has not seen."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from softform_core.errors import SoftformError
from softform_core.plant import Plant, load_plant
from softform_rig.identify_plant import (
    FOLLOWS_LAW,
    Drive,
    errors,
    identify,
    law_agreement,
    not_identified,
    relative_volume,
    rmse,
)
from softform_rig.plant_log import PlantLog

FITTED_SHARE = 0.6
"""Share of a recording's rows, from its beginning, that the held-out check is fitted to."""

_FEWEST_HELD_OUT = 100  # readings
_CONTRADICTED = 0.5  # share of rows that follow the law, below which it is not the law that drives the recording
_LARGEST_LEFT = 0.15  # of the readings' standard deviation


@dataclass(frozen=True)
class StepError:
    """How one step, or one piece of a trajectory, is reproduced.

    Attributes:
        first_row: First row of the step.
        rows: Number of them.
        before: Target before the step, kPa.
        target: Target of the step, kPa.
        rmse: Simulated minus measured pressure, kPa; None if nothing was measured.
        largest: The largest difference, kPa.
    """

    first_row: int
    rows: int
    before: float
    target: float
    rmse: float | None
    largest: float | None


def step_errors(log: PlantLog, plant: Plant, drive: Drive) -> list[StepError]:
    """Errors of each step of a recording that is simulated as a whole."""
    found = errors(log, plant.coefficients(), drive)
    steps = []
    for first, end in log.steps():
        known = found[first:end][~np.isnan(found[first:end])]
        before, target = log.targets[max(0, first - 1)], log.targets[first]
        figures = (round(rmse(known), 3), round(float(np.abs(known).max()), 3)) if len(known) else (None, None)
        steps.append(StepError(first, end - first, float(before), float(target), *figures))
    return steps


def overall(log: PlantLog, plant: Plant, drive: Drive) -> float:
    """RMSE over all rows of a recording, kPa."""
    return round(rmse(errors(log, plant.coefficients(), drive)), 3)


def report_plant(logs: Sequence[PlantLog], seed: int, say: Callable[[str], object]) -> tuple[Plant, dict[str, Any]]:
    """Identify the plant from all recordings together, and check it in every way that they allow; figures in kPa.

    Raises:
        SoftformError: If the shipped plant cannot be read, or the commands of a recording do not fit its pressures.
    """
    alone: list[Plant] = []
    figures: list[dict[str, Any]] = []
    shipped = load_plant()
    for log in logs:
        say(f"{log.name}: {len(log)} rows, fitted on its first {100 * FITTED_SHARE:.0f} %, checked on the rest")
        if (agreement := law_agreement(log)) < FOLLOWS_LAW:
            say(
                f"WARNING: only in {agreement:.0%} of its rows are the commands those of the board's law at that "
                "reading and target: see whether the columns are what their names say, in kPa gauge and counts"
            )
        plant, held_out = _held_out_check(log, seed)
        alone.append(identify([log], seed, plant)[0])
        figures.append({"name": log.name, "held_out_rmse_kpa": held_out, "law_agreement": round(agreement, 3)})
    say("all recordings together")
    plant, drive = identify(logs, seed)
    for log, found in zip(logs, figures, strict=True):
        left = overall(log, plant, drive)
        contradicted = drive.closed_loop and found["law_agreement"] < _CONTRADICTED
        if contradicted or left > _LARGEST_LEFT * float(np.nanstd(log.measured)):
            raise SoftformError(
                f"No plant: the commands of {log.name} do not fit its pressures (the best of all leaves {left} kPa; in "
                f"{found['law_agreement']:.0%} of the rows they are those of the board's law).",
                "See whether its columns are those that their names say, in kPa gauge and counts.",
            )
    unidentified = not_identified(logs, plant, drive)
    for name, reason in unidentified.items():
        say(f"WARNING: {name} is not identified: {reason}")
    for log, found in zip(logs, figures, strict=True):
        volume, with_volume = relative_volume(log, shipped, drive)
        found |= {
            "rows": len(log),
            "rows_without_reading": log.lost_rows,
            "row_period_s": log.row_period,
            "rmse_kpa": overall(log, plant, drive),
            "shipped_plant_rmse_kpa": overall(log, shipped, drive),
            "chamber_volume": round(volume, 3),
            "chamber_volume_rmse_kpa": round(with_volume, 3),
            "steps": [asdict(step) for step in step_errors(log, plant, drive)],
        }
    crossed = {
        fitted.name: {log.name: overall(log, found, drive) for log in logs}
        for fitted, found in zip(logs, alone, strict=True)
    }
    return plant, {
        "plant": plant.model_dump(),
        "not_identified": unidentified,
        "driven_by": "targets, through the board's law" if drive.closed_loop else "recorded commands, anew each step",
        "rmse_kpa": round(float(np.sqrt(np.mean([overall(log, plant, drive) ** 2 for log in logs]))), 3),
        "logs": figures,
        "cross_check_rmse_kpa": crossed if len(logs) > 1 else {},
    }


def _held_out_check(log: PlantLog, seed: int) -> tuple[Plant | None, float | None]:
    """Plant of a recording's first part, and its RMSE over the rest; None where either is too short to tell."""
    edges = [end for _, end in log.steps() if end <= FITTED_SHARE * len(log)]
    edge = edges[-1] if edges else 0
    parts = log.part(0, edge), log.part(edge, len(log))
    if min(np.isfinite(part.measured).sum() for part in parts) < _FEWEST_HELD_OUT:
        return None, None
    plant, drive = identify([parts[0]], seed)
    return plant, overall(parts[1], plant, drive)
