"""A table of actuations and scans, captured elsewhere, as a store of frames."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tqdm import tqdm

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.files import only_writer
from softform_core.frames.following import ShapeJudge
from softform_core.frames.quality import FrameQuality, assess_cloud
from softform_core.frames.store import FrameStore, create_frames, open_frames
from softform_core.importing.checks import check_actuations, check_columns, check_scale
from softform_core.importing.table import Table, read_table
from softform_core.importing.units import in_si
from softform_core.provenance import command_line, git_revision, now
from softform_core.robots import Robot
from softform_core.shapes.read import Unit, read_shape

SCANS_ARE_IN = "Scans must be in the robot's frame: register them, or check --unit and the order of --actuation."


def import_frames(
    robot: Robot,
    path: Path,
    actuation: Sequence[str],
    scans: str,
    unit: Unit,
    actuation_unit: str,
    output: Path,
    *,
    measured: Sequence[str] | None = None,
    progress: bool = True,
) -> FrameStore:
    """Bring scans into a store that `softform train s2r` takes; each is judged as a collected one is.

    A scan that is unfit is kept as rejected, with its reason (`FrameStore.rejections`).

    Args:
        robot: A robot with a surface and a model of its forward kinematics.
        path: The table (`importing.table.read_table`), its rows in the order in which they were captured.
        actuation: Columns of its m commanded degrees of freedom, in their order.
        scans: Column of scan files (`shapes.read`), in the robot's frame, absolute or from the table's folder.
        unit: Unit of the scans.
        actuation_unit: Unit of the actuations.
        output: Directory of the store.
        measured: Columns of the measured degrees of freedom; None: as commanded.
        progress: Whether to show a progress bar on stderr.

    Raises:
        SoftformError: If table or scans cannot be this robot's, the robot has no model, or the store cannot be
            written.
    """
    check_columns(robot, "--actuation", actuation, robot.actuation_names)
    table = read_table(path)
    commanded = in_si(table.numbers(actuation), actuation_unit, robot.unit)
    check_actuations(robot, table, commanded)
    reached = commanded
    if measured is not None:
        check_columns(robot, "--measured", measured, robot.actuation_names)
        reached = in_si(table.numbers(measured), actuation_unit, robot.unit)
        absent = np.flatnonzero(~np.isfinite(reached).all(axis=1))
        if len(absent):
            raise SoftformError(
                f"{path} has no measured actuation in {table.rows(absent)}.", "Complete or delete these rows."
            )
    files = _files(table, scans)
    check_scale(robot, table, read_shape(files[0], unit).points)  # a wrong unit is said before a store is begun
    settings: dict[str, object] = {
        "seed": 0,
        "source": f"{path.name} ({_digest(table, files)})",
        "via": "scanner",
        "unit": unit,
        "columns": [*actuation, scans, *(measured or ())],
        "actuation_unit": actuation_unit,
    }
    judge = ShapeJudge(robot)
    with only_writer(output, "importing"):
        store = _store(robot, commanded, settings, output)
        for number in store.captured:
            judge.keep(int(number), commanded[number], store.points(int(number)))
        done = len(store) - len(store.pending)
        for number in tqdm(store.pending, total=len(store), initial=done, desc="import", disable=not progress):
            points = read_shape(files[number], unit).points
            check_scale(robot, table, points)
            quality = _judged(robot, judge, store, commanded[number], points)
            store.write_captured(int(number), points, reached[number], files[number].stat().st_mtime, quality)
            if not quality.fault:
                judge.keep(int(number), commanded[number], points)
    if not len(store.captured):
        first = next(iter(store.rejections.values()))
        raise SoftformError(f"None of {len(store)} scans shows '{robot.name}'; of the first one: {first}", SCANS_ARE_IN)
    return store


def _judged(robot: Robot, judge: ShapeJudge, store: FrameStore, actuation: Array, points: Array) -> FrameQuality:
    quality = assess_cloud(points, robot, judge.expected(actuation))
    fault = quality.fault
    if not fault and (twin := store.same_cloud(points)) is not None:
        fault = f"it is the same cloud as frame {twin}."
    fault = fault or judge.fault(actuation, points)
    return FrameQuality(quality.coverage, quality.covered, quality.outliers, fault)


def _files(table: Table, scans: str) -> list[Path]:
    files = [table.path.parent / name for name in table.text(scans)]
    absent = np.flatnonzero([not file.is_file() for file in files])
    if len(absent):
        raise SoftformError(
            f"{files[absent[0]]} does not exist: {table.rows(absent)} of {table.path}.",
            f"Name files in column '{scans}' from the folder of the table, or by absolute paths.",
        )
    return files


def _digest(table: Table, files: Sequence[Path]) -> str:
    """Digest of the table and the sizes of its scans: another import must not be added to a store."""
    sizes = ",".join(str(file.stat().st_size) for file in files)
    return hashlib.sha256(f"{table.sha256} {sizes}".encode()).hexdigest()[:12]


def _store(robot: Robot, commanded: Array, settings: dict[str, object], output: Path) -> FrameStore:
    if not output.exists():
        made = {"command": command_line(), "git_revision": git_revision(), "created": now()}
        create_frames(output, robot, commanded, settings | made)
    store = open_frames(output, robot, writable=True)
    if any(store.attributes.get(name) != value for name, value in settings.items()):
        raise SoftformError(
            f"{output} holds other frames than this import: {store.attributes['source']}.",
            "Move it away, or give another --output.",
        )
    return store
