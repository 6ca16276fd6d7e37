"""Captured frames on disk: one Zarr v3 group a data set, SI units.

Arrays: `actuation` (n, k) Pa as commanded, `measured` (n, k) Pa at the capture, `points` (M, 3) f4 m of all frames one
after the other, `offsets` (n, 2) a frame's first and one past its last point, `captured_at` (n,) s since the epoch,
`coverage` (n,) share of the robot that is seen, `covered` (n, g, g) where it is (False: missing region), `outliers`
(n,), `status` (n,). Attributes: schema, provenance, `sessions` (one entry each time collecting began) and `rejections`
(frame -> reason). A frame's status is written last, so whatever stops a run leaves a store in which every frame that is
marked as captured is there; points behind the last such frame are overwritten.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

import numpy as np
import zarr
from numpy.typing import NDArray

from softform_core.errors import SoftformError
from softform_core.frames.quality import COVERAGE_CELLS, FrameQuality
from softform_core.robots import Robot

SCHEMA = "softform/frames"
SCHEMA_VERSION = 1
_ATTRIBUTES = ("robot", "robot_fingerprint", "seed", "source", "via", "git_revision", "created", "sessions")
_FILL = {"measured": np.nan, "captured_at": np.nan, "coverage": np.nan, "outliers": np.nan}
_POINTS_PER_CHUNK = 16384


class FrameStatus(IntEnum):
    """What has become of a frame."""

    PENDING = 0
    CAPTURED = 1
    REJECTED = 2


@dataclass(frozen=True)
class Frame:
    """One captured frame.

    Attributes:
        number: Its place in the store.
        actuation: (k,) Pa as commanded.
        measured: (k,) Pa at the capture.
        points: (M, 3) m in the robot's frame.
        captured_at: s since the epoch.
        coverage: Share of the robot that is seen.
        covered: (g, g) where; False is a missing region.
    """

    number: int
    actuation: NDArray[np.float64]
    measured: NDArray[np.float64]
    points: NDArray[np.float32]
    captured_at: float
    coverage: float
    covered: NDArray[np.bool_]


class FrameStore:
    """An open store; `open_frames` and `create_frames` make one."""

    def __init__(self, path: Path, group: zarr.Group) -> None:
        """Wrap a group that has been checked."""
        self.path = path
        self._group = group

    def _array(self, name: str) -> zarr.Array:
        array = self._group[name]
        assert isinstance(array, zarr.Array)
        return array

    def _read(self, name: str) -> NDArray:
        return np.asarray(self._array(name)[...])

    def __len__(self) -> int:
        """Number n of frames, captured or not."""
        return len(self.actuation)

    @property
    def attributes(self) -> dict[str, object]:
        """Schema and provenance."""
        return dict(self._group.attrs)

    @property
    def sessions(self) -> list[dict[str, str]]:
        """One entry each time collecting began or went on: when, by which command, where its bag is."""
        sessions = self._group.attrs["sessions"]
        assert isinstance(sessions, list)
        return [
            {str(key): str(value) for key, value in session.items()}
            for session in sessions
            if isinstance(session, dict)
        ]

    @property
    def rejections(self) -> dict[int, str]:
        """Reason of every rejected frame."""
        rejections = self._group.attrs["rejections"]
        assert isinstance(rejections, dict)
        return {int(number): str(reason) for number, reason in rejections.items()}

    @property
    def actuation(self) -> NDArray[np.float64]:
        """Pressures that every frame is commanded, (n, k) Pa."""
        actuation = self._read("actuation")
        return actuation[np.isfinite(actuation).all(axis=1)]  # a growth that was cut short leaves rows of NaN

    @property
    def measured(self) -> NDArray[np.float64]:
        """Pressures measured at every capture, (n, k) Pa, NaN without one."""
        return self._read("measured")[: len(self)]

    @property
    def captured_at(self) -> NDArray[np.float64]:
        """Time of every capture, (n,) s since the epoch, NaN without one."""
        return self._read("captured_at")[: len(self)]

    @property
    def coverage(self) -> NDArray[np.float64]:
        """Share of the robot that every capture shows, (n,), NaN without one."""
        return self._read("coverage")[: len(self)]

    @property
    def status(self) -> NDArray[np.uint8]:
        """`FrameStatus` of every frame, (n,)."""
        return self._read("status")[: len(self)]

    @property
    def pending(self) -> NDArray[np.int64]:
        """Frames that have yet to be captured."""
        return np.flatnonzero(self.status == FrameStatus.PENDING)

    @property
    def captured(self) -> NDArray[np.int64]:
        """Frames to learn from."""
        return np.flatnonzero(self.status == FrameStatus.CAPTURED)

    def points(self, number: int) -> NDArray[np.float32]:
        """Cloud of one frame, captured or rejected, (M, 3) m; a pending one has no points."""
        first, end = (int(offset) for offset in np.asarray(self._array("offsets")[number]))
        return np.asarray(self._array("points")[first:end], dtype=np.float32)

    def frame(self, number: int) -> Frame:
        """One captured frame.

        Raises:
            SoftformError: If frame `number` is not captured, or its points are not whole.
        """
        if not 0 <= number < len(self) or self.status[number] != FrameStatus.CAPTURED:
            raise SoftformError(f"Frame {number} of {self.path} is not captured.", "See `captured` for those that are.")
        points = self.points(number)
        first, end = (int(offset) for offset in np.asarray(self._array("offsets")[number]))
        if len(points) != end - first or not len(points) or not np.isfinite(points).all():
            raise SoftformError(
                f"The points of frame {number} of {self.path} are damaged.", "Collect into another --output."
            )
        return Frame(
            number,
            self.actuation[number],
            self.measured[number],
            points,
            float(self.captured_at[number]),
            float(self.coverage[number]),
            np.asarray(self._array("covered")[number], dtype=bool),
        )

    def same_cloud(self, points: NDArray[np.floating]) -> int | None:
        """Return the kept frame that holds just these points, or None: two scans never agree in every digit."""
        offsets = self._read("offsets")[: len(self)]
        sought = np.asarray(points, dtype=np.float32)
        for number in np.flatnonzero((offsets[:, 1] - offsets[:, 0] == len(sought)) & (self.status != 0)):
            if np.array_equal(self.points(int(number)), sought):
                return int(number)
        return None

    def write_captured(
        self,
        number: int,
        points: NDArray[np.floating],
        measured: NDArray[np.float64],
        captured_at: float,
        quality: FrameQuality,
    ) -> None:
        """Keep a frame; it is rejected, with its points, if its quality has a fault.

        Args:
            number: Which frame.
            points: (M, 3) m in the robot's frame.
            measured: (k,) Pa at the capture.
            captured_at: s since the epoch.
            quality: From `assess_cloud`.

        Raises:
            SoftformError: If values are not finite, or the disk is full or cannot be written.
        """
        if not (np.isfinite(points).all() and np.isfinite(measured).all() and np.isfinite(captured_at)):
            raise SoftformError(f"Frame {number} holds values that are not finite.", "Drop them before it is stored.")
        with disk_errors(self.path):
            offsets = self._read("offsets")
            first = int(offsets[self._read("status") != FrameStatus.PENDING].max(initial=0))
            kept = self._array("points")
            kept.resize((first + len(points), 3))
            kept[first:] = np.asarray(points, dtype=np.float32)
            self._array("offsets")[number] = (first, first + len(points))
            self._array("measured")[number] = measured
            self._array("captured_at")[number] = captured_at
            self._array("coverage")[number] = quality.coverage
            self._array("covered")[number] = quality.covered
            self._array("outliers")[number] = quality.outliers
            if quality.fault:
                rejections = {str(key): reason for key, reason in self.rejections.items()}
                self._group.attrs["rejections"] = rejections | {str(number): quality.fault}
            self._array("status")[number] = FrameStatus.REJECTED if quality.fault else FrameStatus.CAPTURED

    def begin_session(self, session: dict[str, str]) -> None:
        """Note that collecting begins or goes on.

        Raises:
            SoftformError: If the disk is full or cannot be written.
        """
        with disk_errors(self.path):
            self._group.attrs["sessions"] = [*self.sessions, session]

    def extend(self, actuations: NDArray[np.float64]) -> None:
        """Grow to the frames of `actuations`, (m, k) Pa, which must begin with those that the store has.

        Raises:
            SoftformError: If it does not, or the disk is full or cannot be written.
        """
        before, after = len(self), len(actuations)
        shared = min(before, after)
        if not np.array_equal(self.actuation[:shared], actuations[:shared]):
            raise SoftformError(
                f"{self.path} was begun with other actuations.", "Give another --output, or the seed it was begun with."
            )
        if after <= before:
            return
        with disk_errors(self.path):
            # `actuation` grows last: its finite rows are the store's length, so a growth cut short is done again.
            for name in _per_frame(0, 0):
                array = self._array(name)
                array.resize((after, *array.shape[1:]))
            actuation = self._array("actuation")
            actuation.resize(actuations.shape)
            actuation[before:] = actuations[before:]


def _per_frame(frames: int, chambers: int) -> dict[str, tuple[tuple[int, ...], str]]:
    """Shape and type of the arrays with a row a frame, but for `actuation`."""
    return {
        "measured": ((frames, chambers), "f8"),
        "offsets": ((frames, 2), "i8"),
        "captured_at": ((frames,), "f8"),
        "coverage": ((frames,), "f8"),
        "covered": ((frames, COVERAGE_CELLS, COVERAGE_CELLS), "bool"),
        "outliers": ((frames,), "f8"),
        "status": ((frames,), "u1"),
    }


def create_frames(
    path: Path, robot: Robot, actuations: NDArray[np.float64], provenance: dict[str, object]
) -> FrameStore:
    """Make a store of pending frames; it appears at `path` complete or not at all.

    Args:
        path: Directory of the store, which must not exist.
        robot: Robot that is captured.
        actuations: (n, k) Pa.
        provenance: `seed, source, via, git_revision, created`.

    Raises:
        SoftformError: If the disk is full or cannot be written.
    """
    partial = path.with_name(path.name + ".partial")
    with disk_errors(path):
        partial.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(partial, ignore_errors=True)
        group = zarr.open_group(partial, mode="w", zarr_format=3)
        group.attrs.update(
            {"schema": SCHEMA, "schema_version": SCHEMA_VERSION, "robot": robot.name}
            | {"robot_fingerprint": robot.fingerprint(), "sessions": [], "rejections": {}}
            | provenance
        )
        actuation = group.create_array(
            "actuation", shape=actuations.shape, dtype="f8", chunks=(4096, actuations.shape[1]), fill_value=np.nan
        )
        actuation[:] = actuations
        for name, (shape, kind) in _per_frame(*actuations.shape).items():
            group.create_array(name, shape=shape, dtype=kind, chunks=(256, *shape[1:]), fill_value=_FILL.get(name, 0))
        group.create_array("points", shape=(0, 3), dtype="f4", chunks=(_POINTS_PER_CHUNK, 3))
        os.replace(partial, path)
    return open_frames(path, robot, writable=True)


def open_frames(path: Path | str, robot: Robot | None = None, *, writable: bool = False) -> FrameStore:
    """Open a store of captured frames.

    Args:
        path: Directory of the store.
        robot: If given, the store must hold frames of just this robot.
        writable: Whether frames will be written.

    Raises:
        SoftformError: If there is no store, or its schema, version, arrays or robot are other than expected.
    """
    path = Path(path)
    if not path.exists():
        raise SoftformError(f"There are no frames at {path}.", "Collect some with: softform collect --robot NAME")
    try:
        group = zarr.open_group(path, mode="r+" if writable else "r")
        attributes = dict(group.attrs)
        shapes = {name: array.shape for name, array in group.arrays()}
    except (OSError, ValueError, KeyError, TypeError, zarr.errors.BaseZarrError) as error:
        raise SoftformError(f"{path} is not a Zarr group that can be read: {error}", "Check the path.") from error
    if attributes.get("schema") != SCHEMA or attributes.get("schema_version") != SCHEMA_VERSION:
        raise SoftformError(
            f"{path} holds '{attributes.get('schema')}' version {attributes.get('schema_version')}, "
            f"not '{SCHEMA}' version {SCHEMA_VERSION}.",
            "Give the path of frames collected by this version of softform collect, or collect them again.",
        )
    missing = [name for name in (*_ATTRIBUTES, "rejections") if name not in attributes]
    if missing:
        raise SoftformError(f"The frames {path} lack their {', '.join(missing)}.", "Collect them again.")
    _check_shapes(path, shapes)
    if robot is not None and (
        attributes["robot"] != robot.name
        or attributes["robot_fingerprint"] != robot.fingerprint()
        or shapes["actuation"][1] != robot.degrees_of_freedom
    ):
        raise SoftformError(
            f"The frames {path} are of robot '{attributes['robot']}' (description {attributes['robot_fingerprint']}), "
            f"not of '{robot.name}' ({robot.fingerprint()}).",
            "Give another --output, or the robot that was captured.",
        )
    return FrameStore(path, group)


def _check_shapes(path: Path, shapes: dict[str, tuple[int, ...]]) -> None:
    if len(shapes.get("actuation", ())) != 2:
        wrong = ["actuation"]
    else:
        expected = _per_frame(*shapes["actuation"])
        # An interrupted growth leaves these arrays longer than `actuation`, which counts.
        wrong = [
            name
            for name, (shape, _) in expected.items()
            if shapes.get(name, ())[1:] != shape[1:] or shapes.get(name, (0,))[0] < shape[0]
        ]
        wrong += ["points"] * (shapes.get("points", ())[1:] != (3,))
    if wrong:
        raise SoftformError(
            f"Arrays of the frames {path} are missing or misshapen: {', '.join(sorted(wrong))}.",
            "The store is damaged; collect into another --output.",
        )


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn a failed write into an error that says what is kept and how to go on."""
    try:
        yield
    except OSError as error:
        raise SoftformError(
            f"Writing the frames {path} failed: {error.strerror or error}.",
            "Frames written so far are kept. Free disk space (or mend the permissions) and run the same command again; "
            "it continues.",
        ) from error
