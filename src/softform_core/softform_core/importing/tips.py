"""A table of actuations and tips as a simulation's store, or as one of captured tips."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.importing.checks import (
    check_columns,
    check_scale,
    far_off,
    groups,
    in_si,
    numbers_in_si,
    read_actuations,
)
from softform_core.importing.table import Table
from softform_core.importing.write import write_samples
from softform_core.provenance import now
from softform_core.robots import Robot
from softform_core.simulation.store import SimulationStore
from softform_core.stores.past import pasts
from softform_core.training.tip_samples import TipSamples, write_tip_samples
from softform_core.units import MM_PER_M, PA_PER_KPA

Repeats = Literal["mean", "first", "keep"]

_BLOCK = 4096
_SAME = 1e-6
"""Distance over the robot's size: tips closer together count as one."""
_FAR = 3.0
"""A tip that comes again and again is none if it is so many times further from its neighbours' than they are apart."""
_FEWEST_NEIGHBOURS = 3
_LARGEST_SHARE_LOST = 0.5
_DISPLACEMENT = re.compile(
    r"(^|[^a-z])((u|d|disp|delta)[\s_.:-]*[123xyz]\b|displ|deform|verschieb|d[eé]plac)|^[uvw]\b", re.IGNORECASE
)
_TAKE_THEM = "Give the place of the resting tip by --displaced-from (0,0,0 takes them as they are)."


def import_tips(
    robot: Robot,
    path: Path,
    actuation: Sequence[str],
    tip: Sequence[str],
    unit: str,
    actuation_unit: str,
    output: Path,
    *,
    displaced_from: Sequence[float] | None = None,
    repeats: Repeats | None = None,
    in_order: bool = False,
    progress: bool = True,
) -> SimulationStore:
    """Bring a table of tips into a store that `./softform train fk` takes.

    Columns of the table (`importing.table.read_table`) are the degrees of freedom of a robot with a tip, in their
    order, and the tip's coordinates in the robot's frame, or its displacements from a place.

    Rows without a tip are left out. So are those whose tip comes under other actuations, too, and lies far from the
    tips under actuations nearby: it stands for none (0, 0, 0, or the last that a camera saw).

    The store's attributes tell which `lines` of the table were left out, and of actuations that come again with another
    tip (`repeats`) their number, how far the tips are from their mean, r.m.s., and apart at most, m; and which lines
    have tips that lie `far_off`.

    Args:
        robot: Robot with a tip.
        path: The table.
        actuation: Columns of the actuations.
        tip: Columns of the tip.
        unit: Of the tip, and of `displaced_from`: m or mm.
        actuation_unit: Of the actuations.
        output: The store.
        displaced_from: Place of the tip at rest, if the columns are displacements from it.
        repeats: Of an actuation that comes again with another tip: the mean of the tips, the first, or keep all.
        in_order: Whether rows follow one another as they were executed: each is kept, with those before it, as
            another way to one actuation is another sample.
        progress: Whether to show a bar.

    Raises:
        SoftformError: If the table cannot be this robot's, or the store cannot be written.
    """
    if in_order and repeats is not None:
        raise SoftformError("Rows in order are all kept: repeats has nothing to choose.", "Leave --repeats out.")
    table, lines, actuations, tips, past = _read_rows(
        robot, path, actuation, tip, unit, actuation_unit, displaced_from, in_order
    )
    kept, told = np.arange(len(lines)), dict[str, object](taken=None, actuations=0)
    if not in_order:
        kept, tips, told = _merged(robot, table, actuations, tips, lines, repeats)

    def read(samples: NDArray[np.int64]) -> dict[str, Array]:
        return {"tip": tips[samples]}

    settings: dict[str, object] = {
        "source": path.name,
        "source_sha256": table.sha256,
        "columns": [*actuation, *tip],
        "unit": unit,
        "actuation_unit": actuation_unit,
        "displaced_from": None if displaced_from is None else list(displaced_from),
        "in_order": in_order,
        "repeats": told,
        "left_out": len(lines) - len(kept),
        "without_tip": _without_tip(table, lines),
        "far_off": table.rows(lines[kept[far]]) if len(far := far_off(robot, actuations[kept], tips)) else "",
    }
    shapes = {"tip": (robot.tip_dimensions,)}
    return write_samples(
        robot, actuations[kept], shapes, {}, read, settings, output, block=_BLOCK, past=past, progress=progress
    )


def import_captured_tips(
    robot: Robot,
    path: Path,
    actuation: Sequence[str],
    tip: Sequence[str],
    unit: str,
    actuation_unit: str,
    output: Path,
    *,
    displaced_from: Sequence[float] | None = None,
    in_order: bool = False,
) -> tuple[TipSamples, str, str]:
    """Bring a table of captured tips into a store that `./softform train s2r` takes; each row is a measurement.

    Args:
        robot: Robot with a tip.
        path: The table, as of `import_tips`.
        actuation: Columns of the actuations.
        tip: Columns of the tip.
        unit: Of the tip, and of `displaced_from`: m or mm.
        actuation_unit: Of the actuations.
        output: The store.
        displaced_from: Place of the tip at rest, if the columns are displacements from it.
        in_order: Whether rows follow one another as they were executed: then what was commanded before each is kept,
            so that a body that remembers is learned with its memory.

    Returns:
        What was written, and in words which rows had no tip, and whose lie far off (`far_off`).

    Raises:
        SoftformError: If the table cannot be this robot's, or the store is there already or cannot be written.
    """
    table, lines, actuations, tips, past = _read_rows(
        robot, path, actuation, tip, unit, actuation_unit, displaced_from, in_order
    )
    samples = TipSamples(actuations, tips, past)
    write_tip_samples(output, robot, samples, {"source": f"{path.name} ({table.sha256[:12]})", "created": now()})
    far = far_off(robot, actuations, tips)
    return samples, _without_tip(table, lines), table.rows(lines[far]) if len(far) else ""


def _read_rows(
    robot: Robot, path: Path, actuation: Sequence[str], tip: Sequence[str], unit: str, actuation_unit: str,
    displaced_from: Sequence[float] | None, in_order: bool,
) -> tuple[Table, NDArray[np.int64], Array, Array, Array | None]:  # fmt: skip
    """Return the table; of rows with a tip their numbers, actuations (n, m), tips (n, d) m and, in order, the past."""
    check_columns(robot, "--tip", tip, ["x", "y", "z"][: robot.tip_dimensions])
    named = [*actuation, *tip]
    if twice := [name for name in named if named.count(name) > 1]:
        raise SoftformError(f"--actuation and --tip name column '{twice[0]}' twice.", "Name one column for each.")
    table, actuations = read_actuations(path, robot, actuation, actuation_unit)
    tips = numbers_in_si(table, tip, unit, "m")
    absent = _absent(robot, actuations, tips)
    if absent.sum() > _LARGEST_SHARE_LOST * len(table):
        raise SoftformError(
            f"{path} has no tip, or one and the same under other actuations, in {table.rows(np.flatnonzero(absent))}.",
            "Check the columns of --tip, or delete the rows in which nothing was measured.",
        )
    lines = np.flatnonzero(~absent)
    past = pasts(actuations)[lines] if in_order else None  # a row without a tip was gone through, too
    actuations, tips = actuations[lines], tips[lines]
    if displaced_from is not None:
        check_columns(robot, "--displaced-from", [str(value) for value in displaced_from], tip)
        tips = tips + in_si(np.array(displaced_from), unit, "m")
    else:
        _check_places(robot, path, tip, actuations, tips)
    check_scale(robot, table, tips)
    return table, lines, actuations, tips, past


def _without_tip(table: Table, lines: NDArray[np.int64]) -> str:
    absent = np.setdiff1d(np.arange(len(table)), lines)
    return table.rows(absent) if absent.size else ""


def _absent(robot: Robot, actuations: Array, tips: Array) -> NDArray[np.bool_]:
    """Which rows (n,) of actuations (n, m) and tips (n, d) m have no tip, or one that stands for none."""
    reach = robot.actuation_max - robot.actuation_min
    absent = np.asarray(~np.isfinite(tips).all(axis=1), dtype=np.bool_)
    known = np.flatnonzero(~absent)
    _, place = np.unique(np.round(tips[known] / (_SAME * robot.body.size)), axis=0, return_inverse=True)
    place = place.ravel()
    _, actuation = groups(robot, actuations[known])
    times = np.bincount(np.unique(np.stack([place, actuation]), axis=1)[0])  # actuations of each place
    again = (times[place] > 1) | (tips[known] == 0.0).all(axis=1)
    if times.max(initial=0) == len(np.unique(actuation)) > 1:
        absent[known] = True  # it never moves
        return absent
    _, once = np.unique(actuation[~again], return_index=True)
    if not again.any() or len(once) < _FEWEST_NEIGHBOURS:
        return absent
    others = known[~again][once]
    tree = KDTree(actuations[others] / reach)
    nearest = tree.query(actuations[others] / reach, k=2)[1][:, 1]
    usual = np.median(np.linalg.norm(tips[others] - tips[others[nearest]], axis=1))
    near = others[tree.query(actuations[known] / reach)[1]]
    off = np.linalg.norm(tips[known] - tips[near], axis=1)
    for group in np.unique(place[again]):
        if np.median(off[place == group]) > _FAR * usual:
            absent[known[place == group]] = True
    return absent


def ranges(robot: Robot, actuations: Array, tips: Array) -> str:
    """What actuations (n, m) and tips (n, d) m range over, in words, by which a wrong column or unit is seen."""
    factor = PA_PER_KPA if robot.unit == "Pa" else 1.0
    unit = "kPa" if robot.unit == "Pa" else robot.unit
    spans = [
        *((name, column / factor, unit) for name, column in zip(robot.actuation_names, actuations.T, strict=True)),
        *((f"tip {axis}", column * MM_PER_M, "mm") for axis, column in zip("xyz", tips.T, strict=False)),
    ]
    return ", ".join(f"{name} {column.min():.4g} … {column.max():.4g} {of}" for name, column, of in spans)


def _check_places(robot: Robot, path: Path, tip: Sequence[str], actuations: Array, tips: Array) -> None:
    """See that tips (n, d) m are places, not displacements: by the names of their columns, and by the tip at rest."""
    if all(_DISPLACEMENT.search(name) for name in tip):
        raise SoftformError(f"{', '.join(tip)} of {path} are displacements, by their names.", _TAKE_THEM)
    reach = robot.actuation_max - robot.actuation_min
    at_rest = (np.abs(actuations - robot.rest_actuation) <= _SAME * reach).all(axis=1)
    if at_rest.any() and np.abs(tips[at_rest]).max() <= _SAME * robot.body.size:
        raise SoftformError(f"The tip of {path} is at 0 at rest, as displacements are.", _TAKE_THEM)


def _merged(
    robot: Robot, table: Table, actuations: Array, tips: Array, lines: NDArray[np.int64], repeats: Repeats | None
) -> tuple[NDArray[np.int64], Array, dict[str, object]]:
    """Rows that remain, their tips (k, d) m, and what is told of actuations that come again with another tip."""
    _, group = groups(robot, actuations)
    same = np.round(tips / (_SAME * robot.body.size))
    once = np.sort(np.unique(np.column_stack([group, same]), axis=0, return_index=True)[1])
    actuations, tips = actuations[once], tips[once]
    first, group = groups(robot, actuations)
    apart = np.linalg.norm(tips - tips[first[group]], axis=1)
    means = np.stack([np.bincount(group, column) for column in tips.T], axis=1) / np.bincount(group)[:, None]
    again = len(tips) - len(first)
    told: dict[str, object] = {"taken": repeats, "actuations": int((np.bincount(group) > 1).sum())}
    if again:
        noise = float(np.sqrt(np.sum((tips - means[group]) ** 2) / again))
        told |= {"rms": noise, "largest": float(apart.max())}
        if repeats is None:
            other = np.flatnonzero(apart)
            raise SoftformError(
                f"{table.path} gives one actuation different tips, up to {MM_PER_M * apart.max():.3g} mm apart: "
                f"{table.rows(lines[once[other]])} against an earlier one "
                f"({table.rows(lines[once[first[group[other[:1]]]]])}).",
                "Say --in-order if rows follow one another as executed; else take the mean, the first or each "
                "of them by --repeats mean, first or keep.",
            )
    order = np.arange(len(tips)) if repeats == "keep" else np.sort(first)
    return once[order], means[group[order]] if repeats == "mean" else tips[order], told
