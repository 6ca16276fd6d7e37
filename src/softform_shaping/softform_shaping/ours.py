"""Our controller: the sensitivities of the FEM as the prior of L, all visible points in one weighted correction.

The interaction matrix is L = J (1 + E): J (3n, 12) is how the nodes move by the model, exact at the present shape; E,
small and unknown, is followed by a Kalman filter from what each move was seen to do. The correction is the shape that
has the least of elastic energy and of the squared distances to the cloud, seen through a camera whose pose is a little
off: that error, which stays, is filtered, too.
"""

import time
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

from softform_core.arrays import Array
from softform_core.geometry.rigid import RigidTransform
from softform_shaping.control import shape_errors
from softform_shaping.controllers import Controller, Estimate, Task
from softform_shaping.model import HeldModel, HeldShape, Pins
from softform_shaping.poses import limited, pose_variation
from softform_shaping.visual_mesh import VisualMesh

__all__ = ["InteractionFilter", "Ours", "OursController", "fit_camera", "weighted_pins"]

_DAMPING = 1e-3
"""Of a step, over the largest sensitivity."""
_NEAR = 2.0
"""Root mean square error up to which the target counts as reached, mm."""


@dataclass(frozen=True)
class Ours:
    """Parameters, chosen here.

    Attributes:
        firmness: Of the springs to the cloud over the stiffness of the material around a node.
        depth_noise: Standard deviation of the cloud along its normals, with what the model does wrong, m.
        independent: Points of the cloud that err by themselves: the model's errors reach over many.
        camera: Standard deviations of the camera's calibration, m and rad.
        spread: Prior standard deviation of E.
        moved: Step in m and rad below which it stops.
    """

    firmness: float = 3.0
    depth_noise: float = 0.002
    independent: int = 25
    camera: tuple[float, float] = (0.004, 0.006)
    spread: float = 0.15
    moved: tuple[float, float] = (0.0005, 0.005)


class InteractionFilter:
    """Kalman filter of E (12, 12) in L = J (1 + E): all rows alike, so that one covariance (12, 12) serves for them.

    Args:
        spread: Prior standard deviation of its entries.
        noise: Of what a move is seen to do, as a variation of the poses.
    """

    def __init__(self, spread: float, noise: float) -> None:
        self.factor = np.eye(12)
        self._covariance = spread**2 * np.eye(12)
        self._noise = noise**2

    def update(self, jacobian: Array, variation: Array, change: Array) -> None:
        """Take in that a variation (12,) changed the nodes by `change` (3n,), where J was (3n, 12)."""
        effective = np.linalg.lstsq(jacobian, change, rcond=1e-6)[0]
        leaning = self._covariance @ variation
        share = float(variation @ leaning) + self._noise
        self.factor = self.factor + np.outer(effective - self.factor @ variation, leaning / share)
        self._covariance = self._covariance - np.outer(leaning, leaning) / share


def fit_camera(
    points: Array, gaps: Array, normals: Array, prior: Array, noise: float, independent: int
) -> tuple[Array, Array]:
    """The small motion (6,), shift and turn about the points' middle, that takes a cloud to a mesh, and its covariance.

    Args:
        points: (N, 3) m, of the cloud.
        gaps: (N,) m, by which the mesh lies outwards of each.
        normals: (N, 3) of the mesh there.
        prior: (6, 6) information on the motion.
        noise: Standard deviation of a gap, m.
        independent: Number of gaps that err by themselves.
    """
    arms = points - points.mean(axis=0)
    rows = np.concatenate([normals, np.cross(arms, normals)], axis=1)
    weight = min(1.0, independent / len(points)) / noise**2 / (1.0 + (gaps / (3.0 * noise)) ** 2)
    information = prior + (rows * weight[:, None]).T @ rows
    covariance = np.linalg.inv(information)
    return covariance @ (rows.T @ (weight * gaps)), covariance


def weighted_pins(
    model: HeldModel, visual: VisualMesh, places: Array, normals: Array, cloud: Array, firmness: float, reach: float
) -> tuple[Pins, Array]:
    """Springs from the visual nodes that are seen to the cloud, along their normals, and which points they stand for.

    Args:
        model: Of the object.
        visual: Its visual mesh.
        places: Visual nodes (Q, 3) m.
        normals: Of those.
        cloud: (N, 3) m.
        firmness: Of all springs at a node of the mesh together.
        reach: Farther points belong to something else, m.

    Returns:
        The pins; and (N,) whether each point is within reach.
    """
    distance, nearest = cKDTree(places).query(cloud)
    near = distance < reach
    which, back, counts = np.unique(nearest[near], return_inverse=True, return_counts=True)
    gaps = np.einsum("ni,ni->n", cloud[near] - places[nearest[near]], normals[nearest[near]])
    gap = np.bincount(back, gaps, minlength=len(which)) / counts
    weights = csr_matrix(visual.weights[which])
    crowd = np.asarray(abs(weights).sum(axis=0)).ravel()  # visual nodes a node of the mesh carries
    share = 1.0 / np.maximum(weights @ crowd, 1.0)
    stiffness = firmness * model.body.modulus * model.body.volumes.mean() ** (1.0 / 3.0) * share
    return Pins(weights, places[which] + gap[:, None] * normals[which], stiffness), near


class OursController(Controller):
    """Ours.

    Args:
        task: What to do.
        ours: Parameters.
    """

    def __init__(self, task: Task, ours: Ours) -> None:
        super().__init__(task)
        self.ours = ours
        model = task.model
        self._simulated: HeldShape = model.rest
        self._nodes, self._seen = model.rest_nodes, False
        self._camera = RigidTransform()
        sigma = np.repeat(ours.camera, 3)
        self._information = np.diag(1.0 / sigma**2)
        self._filter = InteractionFilter(ours.spread, ours.depth_noise / 3.0)
        self._jacobian: Array | None = None

    def observe(self, poses: Array, cloud: Array) -> Estimate:
        """Simulate, set the camera right, and draw the mesh to all that is seen at once."""
        task, ours, model = self.task, self.ours, self.task.model
        before, nodes_before = self._simulated, self._nodes
        began = time.process_time()
        self._simulated = model.shape(poses, self._simulated)
        simulating = time.process_time() - began
        carried = self._simulated.nodes + (nodes_before - before.nodes if self._seen else 0.0)
        places = task.visual.places(carried)
        normals = task.visual.normals(places)
        cloud_here = self._camera.apply(cloud)
        self.sighting.require(places, cloud_here)
        distance, nearest = cKDTree(places).query(cloud_here)
        near = distance < self.sighting.reach
        points, which = cloud_here[near], nearest[near]
        gaps = np.einsum("ni,ni->n", places[which] - points, normals[which])
        motion, covariance = fit_camera(
            points, gaps, normals[which], self._information, ours.depth_noise, ours.independent
        )
        self._information = np.asarray(np.linalg.inv(covariance), dtype=np.float64)
        middle = points.mean(axis=0)
        turn = Rotation.from_rotvec(motion[3:]).as_matrix()
        self._camera = RigidTransform(turn, middle + motion[:3] - turn @ middle).after(self._camera)
        pins, close = weighted_pins(
            model, task.visual, places, normals, self._camera.apply(cloud), ours.firmness, self.sighting.reach
        )
        drawn = model.shape(poses, HeldShape(self._simulated.unknowns, self._simulated.nodes, poses), pins)
        self._nodes = drawn.nodes
        if self._jacobian is not None and self._seen:
            variation = pose_variation(poses, before.poses)
            if np.abs(variation).max() > 1e-6:
                self._filter.update(self._jacobian, variation, (self._nodes - nodes_before).ravel())
        self._seen = True
        self._jacobian = model.sensitivity(self._simulated).reshape(-1, 12)
        rms = shape_errors(task.target, self._nodes)[0]
        error = float(np.linalg.norm(task.target - self._nodes))
        step = self._wanted()
        shift, turned = np.linalg.norm(step.reshape(2, 2, 3), axis=2).max(axis=0)
        is_done = bool(shift < ours.moved[0] and turned < ours.moved[1])
        return Estimate(
            self._nodes, self._simulated, error, rms, float(close.mean()), 1, is_done, rms <= _NEAR, simulating
        )

    def _wanted(self) -> Array:
        """The variation (12,) that brings the nodes nearest to the target, by L."""
        assert self._jacobian is not None
        interaction = self._jacobian @ self._filter.factor
        scale = np.linalg.norm(interaction, axis=0)
        scale = np.maximum(scale, 1e-3 * scale.max())
        residual = (self.task.target - self._nodes).ravel()
        scaled = interaction / scale
        normal = scaled.T @ scaled + _DAMPING * np.eye(12)
        return np.asarray(np.linalg.solve(normal, scaled.T @ residual) / scale)

    def variation(self) -> Array:
        """The next step, within the limits."""
        return limited(self._wanted(), *self.task.limits[:2])
