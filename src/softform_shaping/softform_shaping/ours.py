"""Our controller: the sensitivities of the FEM as the prior of L, all visible points in one weighted correction.

What is not known of camera and material is estimated from all clouds so far, so that the simulated shape comes near the
true one where nobody looks, too. What then is left is drawn: the correction is the shape that has the least of elastic
energy and of the squared distances to the cloud.

The interaction matrix is L = J (1 + E): J (3n, 12) is how the nodes move by the model, exact at the present shape; E,
small and unknown, is followed by a Kalman filter from what each move was seen to do.
"""

import time
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.spatial import cKDTree

from softform_core.arrays import Array
from softform_core.simulation.newton import NoEquilibriumError
from softform_shaping.alignment import swung
from softform_shaping.belief import Belief, Doubts, Seen
from softform_shaping.control import shape_errors
from softform_shaping.controllers import Controller, Estimate, Task
from softform_shaping.material_belief import MaterialBelief, Spreads
from softform_shaping.model import HeldShape
from softform_shaping.poses import limited, moves_of, pose_variation
from softform_shaping.sighting import ElsewhereError, SightingError

__all__ = ["InteractionFilter", "Ours", "OursController"]

_DAMPING = 1e-3
"""Of a step, over the largest sensitivity."""
_PROGRESS, _ARRIVED = 0.05, 0.02
"""Of a move: what comes less near is held by something; and what is as near as this, is there."""
_AGAIN, _LINEAR = 4, 0.004
"""Looks at one cloud, and how far a belief may move the nodes at the last one, m."""
_DRAWN = 12
"""Steps in which the object may be drawn to what is seen of it."""
_PATIENCE, _GAIN = 6, 0.1
"""Looks in which it has to come nearer than ever, and by how much, mm."""
_NEAR = 2.0
"""Root mean square error up to which the target counts as reached, mm."""


@dataclass(frozen=True)
class Ours:
    """Parameters, chosen here.

    Attributes:
        firmness: Of the springs to the cloud over the stiffness of the material around a node.
        doubts: What is not known of camera and cloud.
        spreads: What is not known of the material.
        spread: Prior standard deviation of E.
        moved: Step in m and rad below which it stops.
    """

    firmness: float = 1.0
    doubts: Doubts = field(default_factory=Doubts)
    spreads: Spreads = field(default_factory=Spreads)
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


class OursController(Controller):
    """Ours.

    Args:
        task: What to do.
        ours: Parameters.
    """

    def __init__(self, task: Task, ours: Ours) -> None:
        super().__init__(task)
        self.ours = ours
        self._material = MaterialBelief(task.model.body, ours.spreads)
        self._belief = Belief(ours.doubts, self._material.prior, task.model.rest_nodes.mean(axis=0))
        self._model = task.model.of(task.model.body)
        self._simulated: HeldShape = task.model.rest
        self._nodes = task.model.rest_nodes
        self._filter = self._new_filter()
        self._jacobian: Array | None = None
        self._ends = task.model.poses_in(task.target)
        self._moves_left = np.inf  # to there; nil, once it goes by what it sees
        self._best, self._looks_since = (np.inf, self._ends), 0
        self._moves_back = np.inf  # to there, once nothing brings it nearer

    def _new_filter(self) -> InteractionFilter:
        return InteractionFilter(self.ours.spread, self.ours.doubts.depth_noise / 3.0)

    def observe(self, poses: Array, cloud: Array) -> Estimate:
        """Simulate, set camera and material right, and draw the mesh to all that is seen at once."""
        task, ours = self.task, self.ours
        before, nodes_before = self._simulated, self._nodes
        began = time.process_time()
        self._simulated = self._found(poses)
        simulating = time.process_time() - began
        carried = self._simulated.nodes + (nodes_before - before.nodes)
        try:
            by_poses, near = self._explained(before, carried, cloud)
        except SightingError:
            self._simulated = before  # as if that cloud had not been given
            raise
        if self._jacobian is not None:
            variation = pose_variation(poses, before.poses)
            if np.abs(variation).max() > 1e-6:
                self._filter.update(self._jacobian, variation, (self._nodes - nodes_before).ravel())
        self._jacobian = by_poses.reshape(-1, 12)
        rms = shape_errors(task.target, self._nodes)[0]
        error = float(np.linalg.norm(task.target - self._nodes))
        if self._moves_left:
            moves = moves_of(pose_variation(self._ends, poses), *task.limits[:2])
            is_stuck = moves > self._moves_left - _PROGRESS
            self._moves_left = 0.0 if moves <= 1.0 or is_stuck else moves
        self._looks_since += 1
        if self._moves_left or (rms < self._best[0] - _GAIN and self._looks_since <= _PATIENCE):
            self._best, self._looks_since = (rms, poses), 0
        step = self._wanted()
        if self._looks_since > _PATIENCE:
            moves = moves_of(step, *task.limits[:2])
            is_done = bool(moves < _ARRIVED or moves > self._moves_back - _PROGRESS)
            self._moves_back = moves
        else:
            shift, turned = np.linalg.norm(step.reshape(2, 2, 3), axis=2).max(axis=0)
            is_done = bool(shift < ours.moved[0] and turned < ours.moved[1])
        return Estimate(
            self._nodes, self._simulated, error, rms, float(near.mean()), 1, is_done, rms <= _NEAR, simulating
        )

    def _require(self, nodes: Array, cloud: Array) -> None:
        """As `Sighting.require`, of nodes (V, 3) m and a cloud (N, 3) m as the camera has it."""
        self.sighting.require(self.task.visual.places(nodes), self._belief.camera.apply(cloud))

    def _explained(self, before: HeldShape, carried: Array, cloud: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Find the nodes that explain a cloud (N, 3) m, near `carried` (V, 3) m; `before` is of the last look.

        Returns:
            (V, 3, 12) how nodes move with the poses; and (N,) which points are near.

        Raises:
            SightingError: If none do.
        """
        try:
            self._require(carried, cloud)
        except ElsewhereError:
            found = self._drawn(before, cloud)
            self._filter, self._jacobian = self._new_filter(), None  # a snap says nothing of what a move does
            return found
        return self._learned(carried, cloud)

    def _learned(self, nodes: Array, cloud: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Set camera and material right by a cloud (N, 3) m of nodes (V, 3) m, and draw these to what is left.

        A material that moves the nodes far is not what it would be if that were linear: the cloud is looked at again
        from the shape that it makes.
        """
        for again in range(_AGAIN):
            seen, near = self._matched(nodes, cloud, self.sighting.reach)
            forces = self._material.forces(self._model.body, self._simulated.unknowns)
            by_poses, by_theta = self._model.sensitivities(self._simulated, forces)
            change, left = self._belief.update(seen, by_theta, again > 0)
            moves = by_theta @ change
            springs = self._springs(seen.rows)
            self._nodes = self._simulated.nodes + moves + self._model.drawn(self._simulated, seen.rows, -left, springs)
            self._model = self._model.of(self._material.body(self._belief.theta))
            if np.abs(moves).max() < _LINEAR:
                break
            seen_shape = self._unbalanced(self._nodes, self._simulated.poses)
            try:
                found = self._model.shape(seen_shape.poses, seen_shape)
                self._require(found.nodes, cloud)
            except (NoEquilibriumError, SightingError):
                break
            self._simulated, nodes = found, found.nodes
        return by_poses, near

    def _drawn(self, before: HeldShape, cloud: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Draw the nodes of the last look to a cloud (N, 3) m that is not the object as it is simulated.

        What is slender may be in another balance than the model, or in one that this does not have. What is seen then
        stands in for it, as long as it can be drawn to all of the cloud.
        """
        poses, starts = self._simulated.poses, [self._simulated.nodes]
        if self._jacobian is not None:
            moves = (self._jacobian @ pose_variation(poses, before.poses)).reshape(-1, 3)
            starts.insert(0, self._nodes + moves)
        visual, held = self.task.visual, self.task.model.held
        nodes = swung(starts, held, visual, self._belief.camera.apply(cloud))
        for left in range(_DRAWN - 1, -1, -1):
            self._simulated = self._unbalanced(nodes, poses)
            seen, near = self._matched(nodes, cloud, np.inf)
            gaps = seen.gaps + self._belief.skin
            try:
                nodes = nodes + self._model.drawn(self._simulated, seen.rows, -gaps, self._springs(seen.rows))
            except NoEquilibriumError:
                left = 0  # another step would be the same
            try:
                self._require(nodes, cloud)
                break
            except SightingError:
                if not left:
                    raise
        self._simulated, self._nodes = self._unbalanced(nodes, poses), nodes
        return self._model.sensitivity(self._simulated), near

    def _unbalanced(self, nodes: Array, poses: Array) -> HeldShape:
        return HeldShape(self._model.body.unknowns(nodes)[0], nodes, poses)

    def _found(self, poses: Array) -> HeldShape:
        """The shape as simulated; from rest, where what was drawn to a cloud is too far from any balance."""
        try:
            return self._model.shape(poses, self._simulated)
        except NoEquilibriumError:
            return self._model.shape(poses)

    def _matched(self, nodes: Array, cloud: Array, reach: float) -> tuple[Seen, NDArray[np.bool_]]:
        """Points of a cloud (N, 3) m with what of nodes (V, 3) m is next to them; and (N,) which are within `reach`."""
        visual, cloud = self.task.visual, self._belief.camera.apply(cloud)
        places = visual.places(nodes)
        distance, nearest = cKDTree(places).query(cloud)
        near = distance < reach
        points, which = cloud[near], nearest[near]
        normals = visual.normals(places)[which]
        weights = visual.weights[which].tocoo()
        columns = (3 * weights.col[:, None] + np.arange(3)).ravel()
        entries = (weights.data[:, None] * normals[weights.row]).ravel()
        rows = csr_matrix((entries, (weights.row.repeat(3), columns)), (len(points), 3 * visual.weights.shape[1]))
        gaps = rows @ self._simulated.nodes.ravel() - np.einsum("ni,ni->n", points, normals)
        return Seen(points, normals, np.asarray(gaps), rows), near

    def _springs(self, rows: csr_matrix) -> Array:
        """Stiffness (N,) N/m of the springs to the cloud: together at a node, `firmness` over that of the material."""
        body = self._model.body
        weights = csr_matrix((rows.data**2, rows.indices, rows.indptr), rows.shape)
        crowd = np.asarray(weights.sum(axis=0)).reshape(-1, 3).sum(axis=1)  # points a node carries
        mine = csr_matrix((rows.data**2, rows.indices // 3, rows.indptr), (rows.shape[0], len(crowd)))
        share = 1.0 / np.maximum((mine @ crowd) / np.maximum(np.asarray(mine.sum(axis=1)).ravel(), 1e-12), 1.0)
        return np.asarray(self.ours.firmness * body.modulus * body.volumes.mean() ** (1.0 / 3.0) * share)

    def _wanted(self) -> Array:
        """The variation (12,) that brings the nodes nearest to the target.

        From far away, to where the target's own ends are held: sensitivities of here say little of there, least of all
        where the object buckles on the way. From within one move of that on, or where no gripper comes nearer, by L.
        """
        if self._moves_left:
            return pose_variation(self._ends, self._simulated.poses)
        if self._looks_since > _PATIENCE:  # nothing brings it nearer than it was: back to there
            return pose_variation(self._best[1], self._simulated.poses)
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
