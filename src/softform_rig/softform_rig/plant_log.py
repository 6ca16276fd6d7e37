"""Recordings of a board's channel, from which its plant is identified.

A row has measured and target pressure, inflation and deflation command and, in some recordings, a time; rows are taken
as equally long. Real recordings have rows that are not numbers and a last line that was cut off: those rows keep their
place in time, the last one is dropped.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.importing.table import Table, read_table

FULL_SCALE = 4090.0  # counts
ROW_PERIOD = 0.0427  # s, of the recordings that the emulated plant comes from: 117 rows between changes every 5 s
_UNNAMED = ("measured", "target", "inflation", "deflation", "rate")
_NAMED = {
    "measured": r"measured|actual|reading|sensor",
    "target": r"target|set ?point|desired",
    "inflation": r"inflat",
    "deflation": r"deflat",
    "time": r"^(time|t)\b",
}
_UNITS = {"kpa": 1.0, "pa": 1e-3, "hpa": 0.1, "mbar": 0.1, "bar": 100.0, "mpa": 1e3, "psi": 6.894757} | {
    "s": 1.0, "ms": 1e-3, "us": 1e-6, "counts": 1.0, "%": FULL_SCALE / 100.0
}  # fmt: skip
"""In kPa, s and counts."""
_FEWEST_ROWS = 50
_VALID_RANGE = 100.0  # kPa, beyond which the board takes no reading for true
_LARGEST_SHARE_LOST = 0.5
_LARGEST_SHARE_UNEVEN = 0.1
_HELP = "Name columns measured, target, inflation and deflation, with their units if pressures are not in kPa gauge."


@dataclass(frozen=True)
class PlantLog:
    """One recording.

    Attributes:
        name: Name of the file.
        row_period: s a row.
        measured: (n,) kPa, NaN where there is no reading.
        targets: (n,) kPa.
        inflate: (n,) duty of the inflation pump, 0 … 1.
        deflate: (n,) duty of the deflation pump, 0 … 1.
        lost_rows: Number of rows that could not be read.
    """

    name: str
    row_period: float
    measured: Array
    targets: Array
    inflate: Array
    deflate: Array
    lost_rows: int = 0

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.targets)

    def part(self, first: int, last: int) -> "PlantLog":
        """Rows `first` … `last` − 1."""
        rows = slice(first, last)
        return PlantLog(
            self.name, self.row_period, self.measured[rows], self.targets[rows], self.inflate[rows], self.deflate[rows]
        )

    def steps(self) -> list[tuple[int, int]]:
        """Rows (first, past the last) of each target; of equal pieces where the target changes all the time."""
        changes = np.flatnonzero(np.diff(self.targets)) + 1
        if len(changes) > len(self) / _SHORTEST_STEP:
            changes = np.arange(_PIECE, len(self) - _PIECE // 2, _PIECE)
        edges = [0, *changes.tolist(), len(self)]
        return list(zip(edges[:-1], edges[1:], strict=True))


_SHORTEST_STEP = 5  # rows; where targets last shorter on average they are a trajectory, not steps
_PIECE = 100  # rows


def read_plant_log(path: Path, row_period: float | None = None) -> PlantLog:
    """Read a recording: a table (`read_table`) whose columns are found by their names, in any order.

    A name may end in the unit of a pressure (Pa, hPa, kPa, MPa, mbar, bar, psi), of a time (s, ms, us) or of a command
    (counts, %); else these are kPa, s and counts, or duties if no command is beyond 1. Without a header the columns are
    measured, target, inflation and deflation, perhaps a rate.

    Args:
        path: The file.
        row_period: s a row; None: as the column `time` says, else `ROW_PERIOD`.

    Raises:
        SoftformError: If the file cannot be read, has other columns or units, or too few rows that can be used.
    """
    if row_period is not None and not row_period > 0.0:
        raise SoftformError(f"A row cannot last {row_period} s.", "Give a positive --row-period.")
    table = read_table(path, _UNNAMED, gaps=True)
    found = {name: column for name in _NAMED if (column := _column(table, name)) is not None}
    if missing := [name for name in _UNNAMED[:4] if name not in found]:
        raise SoftformError(f"{path} has no column '{missing[0]}' among {', '.join(table.columns)}.", _HELP)
    measured, targets, inflate, deflate = (found[name] for name in _UNNAMED[:4])
    if np.isnan(targets).all():
        raise SoftformError(f"{path} has no target.", _HELP)
    if (furthest := float(np.nanmax(np.abs(targets)))) > _VALID_RANGE:
        raise SoftformError(
            f"A target of {path} is {furthest:g} kPa; the board takes ±{_VALID_RANGE:g} kPa gauge.", _HELP
        )
    measured[~(np.abs(measured) <= _VALID_RANGE)] = np.nan
    lost = int(np.isnan(measured).sum())
    if len(table) - lost < _FEWEST_ROWS or lost > _LARGEST_SHARE_LOST * len(table):
        raise SoftformError(f"{path} has a valid reading in {len(table) - lost} of {len(table)} rows only.", _HELP)
    targets, inflate, deflate = (_held(column) for column in (targets, inflate, np.abs(deflate)))
    full_scale = 1.0 if max(inflate.max(), deflate.max()) <= 1.0 else FULL_SCALE
    duties = (np.clip(inflate / full_scale, 0.0, 1.0), np.clip(deflate / full_scale, 0.0, 1.0))
    period = row_period or (_period(path, found["time"]) if "time" in found else ROW_PERIOD)
    log = PlantLog(path.name, period, measured, targets, *duties, lost)
    # The simulation begins at a reading: rows before the first have nothing to begin with.
    return replace(log.part(int(np.argmax(~np.isnan(measured))), len(log)), lost_rows=lost)


def _column(table: Table, wanted: str) -> Array | None:
    """The column (n,) of that meaning in kPa, s or counts, NaN where there is no number; None if there is none."""
    alike = [name for name in table.columns if re.search(_NAMED[wanted], name.replace("_", " "), re.IGNORECASE)]
    if not alike:
        return None
    if len(alike) > 1:
        raise SoftformError(
            f"{table.path} has the columns {' and '.join(alike)}, either of which may be '{wanted}'.", _HELP
        )
    *rest, last = re.split(r"[\s_,()\[\]]+", alike[0].strip(" )]"))
    unit = (table.units.get(alike[0]) or (last if rest else "")).casefold()
    if unit not in _UNITS and (table.units.get(alike[0]) or alike[0].endswith((")", "]"))):
        raise SoftformError(
            f"The unit of '{alike[0]}' of {table.path}, {unit}, is not known.", f"Known: {', '.join(_UNITS)}."
        )
    return table.numbers(alike, gaps=True)[:, 0] * _UNITS.get(unit, 1.0)


def _period(path: Path, times: Array) -> float:
    """The median time of a row, s, of times (n,) s."""
    steps = np.diff(times[~np.isnan(times)])
    period = round(float(np.median(steps)), 6) if len(steps) else 0.0
    if not period > 0.0 or np.mean(np.abs(steps - period) > 0.5 * period) > _LARGEST_SHARE_UNEVEN:
        raise SoftformError(f"The times of {path} do not go on evenly.", "Resample it, or give --row-period.")
    return period


def _held(column: Array) -> Array:
    """The column with its gaps filled by the last value before them, and the first value before that."""
    known = np.flatnonzero(~np.isnan(column))
    if len(known) == 0:
        return np.zeros(len(column))
    return column[known[np.maximum(np.searchsorted(known, np.arange(len(column)), side="right") - 1, 0)]]
