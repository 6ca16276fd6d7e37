"""Binding of a mesh to a robot at rest: by places of its surface, by bones along a tube, or by its body's elements."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, identity

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.geometry.triangle_tree import TriangleTree
from softform_core.registration.rest_surface import rest_surface
from softform_core.robots import Robot
from softform_core.shapes.shape import Shape
from softform_core.shapes.validate import check_target
from softform_core.simulation.simulated_body import BodyOfBones
from softform_core.surface.anchors import Anchors
from softform_core.surface.mesh import border_loops, with_seams_joined
from softform_core.surface.patch import grid_side
from softform_core.surface.patch_set import PatchSet
from softform_core.surface.skin import Skin
from softform_core.surface.skinning import along_spine, on_bones, skinned

MOST_TRIANGLES = 200_000
"""More than this a page does not draw at the rate of the robot."""

_FAR, _DOUBTFUL = 0.5, 0.1
"""Distances from the robot, over its size: a skin whose nearest vertex is farther is not the robot's; a far one."""


@dataclass(frozen=True)
class BoundSkin:
    """A skin, and what is to be said of it.

    Attributes:
        skin: The skin.
        distances: (V,) m, of its vertices from the surface at rest.
        warnings: What may be wrong, a sentence each.
    """

    skin: Skin
    distances: Array
    warnings: tuple[str, ...]


def bind_skin(shape: Shape, robot: Robot, samples: int = 1000, bones: int = 0) -> BoundSkin:
    """Bind a mesh that lies over a robot at rest, in its frame.

    Args:
        shape: The mesh, m.
        robot: Robot with a surface.
        samples: About so many points of the surface it rides on.
        bones: Number of bones along a tube; 0: each vertex rides on the place of the surface that it lies over, or
            where there is no surface on the frames of the body's elements.

    Raises:
        SoftformError: If it is no mesh, is too large, of another size than the robot's or far from it, or the robot has
            neither a surface nor elements, or none that bones can lie in.
    """
    if shape.faces is None:
        raise SoftformError("It is a cloud: a skin needs triangles.", "Give a mesh.")
    if len(shape.faces) > MOST_TRIANGLES:
        raise SoftformError(
            f"It has {len(shape.faces)} triangles; a skin has at most {MOST_TRIANGLES}.", "Thin the mesh out."
        )
    vertices, size = check_target(shape.points, robot, "skin"), float(np.linalg.norm(robot.extent))
    bound, distances = (
        _on_surface(robot, vertices, samples, bones) if robot.surfaces else _on_elements(robot, vertices, bones)
    )
    if distances.min() > _FAR * size:
        raise SoftformError(
            f"Its nearest vertex lies {distances.min():.3g} m from the robot, which is {size:.3g} m large.",
            "Move it onto the robot at rest, in the robot's frame.",
        )
    skin = Skin(vertices, shape.faces.astype(np.int64), bound, {})
    return BoundSkin(skin, distances, tuple(_warnings(vertices, skin.triangles, distances, size)))


def _on_surface(robot: Robot, vertices: Array, samples: int, bones: int) -> tuple[Anchors, Array]:
    """Return vertices (V, 3) as anchors on about so many points of the surface, and distances (V,) from it, m."""
    patches = robot.patches
    uv = patches.samples(samples)
    surface = patches.evaluate(rest_surface(robot).control_points, uv)
    triangles = patches.triangles(len(uv))
    found, feet, weights = TriangleTree(surface[triangles]).query(vertices)
    distances = np.linalg.norm(vertices - feet, axis=1)
    if bones:
        return _spine(uv, surface, patches, vertices, bones), distances
    places = identity(len(uv), format="csr")
    return skinned(surface, places, grid_frames(patches, len(uv)), vertices, triangles[found], weights), distances


def _on_elements(robot: Robot, vertices: Array, bones: int) -> tuple[Anchors, Array]:
    """Return vertices (V, 3) as anchors on the frames of the body's elements, and distances (V,) from its axis, m."""
    body = robot.body.simulator() if robot.body.is_simulated else None
    if not isinstance(body, BodyOfBones):
        raise SoftformError(f"'{robot.name}' has neither a surface nor elements.", "A skin has nothing to ride on.")
    if bones:
        raise SoftformError(f"'{robot.name}' has bones of its own: its elements.", "Leave out --bones.")
    return on_bones(body.bones(body.rest[None])[0], vertices)


def _warnings(vertices: Array, triangles: NDArray[np.int64], distances: Array, size: float) -> list[str]:
    said = []
    if loops := len(border_loops(with_seams_joined(vertices, triangles))):
        said.append(f"It is open: it has {loops} border{'s' * (loops != 1)}.")
    far = float((distances > _DOUBTFUL * size).mean())
    if far:
        said.append(f"{far:.0%} of it lies more than {1e3 * _DOUBTFUL * size:.0f} mm from the robot: see the picture.")
    return said


def grid_frames(patches: PatchSet, count: int) -> NDArray[np.int64]:
    """Return a frame (P, 3) at each of `patches.samples(count)`: to its neighbour along u, and along v beside that."""
    frames, start = [], 0
    for patch in patches.patches:
        side = grid_side(count // len(patches))
        index = np.arange(side**2).reshape(side, side) + start
        along_u = np.roll(index, -1, axis=0)
        if not patch.periodic:
            along_u[-1] = index[-2]
        along_v = np.concatenate([index[:, 1:], index[:, -2:-1]], axis=1)
        frames.append(np.stack([index, along_u, along_v], axis=-1).reshape(-1, 3))
        start += index.size
    return np.concatenate(frames)


def _spine(uv: Array, surface: Array, patches: PatchSet, vertices: Array, bones: int) -> Anchors:
    """Bones at the middles of rings of a tube; x to the next ring, and the first point of the ring says the roll."""
    if len(patches) != 1 or not patches.only.periodic:
        raise SoftformError("Bones lie along a tube, and the robot is not one.", "Leave out --bones.")
    around = along = grid_side(len(uv))
    grid = np.arange(len(uv)).reshape(around, along)
    if not 2 <= bones <= along:
        raise SoftformError(f"{bones} bones were asked for.", f"Give 2 to {along}, or more --samples.")
    rings = grid[:, np.round(np.linspace(0, along - 1, bones)).astype(int)]
    columns = np.concatenate([rings.T.ravel(), rings[0]])
    rows = np.concatenate([np.repeat(np.arange(bones), around), bones + np.arange(bones)])
    shares = np.concatenate([np.full(around * bones, 1.0 / around), np.ones(bones)])
    places = csr_matrix((shares, (rows, columns)), shape=(2 * bones, len(uv)))
    number = np.arange(bones)
    frames = np.stack([number, np.where(number < bones - 1, number + 1, bones - 2), bones + number], axis=1)
    middles = places[:bones] @ surface
    index, weights, _ = along_spine(middles, vertices)
    return skinned(surface, places, frames, vertices, index, weights)
