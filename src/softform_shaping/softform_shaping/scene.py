"""The rig of two grippers, an object and a depth camera, without arms: what moves, what is seen, what is true."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform
from softform_shaping.arms import TwoArms, two_small_arms
from softform_shaping.camera import DepthCamera, Intrinsics, Picture, Solid, box_solid, looking_at
from softform_shaping.model import HeldModel
from softform_shaping.objects import ShapedObject
from softform_shaping.plastic_object import PlasticObject
from softform_shaping.poses import motion_of
from softform_shaping.true_object import TrueObject

__all__ = ["Scene", "grip_centres", "grips_of", "make_scene"]

_GREEN = (40, 190, 60)
_JAW, _HAND = 0.008, 0.05
_DISTANCE = 0.6
"""Of the camera, m; a longer object is looked at from farther."""
_CAMERA_SHIFT, _CAMERA_TURN = 0.003, 0.005
"""Standard deviations of what the camera's pose is off by, m and rad."""


@dataclass(eq=False)
class Scene:
    """A `session.Rig` in this process.

    Attributes:
        truth: The object.
        camera: With its true pose.
        believed: Its pose as calibrated.
        jaws: The grippers at the grasp, and the centres they turn about, (2, 3) m.
        random: Of what the camera sees.
        colour: Of the object.
        arms: Carry the grippers; without them these are where they are told to be.
    """

    truth: TrueObject
    camera: DepthCamera
    believed: RigidTransform
    jaws: list[Solid]
    centres: Array
    random: np.random.Generator
    colour: tuple[int, int, int]
    arms: TwoArms | None = None

    def move(self, poses: Array) -> Array:
        """Bring the grippers to poses (12,), or as near as the arms come, and return where they are.

        Raises:
            NoEquilibriumError: If the object finds no shape there.
            SoftformError: If the arms hold.
        """
        if self.arms is not None:
            self.arms.go(poses)
            poses = self.arms.poses
        self.truth.move(poses)
        return self.truth.poses

    @property
    def poses(self) -> Array:
        """Where the grippers are, (12,)."""
        return self.truth.poses

    @property
    def intrinsics(self) -> Intrinsics:
        """Of the camera."""
        return self.camera.intrinsics

    def errors(self, target: Array) -> tuple[float, float]:
        """As `Rig.errors`."""
        return self.truth.errors(target)

    def look(self) -> Picture:
        """What the camera sees now."""
        return self.camera.look(self.solids(), self.random)

    def solids(self) -> list[Solid]:
        """What there is to see: the object, then both grippers."""
        vertices, faces = self.truth.skin
        jaws = []
        for jaw, centre, pose in zip(self.jaws, self.centres, self.truth.poses.reshape(-1, 6), strict=True):
            jaws.append(jaw._replace(vertices=motion_of(pose, centre).apply(jaw.vertices)))
        return [Solid(vertices, faces, self.colour), *jaws]


def make_scene(described: ShapedObject, model: HeldModel, seed: int, with_arms: bool = False) -> Scene:
    """A rig with an object at its grasp, drawn by a seed: the camera's pose, and where the object is stiff.

    Args:
        described: The object.
        model: Of it; its nodes are the points that the truth is asked for.
        seed: Of all that is drawn.
        with_arms: Whether arms carry the grippers.
    """
    random = np.random.default_rng(seed)
    changes: dict[str, Any] = {"uneven_seed": seed} if "uneven" in described.truth else {}
    true = (
        TrueObject(described, model.rest_nodes, changes)
        if "plasticity" not in described.truth
        else PlasticObject(described, model.rest_nodes)
    )
    low, high = model.rest_nodes.min(axis=0), model.rest_nodes.max(axis=0)
    middle = 0.5 * (low + high)
    distance = max(_DISTANCE, 2.2 * float((high - low).max()))
    eye = middle + [0.45 * distance, -0.9 * distance, 0.0]
    pose = looking_at(eye, middle, np.array([1.0, 0.0, 0.0]))
    wrong = Rotation.from_rotvec(_CAMERA_TURN * random.standard_normal(3)).as_matrix()
    believed = RigidTransform(wrong @ pose.rotation, pose.translation + _CAMERA_SHIFT * random.standard_normal(3))
    jaws = []
    for load, outwards in zip(grips_of(described), (-1.0, 1.0), strict=True):
        begin, end = np.maximum(load.begin, low) - _JAW, np.minimum(load.end, high) + _JAW
        begin[2], end[2] = (begin[2] - _HAND, end[2] - _JAW) if outwards < 0.0 else (begin[2] + _JAW, end[2] + _HAND)
        jaws.append(box_solid(begin, end, _GREEN))
    centres = grip_centres(described)
    arms = two_small_arms(centres) if with_arms else None
    return Scene(true, DepthCamera(pose), believed, jaws, centres, random, described.colour, arms)


def grip_centres(described: ShapedObject) -> Array:
    """What its grippers turn about, (2, 3) m; errors as of `grips_of`."""
    return np.array([0.5 * np.add(load.begin, load.end) for load in grips_of(described)])


def grips_of(described: ShapedObject) -> list[Any]:
    """Descriptions of its two grips, the left one first.

    Raises:
        SoftformError: If it is held otherwise, or not by its two ends along z.
    """
    grips = [load for load in getattr(described.body, "loads", []) if load.load == "grip"]
    if len(grips) != 2 or grips[0].end[2] > grips[1].begin[2]:
        raise SoftformError(
            f"Object '{described.name}' is not held by two grips, one beyond the other along z.",
            "Describe the lower one first, as config/objects/sponge.yaml does.",
        )
    return grips
