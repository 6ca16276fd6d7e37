"""A table of actuations and scans, captured elsewhere, as a store of frames."""

import contextlib
import hashlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
from tqdm import tqdm

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.files import only_writer
from softform_core.frames.following import ShapeJudge
from softform_core.frames.quality import FrameQuality, assess_cloud, measured_points, unfit_cloud
from softform_core.frames.store import FrameStore, create_frames, open_frames
from softform_core.geometry.rigid import RigidTransform
from softform_core.importing.checks import check_columns, check_scale, numbers_in_si, read_actuations
from softform_core.provenance import made_now
from softform_core.registration.scanner_pose import ScannerPlace, scanner_place
from softform_core.robots import Robot
from softform_core.shapes.read import ReadShape, Unit, read_file, read_shape

_MORE_MISSING = 0.1
"""Share of a scan that may be missing beyond what is missing in the others: more says that this one went wrong."""
_LOOKED_AT = 15
"""Scans that tell how much is usually missing."""


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
    scanner: str | None = None,
    in_order: bool = False,
    progress: bool = True,
) -> FrameStore:
    """Bring scans into a store that `./softform train s2r` takes; each is judged as a collected one is.

    A scan that is unfit or cannot be read is kept as rejected, with its reason (`FrameStore.rejections`), and is looked
    at again when the import is. Points that say "not measured" (`frames.quality.measured_points`) are left out; a scan
    that misses far more of them than the others is unfit.

    Columns of the table (`importing.table.read_table`) are the degrees of freedom of a robot with a surface and N_fk,
    in their order, commanded and measured (None: as commanded), and scan files (`shapes.read`) in the robot's frame, or
    in that of a `scanner` (`scanner_place`). `in_order` says that rows follow one another as they were commanded: what
    was before each is then known, and a memory can be learned.

    Raises:
        SoftformError: If table or scans cannot be this robot's, it has no model, or the store cannot be written.
    """
    table, commanded = read_actuations(path, robot, actuation, actuation_unit)
    reached = commanded
    if measured is not None:
        check_columns(robot, "--measured", measured, robot.actuation_names)
        reached = numbers_in_si(table, measured, actuation_unit, robot.unit)
        absent = np.flatnonzero(~np.isfinite(reached).all(axis=1))
        if len(absent):
            raise SoftformError(
                f"{path} has no measured actuation in {table.rows(absent)}.", "Complete or delete these rows."
            )
    files = table.files(scans)
    check_scale(robot, table, _first_readable(files, unit))  # a wrong unit is said before a store is begun
    sizes = ",".join(str(file.stat().st_size) for file in files)
    digest = hashlib.sha256(f"{table.sha256} {sizes}".encode()).hexdigest()[:12]
    settings: dict[str, object] = {  # by which another import is not added to a store
        "seed": 0,
        "source": f"{path.name} ({digest})",
        "via": "scanner",
        "unit": unit,
        "columns": [*actuation, scans, *(measured or ())],
        "actuation_unit": actuation_unit,
        "scanner": scanner,
        "in_order": in_order,
    }
    place = ScannerPlace(robot, RigidTransform()) if scanner is None else scanner_place(scanner, robot)
    judge = ShapeJudge(robot)
    usually_missing = cache(lambda: _usually_missing(files, unit))
    with only_writer(output, "importing"):
        store = _store(robot, commanded, settings, output)
        for number in store.captured:
            judge.keep(int(number), commanded[number], store.points(int(number)))
        store.take_back(list(store.rejections))
        done, unmeasured = len(store) - len(store.pending), 0
        for number in tqdm(store.pending, total=len(store), initial=done, desc="import", disable=not progress):
            try:
                read = read_file(files[number], unit)
                read.log_notes(files[number])
                _check_missing(read, usually_missing)
                points = measured_points(read.shape.points)
                unmeasured += read.not_measured + len(read.shape.points) - len(points)
                check_scale(robot, table, points)
                points = place.placed(points, reached[number])
                quality = _judged(robot, judge, store, commanded[number], points)
            except SoftformError as error:
                points, quality = np.empty((0, 3)), unfit_cloud(robot, error.message)
            store.write_captured(int(number), points, reached[number], files[number].stat().st_mtime, quality)
            if not quality.fault:
                judge.keep(int(number), commanded[number], points)
    if unmeasured:
        logging.getLogger(__name__).warning("%d points that say 'not measured' were left out.", unmeasured)
    if not len(store.captured):
        first = next(iter(store.rejections.values()))
        raise SoftformError(
            f"None of {len(store)} scans shows '{robot.name}'; of the first one: {first}",
            "Register the scanner and give it as --scanner if scans are in its frame; check --unit and --actuation.",
        )
    return store


def _first_readable(files: Sequence[Path], unit: Unit) -> Array:
    """Points (M, 3) m of the first scan that can be read; the error of the first if none can."""
    for file in files:
        with contextlib.suppress(SoftformError):
            return read_shape(file, unit).points
    return read_shape(files[0], unit).points


def _check_missing(read: ReadShape, usually_missing: Callable[[], float]) -> None:
    """Let no scan pass that misses far more than the others; how much these miss is asked only where it misses much.

    Raises:
        SoftformError: With both shares.
    """
    if (share := _missing(read)) <= _MORE_MISSING or share <= (usual := usually_missing()) + _MORE_MISSING:
        return
    number = read.not_measured + len(read.shape.points)
    raise SoftformError(
        f"{read.not_measured} of its {number} points were not measured (NaN, or all zeros): {share:.0%}, "
        f"and {usual:.0%} in the others.",
        "Capture or export it again.",
    )


def _usually_missing(files: Sequence[Path], unit: Unit) -> float:
    """Return the median of what some of the scans, over all of the table, miss."""
    shares = []
    for file in files[:: max(1, len(files) // _LOOKED_AT)]:
        with contextlib.suppress(SoftformError):
            shares.append(_missing(read_file(file, unit)))
    return float(np.median(shares))


def _missing(read: ReadShape) -> float:
    return read.not_measured / (read.not_measured + len(read.shape.points))


def _judged(robot: Robot, judge: ShapeJudge, store: FrameStore, actuation: Array, points: Array) -> FrameQuality:
    quality = assess_cloud(points, robot, judge.expected(actuation))
    if quality.fault:
        return quality
    if (twin := store.same_cloud(points)) is not None:
        return replace(quality, fault=f"it is the same cloud as frame {twin}.")
    return replace(quality, fault=judge.fault(actuation, points))


def _store(robot: Robot, commanded: Array, settings: dict[str, object], output: Path) -> FrameStore:
    if not output.exists():
        create_frames(output, robot, commanded, settings | made_now())
    store = open_frames(output, robot, writable=True)
    if any(store.attributes.get(name) != value for name, value in settings.items()):
        raise SoftformError(
            f"{output} holds other frames than this import: {store.attributes['source']}.",
            "Move it away, or give another --output.",
        )
    return store
