"""A depth camera that looks at the object between green grippers: colour and depth, with what real ones do wrong.

As a D435 has them: noise that grows with the distance squared, depth in whole millimetres, holes, nothing where a
surface is met at a grazing angle. What is nearer hides what lies behind it, the grippers included.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.geometry.rigid import RigidTransform

if TYPE_CHECKING:
    from open3d.t.geometry import RaycastingScene

__all__ = ["DepthCamera", "Intrinsics", "Picture", "Solid", "back_projected", "box_solid", "looking_at"]

_AMBIENT = 0.35
_BACKGROUND = (150, 150, 155)
_COLOUR_NOISE = 4.0


class Intrinsics(NamedTuple):
    """Of a camera without distortion: width and height in pixels, focal length, and where its axis goes, in pixels."""

    width: int = 320
    height: int = 240
    focal: float = 300.0
    axis: tuple[float, float] | None = None

    @property
    def centre(self) -> tuple[float, float]:
        """Where its axis goes: through the middle of the image, if nothing is said."""
        return self.axis or (0.5 * (self.width - 1), 0.5 * (self.height - 1))


class Picture(NamedTuple):
    """What a camera saw: colour (h, w, 3), red, green, blue; depth along its axis (h, w) m, 0 where there is none."""

    colour: NDArray[np.uint8]
    depth: NDArray[np.float32]


class Solid(NamedTuple):
    """What can be seen: vertices (V, 3) m, triangles (F, 3), and a colour."""

    vertices: Array
    faces: NDArray[np.integer]
    colour: tuple[int, int, int]


_BOX_CORNERS = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)])
_BOX_FACES = np.array(
    [(0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1), (2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4),
     (1, 5, 7), (1, 7, 3)]
)  # fmt: skip


def box_solid(low: Array, high: Array, colour: tuple[int, int, int]) -> Solid:
    """A box along the axes."""
    return Solid(low + _BOX_CORNERS * np.subtract(high, low), _BOX_FACES, colour)


def looking_at(eye: Array, middle: Array, up: Array) -> RigidTransform:
    """Pose of a camera at `eye` (3,) m: z towards `middle`, y down, x to the right."""
    forward = np.subtract(middle, eye)
    forward = forward / np.linalg.norm(forward)
    right = np.cross(forward, up)
    right /= np.linalg.norm(right)
    return RigidTransform(np.stack([right, np.cross(forward, right), forward], axis=1), np.asarray(eye, dtype=float))


@dataclass(frozen=True)
class DepthCamera:
    """A camera at a pose in the object's frame.

    Attributes:
        pose: Where it truly is.
        intrinsics: Of both images.
        noise: Standard deviation of the depth at 1 m, m.
        quantum: Depth is a multiple of it, m.
        hole_share: Of the pixels that give no depth, in patches.
        grazing: Angle to the surface's normal from which it gives none, degrees.
        background: Distance of a wall behind all, m.
    """

    pose: RigidTransform
    intrinsics: Intrinsics = Intrinsics()
    noise: float = 0.0015
    quantum: float = 0.001
    hole_share: float = 0.02
    grazing: float = 80.0
    background: float = 1.6

    def look(self, solids: Sequence[Solid], random: np.random.Generator) -> Picture:
        """The picture of what is there."""
        width, height, focal, _ = self.intrinsics
        o3d = import_module("open3d")
        scene: RaycastingScene = o3d.t.geometry.RaycastingScene()
        tensor = o3d.core.Tensor.from_numpy
        for solid in solids:
            scene.add_triangles(tensor(solid.vertices.astype(np.float32)), tensor(solid.faces.astype(np.uint32)))
        ways = self._ways()
        rays = np.concatenate([np.broadcast_to(self.pose.translation, ways.shape), self.pose.rotate(ways)], axis=-1)
        hit = scene.cast_rays(tensor(rays.astype(np.float32)), nthreads=1)
        depth = hit["t_hit"].numpy().astype(np.float64)  # ways have 1 along the axis
        seen, which = np.isfinite(depth), hit["geometry_ids"].numpy()
        normals = hit["primitive_normals"].numpy().astype(np.float64)
        towards = self.pose.rotate(ways) / np.linalg.norm(ways, axis=-1, keepdims=True)
        facing = np.abs(np.einsum("hwi,hwi->hw", normals, towards))
        palette = np.array([solid.colour for solid in solids] + [_BACKGROUND], dtype=np.float64)
        colour = palette[np.where(seen, which, len(solids))]
        light = np.where(seen, _AMBIENT + (1.0 - _AMBIENT) * facing, 0.8)
        colour = colour * light[..., None] + _COLOUR_NOISE * random.standard_normal(colour.shape)
        distance = np.where(seen, depth, self.background)
        distance = distance + self.noise * distance**2 * random.standard_normal(distance.shape)
        if self.quantum:
            distance = self.quantum * np.round(distance / self.quantum)
        blind = (seen & (facing < np.cos(np.radians(self.grazing)))) | self._holes(random, (height, width))
        return Picture(
            np.clip(colour, 0, 255).astype(np.uint8), np.where(blind, 0.0, np.maximum(distance, 0.0)).astype(np.float32)
        )

    def _ways(self) -> Array:
        """Directions (h, w, 3) of the pixels in its own frame, 1 along its axis."""
        width, height, focal, _ = self.intrinsics
        across, down = np.meshgrid(np.arange(width), np.arange(height))
        cx, cy = self.intrinsics.centre
        return np.stack([(across - cx) / focal, (down - cy) / focal, np.ones(across.shape)], axis=-1)

    def _holes(self, random: np.random.Generator, shape: tuple[int, int]) -> NDArray[np.bool_]:
        """Patches without depth, (h, w): of 4 x 4 pixels each, at random."""
        coarse = random.random((-(-shape[0] // 4), -(-shape[1] // 4))) < self.hole_share
        return np.asarray(np.kron(coarse, np.ones((4, 4), dtype=bool))[: shape[0], : shape[1]])


def back_projected(mask: NDArray[np.bool_], depth: NDArray[np.float32], intrinsics: Intrinsics) -> Array:
    """Points (N, 3) m in the camera's frame of the pixels of a mask (h, w) that have a depth."""
    rows, columns = np.nonzero(mask & (depth > 0.0) & np.isfinite(depth))
    z = depth[rows, columns].astype(np.float64)
    cx, cy = intrinsics.centre
    return np.stack([(columns - cx) / intrinsics.focal * z, (rows - cy) / intrinsics.focal * z, z], axis=1)
