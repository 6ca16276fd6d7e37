"""Binary frames of the scene: a header and typed arrays, at the level that a line can carry (PROTOCOL.md)."""

import struct
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

MAGIC = 0x31434653
_HEADER = struct.Struct("<IBBBBHHIdIIIffI3f3f")
HEADER_BYTES = _HEADER.size

Floats = NDArray[np.float32]


class Kind(IntEnum):
    """What a frame shows."""

    TOPOLOGY = 1
    MESH = 2
    CLOUD = 3
    MARKERS = 4
    TARGET = 5
    GONE = 6


class Level(IntEnum):
    """Precision of a frame, the finest first; of a coarse mesh each second row and column is left out."""

    FLOAT = 0
    SHORT = 1
    COARSE = 2


STALE, HAS_SCALAR, PREVIEW = 1, 2, 4
"""Bits of a frame's flags."""


@dataclass(frozen=True)
class Topology:
    """Triangles (t, 3) between n vertices; parameters (n, 2) of each on its patch, and index of that output (n,).

    The parameters of a skin are those of a map of `cells` x `cells` cells, see `surface.skin`; 0 of patches.
    """

    id: int
    triangles: NDArray[np.uint32]
    uv: Floats
    output: NDArray[np.uint8]
    outputs: int
    cells: int = 0


@dataclass(frozen=True)
class SceneItem:
    """Something to show; each encoding is made once, for all pages.

    Attributes:
        kind: What it is.
        robot: Index of the robot.
        stamp: s since the epoch, of the measurement or capture.
        points: (n, 3) m; NaN rows only of markers.
        flags: `STALE`, `PREVIEW`.
        scalar: (n,) m, or None.
        triangles: (t, 3) of a target, or None for a cloud.
        topology: Of a topology or a mesh.
        coarse: What a coarse mesh has in its place: the rows of `points` that stay, and their topology.
        gone: Of `Kind.GONE`: what is shown no more.
    """

    kind: Kind
    robot: int
    stamp: float
    points: Floats = field(default_factory=lambda: np.zeros((0, 3), np.float32))
    flags: int = 0
    scalar: Floats | None = None
    triangles: NDArray[np.uint32] | None = None
    topology: Topology | None = None
    coarse: "tuple[NDArray[np.int64], Topology] | None" = None
    gone: Kind | None = None
    _made: dict[Level, bytes] = field(default_factory=dict)

    def encoded(self, level: Level, seq: int) -> bytes:
        """Return the frame at a level that is not finer than the kind allows, with its number."""
        body = self._made.get(level)
        if body is None:
            body = self._made[level] = self._encode(level)
        return body[:12] + struct.pack("<I", seq) + body[16:]

    def topology_at(self, level: Level) -> Topology | None:
        """Return the topology that a mesh has at a level."""
        return self.coarse[1] if level == Level.COARSE and self.coarse is not None else self.topology

    def _encode(self, level: Level) -> bytes:
        if self.kind == Kind.TOPOLOGY:
            return self._encode_topology()
        points, scalar, topology = self.points, self.scalar, self.topology_at(level)
        if self.kind == Kind.MESH and level == Level.COARSE and self.coarse is not None:
            points = points[self.coarse[0]]
            scalar = None if scalar is None else scalar[self.coarse[0]]
        short = level != Level.FLOAT and self.kind in (Kind.MESH, Kind.CLOUD) and len(points) > 0
        low, step, body = _shorted(points) if short else (np.zeros(3), np.ones(3), _bytes(points, "<f4"))
        flags, scalar_low, scalar_step = self.flags, 0.0, 1.0
        if scalar is not None:
            flags |= HAS_SCALAR
            if short:
                scalar_low, scalar_step, values = _byted(scalar)
                body += values
            else:
                body += _bytes(scalar, "<f4")
        count = 0
        if self.triangles is not None:
            count, body = len(self.triangles), body + _bytes(self.triangles, "<u4")
        return (
            _HEADER.pack(
                MAGIC,
                self.kind,
                int(short),
                flags,
                self.gone or 0,
                self.robot,
                0,
                0,
                self.stamp,
                len(points),
                count,
                0 if topology is None else topology.id,
                scalar_low,
                scalar_step,
                0,
                *low,
                *step,
            )
            + body
        )

    def _encode_topology(self) -> bytes:
        assert self.topology is not None
        one = self.topology
        head = (MAGIC, self.kind, 0, self.flags, 0, self.robot, one.outputs, 0, self.stamp)
        sizes = (len(one.uv), len(one.triangles), one.id, 0.0, 1.0, one.cells)
        header = _HEADER.pack(*head, *sizes, *(0.0,) * 3, *(1.0,) * 3)
        return header + _bytes(one.triangles, "<u4") + _bytes(one.uv, "<f4") + _bytes(one.output, "u1")


def _bytes(values: NDArray[np.generic], kind: str) -> bytes:
    return np.ascontiguousarray(values, dtype=kind).tobytes()


def _shorted(points: Floats) -> tuple[NDArray[np.float32], NDArray[np.float32], bytes]:
    """Return least value and step of each axis, and points (n, 3) as u16 between."""
    low = points.min(axis=0)
    step = np.maximum((points.max(axis=0) - low) / np.float32(65535.0), np.float32(1e-9))
    return low, step, np.rint((points - low) / step).clip(0, 65535).astype("<u2").tobytes()


def _byted(values: Floats) -> tuple[float, float, bytes]:
    """Return least value, step, and values (n,) as u8 between."""
    low = float(values.min())
    step = max((float(values.max()) - low) / 255.0, 1e-12)
    return low, step, np.rint((values - low) / step).clip(0, 255).astype(np.uint8).tobytes()
