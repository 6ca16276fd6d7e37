"""Recorded shapes of the tendon robot with their histories, as paper 004, Sec. V-B, collects them; reader and store.

On disk one Zarr group, SI units, a row for each recorded shape in the order of execution. Of each: `actuation` (n, k),
the present configuration, `past` (n, h, k), the configurations before it, the oldest first, as in frames;
`part` and `chain`; the `cloud` (n, 512, 3) of both cameras; and the truth: `centre_line` (n, S, 3) and `directors`
(n, S, 3, 3) of the stations of `bodies.swept`.
"""

from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import zarr
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.bodies.swept import Skin
from softform_core.robots import Robot, load_robot
from softform_core.stores.zarr_stores import Shapes, StoreKind, misshapen_rows, new_group, open_group
from softform_core.units import MM_PER_M

CLOUD_POINTS = 512
"""M of the paper."""
REMEMBERED = 4
"""Configurations before the present one that are kept: one of them is the paper's prior one."""
SURFACE_SAMPLES = 2048

Part = Literal["home", "random_1", "random_2", "walk", "trajectory"]
PARTS: tuple[Part, ...] = ("home", "random_1", "random_2", "walk", "trajectory")
"""How shapes were approached. Those of `home` come from home, those of `random_1` and `random_2` from a random nominal
configuration that was itself reached from the last nominal one; a `walk` and a `trajectory` go from shape to shape."""


@dataclass(frozen=True, eq=False)
class RecordedShapes:
    """n shapes; lengths in mm, configurations in m, all float64 but the clouds.

    Attributes:
        q_current: (n, k) configuration, m: pulls of the tendons; 0 of one that hangs slack.
        past: (n, h, k) configurations before it, the oldest first; home where nothing was before.
        part: (n,) index in `PARTS`.
        chain: (n,) number of the unbroken run, begun at home with a rested robot, that a shape belongs to; rows of a
            chain stand in the order of execution.
        cloud: (n, 512, 3) mm, what both cameras saw, in the robot's frame; float32.
        centre_line: (n, S, 3) mm, true, from the base to the tip.
        directors: (n, S, 3, 3) true, as columns; the third leads along the rod.
        robot: Name of the robot.
    """

    q_current: Array
    past: Array
    part: NDArray[np.int64]
    chain: NDArray[np.int64]
    cloud: NDArray[np.float32]
    centre_line: Array
    directors: Array
    robot: str

    def __len__(self) -> int:
        return len(self.q_current)

    @property
    def q_prior(self) -> Array:
        """The prior configuration, (n, k) m."""
        return np.asarray(self.past[:, -1])

    @property
    def eta(self) -> Array:
        """The paper's augmented configuration [q_prior, q_current], (n, 2 k) m."""
        return np.concatenate([self.q_prior, self.q_current], axis=1)

    @property
    def tip(self) -> Array:
        """True tips, (n, 3) mm."""
        return np.asarray(self.centre_line[:, -1])

    @cached_property
    def skin(self) -> Skin:
        """The skin, in mm: `skin.vertices(centre_line, directors)` sweeps any centre line to a surface."""
        skin: Skin = load_robot(self.robot).body.skin()
        return skin.scaled(MM_PER_M)

    @cached_property
    def _samples(self) -> tuple[NDArray[np.int64], Array]:
        straight = self.skin.vertices(*straight_line(load_robot(self.robot), MM_PER_M))
        return self.skin.samples(straight, SURFACE_SAMPLES)

    def surface(self, centre_line: Array | None = None, directors: Array | None = None) -> Array:
        """Return points (n, 2048, 3) mm, the same of the material on each shape, spread evenly over the surface.

        They are of the true shapes, or of others that are given by centre line (n, S, 3) mm and directors.
        """
        line = self.centre_line if centre_line is None else centre_line
        vertices = self.skin.vertices(line, self.directors if directors is None else directors)
        corners, weights = self._samples
        return np.asarray((vertices[:, corners] * weights[:, :, None]).sum(axis=2))

    @cached_property
    def area(self) -> float:
        """Area of the straight robot's surface, mm^2, for the sampling floor 2 A / pi."""
        a, b, c = self.skin.vertices(*straight_line(load_robot(self.robot), MM_PER_M))[self.skin.faces].swapaxes(0, 1)
        return float(0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1).sum())

    def of(self, rows: NDArray[Any]) -> "RecordedShapes":
        """Return some of the shapes, by numbers or a mask (n,)."""
        named = {each.name: getattr(self, each.name)[rows] for each in fields(self) if each.name != "robot"}
        return replace(self, **named)

    def of_parts(self, *parts: Part) -> "RecordedShapes":
        """Return the shapes of some parts."""
        return self.of(np.isin(self.part, [PARTS.index(part) for part in parts]))


def joined(parts: list[RecordedShapes]) -> RecordedShapes:
    """Return shapes that were recorded in parts, in the order of their chains."""
    names = [each.name for each in fields(RecordedShapes) if each.name != "robot"]
    arrays: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    whole = replace(parts[0], **arrays)
    return whole.of(np.argsort(whole.chain, kind="stable"))


def straight_line(robot: Robot, scale: float = 1.0) -> tuple[Array, Array]:
    """Return centre line (S, 3) and directors (S, 3, 3) of the straight rod; in m, times `scale`."""
    simulator = robot.body.simulator()
    line, directors = simulator.stations(simulator.rest[None])
    return scale * line[0], directors[0]


def _misshapen(shapes: Shapes) -> list[str]:
    inputs, nodes = shapes.get("actuation", (0, 0))[-1], shapes.get("centre_line", (0, 0))[1]
    rows = {
        "past": ((REMEMBERED, inputs), "f8"),
        "part": ((), "i4"),
        "chain": ((), "i4"),
        "cloud": ((CLOUD_POINTS, 3), "f4"),
        "centre_line": ((nodes, 3), "f4"),
        "directors": ((nodes, 3, 3), "f4"),
    }
    return misshapen_rows(shapes, rows)


SHAPES = StoreKind(
    name="set of shapes with histories",
    schema="softform/remembered_shapes",
    version=1,
    attributes=("command", "git_revision", "created", "reality", "seed"),
    made_by="./softform histories",
    misshapen=_misshapen,
)


def write_shapes(path: Path, robot: Robot, shapes: RecordedShapes, provenance: dict[str, Any]) -> None:
    """Write shapes as a store of their own; it appears at `path` complete or not at all.

    Raises:
        SoftformError: If the disk is full or cannot be written.
    """
    with new_group(path, SHAPES, robot) as group:
        group.attrs.update(provenance)
        arrays: dict[str, NDArray[Any]] = {
            "actuation": shapes.q_current,
            "past": shapes.past,
            "part": shapes.part.astype(np.int32),
            "chain": shapes.chain.astype(np.int32),
            "cloud": (shapes.cloud / MM_PER_M).astype(np.float32),
            "centre_line": (shapes.centre_line / MM_PER_M).astype(np.float32),
            "directors": shapes.directors.astype(np.float32),
        }
        for name, values in arrays.items():
            group.create_array(name, data=values, chunks=(min(1024, len(values)), *values.shape[1:]))


def read_shapes(path: Path, robot: Robot | None = None) -> RecordedShapes:
    """Read a store of shapes; of just this robot if one is given, else of the one that it names, as described now.

    Raises:
        SoftformError: If there is none, it is damaged, or of another robot.
    """
    group = open_group(path, SHAPES, robot, writable=False)
    if robot is None:
        group = open_group(path, SHAPES, load_robot(str(group.attrs["robot"])), writable=False)

    def read(name: str) -> NDArray[Any]:
        array = group[name]
        assert isinstance(array, zarr.Array)
        return np.asarray(array[:])

    return RecordedShapes(
        q_current=read("actuation"),
        past=read("past"),
        part=read("part").astype(np.int64),
        chain=read("chain").astype(np.int64),
        cloud=np.asarray(read("cloud") * np.float32(MM_PER_M), dtype=np.float32),
        centre_line=read("centre_line").astype(np.float64) * MM_PER_M,
        directors=read("directors").astype(np.float64),
        robot=str(group.attrs["robot"]),
    )
