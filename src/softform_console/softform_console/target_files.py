"""Target files that pages have dropped, and how they lie on the robot."""

import itertools
import secrets
import tempfile
import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from softform_console.protocol import Uploaded
from softform_console.scene_frames import PREVIEW, Kind, SceneItem
from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_core.shapes.shape import Shape

Pose = Literal["fixed", "free", "place"]

_KEPT = 8
_SHOWN_POINTS = 20_000
_SUFFIXES = (".ply", ".obj", ".stl", ".pcd", ".xyz")
_UNITS = ("m", "mm")

_NUMBERS = itertools.count(1 + secrets.randbelow(900_000))
"""Of targets of all robots: one that was dropped for another robot, or into an earlier console, is not taken for it."""


@dataclass(frozen=True)
class TargetFile:
    """A target as it was read, m, and what was left out or mended."""

    name: str
    unit: Literal["m", "mm"]
    shape: Shape
    notes: tuple[str, ...]


class TargetFiles:
    """The newest of the targets that were uploaded, by number; usable from any thread.

    Args:
        robot: Robot that is to take them.
    """

    def __init__(self, robot: Robot) -> None:
        self._robot, self._lock = robot, threading.Lock()
        self._files: OrderedDict[int, TargetFile] = OrderedDict()
        self._placed: tuple[int, Shape] | None = None

    def upload(self, name: str, unit: str, content: bytes) -> Uploaded:
        """Read and keep a target.

        Args:
            name: Name of the file, whose ending says what it is.
            unit: m or mm.
            content: Its bytes.

        Raises:
            SoftformError: If it cannot be used, with the reason.
        """
        from softform_core.shapes.read import read_file

        suffix = Path(name).suffix.lower()
        if suffix not in _SUFFIXES:
            raise SoftformError(f"'{name[:80]}' is no file of a known kind.", f"Give one of {', '.join(_SUFFIXES)}.")
        if unit not in _UNITS:
            raise SoftformError("The unit of the file is not given.", "Choose m or mm.")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / f"target{suffix}"
            file.write_bytes(content)
            try:
                read = read_file(file, unit)  # type: ignore[arg-type]
            except SoftformError as error:
                raise SoftformError(error.message.replace(str(file), f"'{name[:80]}'"), error.next_step) from error
        kept = TargetFile(name[:80], unit, read.shape, tuple(read.notes))  # type: ignore[arg-type]
        with self._lock:
            number = next(_NUMBERS)
            self._files[number] = kept
            while len(self._files) > _KEPT:
                self._files.popitem(last=False)
        box = np.ptp(kept.shape.points, axis=0)
        return Uploaded(
            id=number,
            name=kept.name,
            vertices=len(kept.shape.points),
            triangles=0 if kept.shape.faces is None else len(kept.shape.faces),
            size=(float(box[0]), float(box[1]), float(box[2])),
            text=" ".join([*self._doubt(kept), *kept.notes]),
        )

    def file(self, number: int) -> TargetFile:
        """Return a target.

        Raises:
            SoftformError: If it is not kept.
        """
        with self._lock:
            kept = self._files.get(number)
        if kept is None:
            raise SoftformError(
                f"No such target is kept for '{self._robot.title}': it is too old, or was dropped for another robot.",
                "Drop the file again, with that robot looked at.",
            )
        return kept

    def named(self, name: str, unit: str) -> Shape:
        """Return the newest target of a name, m.

        Raises:
            SoftformError: If there is none, or it was given in another unit.
        """
        with self._lock:
            kept = next((one for one in reversed(self._files.values()) if one.name == name), None)
        if kept is None:
            raise SoftformError(f"'{name}' was not dropped on the page.", "Drop it, and give its unit; then try again.")
        if kept.unit != unit:
            raise SoftformError(f"'{name}' was dropped as a file in {kept.unit}, not in {unit}.", "Say the same unit.")
        return kept.shape

    def posed(self, number: int, pose: Pose) -> Shape:
        """Return a target where it is meant: as its points say, or centred on the robot; `free` as its points say.

        Raises:
            SoftformError: If it is not kept, or the robot has no surface to place it on.
        """
        from softform_core.shapes.placing import placed

        shape = self.file(number).shape
        if pose != "place":
            return shape
        with self._lock:
            last = self._placed
        if last is not None and last[0] == number:
            return last[1]  # a large one is long in placing, and what was previewed is what is reached
        made = placed(shape, self._robot)
        with self._lock:
            self._placed = number, made
        return made

    def look(self, number: int, shape: Shape, pose: Pose) -> tuple[float | None, str]:
        """Return the share of a posed target beside the robot, None if not known, and all about it in a line."""
        from softform_core.evaluation.look import look_at

        kept = self.file(number)
        look = look_at(shape, self._robot, pose, kept.notes, kept.unit)
        return look.beside_robot_share, " ".join([*self._doubt(kept), look.line()])

    def _doubt(self, kept: TargetFile) -> list[str]:
        size = float(np.linalg.norm(np.ptp(kept.shape.points, axis=0)))
        if 0.05 < size / self._robot.body.size < 20.0:
            return []
        other = "mm" if kept.unit == "m" else "m"
        return [f"It is {size / self._robot.body.size:.3g} times as large as the robot: is its unit {other}?"]


def scene_item(shape: Shape, robot: int, stamp: float, is_preview: bool) -> SceneItem:
    """Return a target to be shown, thinned out if it has too many points."""
    faces = shape.faces
    if faces is not None and len(faces) > 3 * _SHOWN_POINTS:
        shape, faces = shape.sample(_SHOWN_POINTS), None
    points = shape.points
    if faces is None and len(points) > _SHOWN_POINTS:
        points = points[:: len(points) // _SHOWN_POINTS]
    return SceneItem(
        Kind.TARGET,
        robot,
        stamp,
        points.astype(np.float32),
        PREVIEW if is_preview else 0,
        triangles=None if faces is None else faces.astype(np.uint32),
    )
