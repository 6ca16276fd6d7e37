"""Torsos as targets for the mannequin: bodies at 1:2, with the neck where its neck is, cut to the part that it has.

A body is of the mannequin's size if its girths at hips, waist and chest lie between those of the mannequin at rest and
fully inflated. The targets are some such bodies, and some that are of another size: out of reach on purpose.

The paper's scans (CAESAR) are not public: people are drawn with `anny` (NAVER, Apache-2.0), MakeHuman's body model
(CC0) in PyTorch; its data come with the package. It is no part of Softform's installation. Its first use builds a
cache: minutes, and 0.8 GB in its own folder.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.robots import Robot
from softform_core.shapes.shape import Shape
from softform_core.surface.mesh import directed_edges
from softform_core.units import MM_PER_M

RANGES = {
    "gender": (0.0, 1.0),  # from male to female
    "age": (0.65, 0.9),  # 2/3 is a young adult, 1 old
    "muscle": (0.0, 1.0),
    "weight": (0.0, 1.0),
    "height": (0.2, 0.7),  # 1.5 to 2 m
    "proportions": (0.0, 1.0),
}
"""Ranges of uniform draws on anny's scale from 0 to 1: chosen, not the statistics of a population."""

BODIES = 300
"""Number of bodies that are drawn; one in fourteen is of the mannequin's size."""

_ARMS = ("shoulder", "upperarm", "lowerarm", "wrist", "metacarpal", "finger")
_HALF = 0.5
_MIDLINE = 0.004  # m
_AROUND_HIPS = 0.15  # m

SCALE = 0.5
TAPE_HEIGHTS = (0.060, 0.130, 0.200)
"""Heights of the tape at hips, waist and chest of the description's core, m."""

TAPE_PART = 0.02
"""Largest relative difference of a fitting girth from the mannequin's."""

_SURFACE_SAMPLES = 3600


@dataclass(frozen=True)
class Bodies:
    """People, standing, life-size; x to the front, y to the left, z upwards from the base of the neck.

    Attributes:
        vertices: (n, V, 3) m.
        faces: (F, 3), without arms: those are none of a torso.
        crotch: (n,) m, height of the crotch, below 0.
        stature: (n,) m.
    """

    vertices: Array
    faces: NDArray[np.int64]
    crotch: Array
    stature: Array


def draw_bodies(count: int, seed: int) -> Bodies:
    """Draw people from `RANGES`; the same for the same count and seed.

    Raises:
        SoftformError: If `anny` is not installed.
    """
    try:
        import anny
        import torch
    except ImportError as error:
        raise SoftformError(
            f"People are drawn with the package anny, which cannot be imported: {error}.",
            "Install it in this environment: pip install anny",
        ) from error
    model = anny.Anny()
    random = np.random.default_rng(seed)
    drawn = {name: torch.tensor(random.uniform(*of, count), dtype=torch.float32) for name, of in RANGES.items()}
    with torch.no_grad():
        people = model(phenotype_kwargs=drawn)
    labels = [str(label) for label in model.bone_labels]
    heads = people["rest_bone_heads"].numpy().astype(np.float64)
    neck, hip = heads[:, labels.index("neck01")], heads[:, labels.index("upperleg01.L")]
    vertices = people["rest_vertices"].numpy().astype(np.float64)
    stature = np.ptp(vertices[:, :, 2], axis=1)
    vertices -= neck[:, None]
    near_hips = np.abs(vertices[:, :, 2] - (hip - neck)[:, None, 2]) < _AROUND_HIPS
    midline = (np.abs(vertices[:, :, 0]) < _MIDLINE) & near_hips
    crotch = np.where(midline, vertices[:, :, 2], np.inf).min(axis=1)
    of_arms = np.isin(model.vertex_bone_indices.numpy(), [i for i, one in enumerate(labels) if one.startswith(_ARMS)])
    share = (model.vertex_bone_weights.numpy() * of_arms).sum(axis=1)
    faces = model.faces.numpy()
    # anny looks along -y, its left is +x.
    turned = np.stack([-vertices[:, :, 1], vertices[:, :, 0], vertices[:, :, 2]], axis=-1)
    return Bodies(turned, faces[(share[faces] < _HALF).all(axis=1)], crotch, stature)


@dataclass(frozen=True)
class TorsoTarget:
    """A torso in the robot's frame.

    Attributes:
        name: `B1`, `B2` ….
        shape: Mesh, m; open where neck, arms and legs were cut off.
        girths: (3,) m, at `TAPE_HEIGHTS`.
        stature: Height of the whole body, life-size, m.
        fits: Whether the body is of the mannequin's size.
    """

    name: str
    shape: Shape
    girths: Array
    stature: float
    fits: bool


def torso_targets(
    robot: Robot, pipeline: ForwardPipeline, bodies: Bodies, fitting: int = 7, others: int = 3
) -> list[TorsoTarget]:
    """Return the first bodies of the mannequin's size, then the first of another size.

    Args:
        robot: The mannequin.
        pipeline: Predicts its shapes.
        bodies: Bodies to choose from.
        fitting: Number of targets of its size.
        others: Number of targets of another size.

    Raises:
        SoftformError: If there are too few of either.
    """
    dense = pipeline.at(robot.patches.samples(_SURFACE_SAMPLES))
    faces = robot.patches.triangles(_SURFACE_SAMPLES)
    rest, full = (dense.points(of) / MM_PER_M for of in (robot.rest_actuation, robot.actuation_max))
    least, most = (1.0 - TAPE_PART) * girths(rest, faces), (1.0 + TAPE_PART) * girths(full, faces)
    placed = SCALE * bodies.vertices + [0.0, 0.0, rest[:, 2].max()]
    found = np.array([girths(one, bodies.faces) for one in placed])
    fits = np.all((found >= least) & (found <= most), axis=1, keepdims=True)[:, 0]
    chosen = [*np.flatnonzero(fits)[:fitting], *np.flatnonzero(~fits)[:others]]
    if fits.sum() < fitting or (~fits).sum() < others:
        raise SoftformError(
            f"Of {len(placed)} bodies {fits.sum()} are of the mannequin's size; {fitting} of it and {others} of "
            "another are wanted.",
            "Draw with another seed.",
        )
    targets = []
    for number, index in enumerate(chosen, start=1):
        floor = max(rest[:, 2].min(), rest[:, 2].max() + SCALE * bodies.crotch[index])
        shape = _centred(_cut(placed[index], bodies.faces, floor, rest[:, 2].max()), rest)
        stature = float(bodies.stature[index])
        targets.append(TorsoTarget(f"B{number}", shape, found[index], stature, bool(fits[index])))
    return targets


def girths(vertices: Array, faces: NDArray[np.integer]) -> Array:
    """Return the girths of a taut tape around a mesh at `TAPE_HEIGHTS`, (3,) m; 0 where there is nothing."""
    edges = np.unique(np.sort(directed_edges(faces).reshape(-1, 2), axis=1), axis=0)
    low, high = vertices[edges[:, 0]], vertices[edges[:, 1]]
    found = []
    for height in TAPE_HEIGHTS:
        crossing = (low[:, 2] < height) != (high[:, 2] < height)
        begin, end = low[crossing], high[crossing]
        part = (height - begin[:, 2]) / (end[:, 2] - begin[:, 2])
        section = begin[:, :2] + part[:, None] * (end - begin)[:, :2]
        found.append(ConvexHull(section).area if len(section) > 2 else 0.0)  # in the plane `area` is the length
    return np.array(found)


def _cut(vertices: Array, faces: NDArray[np.integer], floor: float, top: float) -> Shape:
    import open3d  # takes a second

    tensor = open3d.core.Tensor.from_numpy
    part = open3d.t.geometry.TriangleMesh(
        tensor(np.ascontiguousarray(vertices)), tensor(np.ascontiguousarray(faces, dtype=np.int64))
    )
    for height, inwards in ((floor, 1.0), (top, -1.0)):
        part = part.clip_plane(tensor(np.array([0.0, 0.0, height])), tensor(np.array([0.0, 0.0, inwards])))
    points, triangles = part.vertex.positions.numpy(), part.triangle.indices.numpy()
    used, places = np.unique(triangles, return_inverse=True)
    return Shape.from_mesh(points[used].astype(np.float64), places.reshape(-1, 3))


def _centred(shape: Shape, rest: Array) -> Shape:
    """Move the shape along x until the resting robot, (P, 3) m, is about its middle: necks lean differently."""
    middles = [0.5 * (points[:, 0].min() + points[:, 0].max()) for points in (rest, shape.points)]
    return shape.transformed(np.eye(3), np.array([middles[0] - middles[1], 0.0, 0.0]))
