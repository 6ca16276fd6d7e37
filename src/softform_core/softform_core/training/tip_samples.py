"""Captured tips on disk: what the sim-to-real transfer of a tip is learned from. One Zarr v3 group, SI units.

Arrays: `actuation` (n, m) as commanded, `tip` (n, d) m as captured, in the robot's frame, and where it is known what
was commanded before, `past` (n, h, m), the oldest first, NaN where not known. Where centre lines were captured, too,
`centre_line` (n, N, 3) m, nodes at `along` (N,), 0 at the base and 1 at the end. Attributes: schema and provenance.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_core.stores.past import check_past
from softform_core.stores.zarr_stores import Shapes, StoreKind, new_group, open_group


class CapturedLines(NamedTuple):
    """Captured centre lines: nodes (n, N, 3) m in the robot's frame, and where they are along it, (N,), 0 ... 1."""

    nodes: Array
    along: Array


class TipSamples(NamedTuple):
    """Captured tips, and with them centre lines if these were captured, too.

    Attributes:
        actuation: (n, m), commanded.
        tips: (n, d) m in the robot's frame.
        past: (n, h, m) commanded before each, the oldest first, NaN where not known; None if nothing is.
        lines: The centre lines; None if they were not captured.
    """

    actuation: Array
    tips: Array
    past: Array | None = None
    lines: CapturedLines | None = None


def _misshapen(shapes: Shapes) -> list[str]:
    wrong = [name for name in ("actuation", "tip") if len(shapes.get(name, ())) != 2]
    if wrong:
        return wrong
    count = shapes["actuation"][0]
    if "centre_line" in shapes and shapes["centre_line"] != (count, *shapes.get("along", ()), 3):
        wrong.append("centre_line")
    return wrong + ["tip"] * (shapes["tip"][0] != count)


TIP_SAMPLES = StoreKind(
    name="store of captured tips",
    schema="softform/tip-samples",
    version=1,
    attributes=("source", "created"),
    made_by="./softform collect --via mocap",
    misshapen=_misshapen,
)


def write_tip_samples(path: Path, robot: Robot, samples: TipSamples, provenance: dict[str, str]) -> None:
    """Write captured tips; the store appears at `path` complete or not at all.

    Args:
        path: Directory of the store, which must not exist.
        robot: Robot that was captured.
        samples: The tips.
        provenance: `source, created`.

    Raises:
        SoftformError: If there is such a store already, the past does not fit the actuations, or the disk is full or
            cannot be written.
    """
    if path.exists():
        raise SoftformError(f"{path} is there already.", "Give another --output, or remove it.")
    check_past(samples.past, samples.actuation)
    with new_group(path, TIP_SAMPLES, robot) as group:
        group.attrs.update(provenance)
        group.create_array("actuation", data=samples.actuation)
        group.create_array("tip", data=samples.tips)
        if samples.past is not None:
            group.create_array("past", data=samples.past)
        if samples.lines is not None:
            group.create_array("centre_line", data=samples.lines.nodes)
            group.create_array("along", data=samples.lines.along)


def read_tip_samples(path: Path, robot: Robot) -> tuple[TipSamples, dict[str, str]]:
    """Return captured tips, and their provenance.

    Raises:
        SoftformError: If there is no store, it is of another robot, or holds too few tips or what is no number.
    """
    group = open_group(path, TIP_SAMPLES, robot, writable=False)
    actuation, tips = (np.asarray(group[name], dtype=np.float64) for name in ("actuation", "tip"))
    if tips.shape[1] != robot.tip_dimensions or not (np.isfinite(actuation).all() and np.isfinite(tips).all()):
        raise SoftformError(f"The tips in {path} are misshapen or no numbers.", "Capture them again.")
    past = np.asarray(group["past"], dtype=np.float64) if "past" in group else None
    check_past(past, actuation)
    lines = None
    if "centre_line" in group:
        lines = CapturedLines(*(np.asarray(group[name], dtype=np.float64) for name in ("centre_line", "along")))
        if not np.isfinite(lines.nodes).all():
            raise SoftformError(f"The centre lines in {path} have values that are no numbers.", "Capture them again.")
    return TipSamples(actuation, tips, past, lines), {name: str(group.attrs[name]) for name in ("source", "created")}
