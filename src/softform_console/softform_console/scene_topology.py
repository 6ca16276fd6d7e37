"""What a page needs to pick on a predicted mesh, and a coarser mesh for slow lines."""

import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from softform_console.scene_frames import Topology
from softform_core.robots import Robot
from softform_core.surface.patch_set import PatchSet
from softform_core.surface.skin import Skin, cells_of

COARSE_FROM = 20
"""Points a side from which a grid has a coarser one; less has little to save."""


class MeshGrid:
    """The mesh over the grids of a robot's patches, and its coarser form.

    Args:
        robot: Robot with a surface.
        topology: Id of the mesh's topology.
        count: Vertices of all patches together.
        triangles: (t, 3) indices.
        outputs: Names of the outputs, among which those of the patches are found.
    """

    def __init__(
        self, robot: Robot, topology: int, count: int, triangles: NDArray[np.uint32], outputs: Sequence[str]
    ) -> None:
        patches, names = robot.patches, [outputs.index(surface.patch) for surface in robot.surfaces]
        place, uv = patches.split(patches.samples(count))
        self.source, self.count = topology, count
        self.topology = _topology(topology, triangles, uv, place, names)
        self.coarse = _coarse(patches, topology, count, uv, place, names)

    def shown(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return what the vertices have, of the values or positions (P, ...) of the predicted points: those."""
        return values


class SkinGrid:
    """The mesh of a skin in place of that which it rides on.

    Args:
        skin: The skin.
        topology: Id of the topology of the mesh that it rides on, which has `skin.samples` vertices.
        output: Index of the skin among the outputs.

    Attributes:
        resting: (V, 3) m, its vertices as it was bound to the robot at rest.
    """

    coarse = None

    def __init__(self, skin: Skin, topology: int, output: int) -> None:
        self._skin, self.source, self.count = skin, topology, skin.samples
        self.resting = skin.vertices.astype(np.float32)
        triangles, count = skin.triangles.astype(np.uint32), len(skin.vertices)
        own = zlib.crc32(skin.vertices.tobytes(), zlib.crc32(triangles.tobytes(), topology))
        outputs = np.full(count, output, dtype=np.uint8)
        self.topology = Topology(own, triangles, np.zeros((count, 2), np.float32), outputs, 1, skin.cells)
        self._means = skin.anchors.shares @ skin.anchors.places

    def shown(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return what the skin's vertices have, of the values (P,) or positions (P, 3) of the predicted points."""
        if values.ndim == 1:
            return np.asarray(self._means @ values, dtype=np.float32)
        return self._skin.points(values.astype(np.float64)).astype(np.float32)


class ObjectGrid:
    """The mesh of an object that arms hold, with the nodes within it; picked as a skin is.

    Args:
        topology: Id of its topology.
        count: Nodes.
        triangles: (t, 3) of them.
    """

    coarse = None

    def __init__(self, topology: int, count: int, triangles: NDArray[np.uint32]) -> None:
        self.source, self.count = topology, count
        uv, outputs = np.zeros((count, 2), np.float32), np.zeros(count, dtype=np.uint8)
        self.topology = Topology(topology, triangles, uv, outputs, 1, cells_of(len(triangles)))

    def shown(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return what the nodes have: the values themselves."""
        return values


def _topology(
    number: int,
    triangles: NDArray[np.uint32],
    uv: NDArray[np.float64],
    place: NDArray[np.int64],
    names: Sequence[int],
) -> Topology:
    output = np.asarray(names, dtype=np.uint8)[place]
    return Topology(number, triangles.astype(np.uint32), uv.astype(np.float32), output, len(names))


def _coarse(
    patches: PatchSet,
    number: int,
    count: int,
    uv: NDArray[np.float64],
    place: NDArray[np.int64],
    names: Sequence[int],
) -> tuple[NDArray[np.int64], Topology] | None:
    """Return the vertices of every second row and column, the last ones included, and triangles between them."""
    kept, triangles, start, before = [], [], 0, 0
    for patch, size in zip(patches.patches, np.bincount(place, minlength=len(patches)), strict=True):
        side = round(float(size) ** 0.5)
        if side * side != size or side < COARSE_FROM:
            return None
        along = np.arange(0, side, 2)
        across = np.union1d(np.arange(0, side, 2), [side - 1])
        rows = along if patch.periodic else across
        kept.append((rows[:, None] * side + across).ravel() + before)
        triangles.append(_grid_triangles(len(rows), len(across), patch.periodic) + start)
        start, before = start + len(rows) * len(across), before + int(size)
    rows_kept = np.concatenate(kept)
    joined = np.concatenate(triangles).astype(np.uint32)
    own = zlib.crc32(joined.tobytes(), number & 0xFFFFFFFF)
    return rows_kept, _topology(own, joined, uv[rows_kept], place[rows_kept], names)


def _grid_triangles(rows: int, columns: int, is_closed: bool) -> NDArray[np.int64]:
    """Return triangles (t, 3) over a grid, oriented as those of `Patch.triangles`."""
    start = np.arange(rows if is_closed else rows - 1)
    corner = (start[:, None] * columns + np.arange(columns - 1)).ravel()
    beyond = ((start[:, None] + 1) % rows * columns + np.arange(columns - 1)).ravel()
    return np.concatenate(
        [np.stack([corner, beyond, beyond + 1], axis=1), np.stack([corner, beyond + 1, corner + 1], axis=1)]
    )
