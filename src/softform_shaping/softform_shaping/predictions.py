"""Answers of the service `predict_object`: the target that poses make, or points that are led, by the model."""

import numpy as np
from builtin_interfaces.msg import Time
from scipy.sparse import csr_matrix

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_interfaces.srv import PredictObject
from softform_ros.conversions import cloud_from_points
from softform_shaping.led_points import led_shape
from softform_shaping.model import HeldModel, HeldShape

__all__ = ["ObjectPredictions"]

_FARTHEST, _MOST_TURN = 2.0, 4.0
"""In sizes of the object, and rad: what is farther off was given in another unit."""
_MOST_POINTS = 200


class ObjectPredictions:
    """Predicts targets; while the same points are led, each begins at the last one, which is near.

    Args:
        model: Of the object; of nobody else while `predict` is at work.
        frame: Of the object.
        stress_limit: Of a goal that names none, Pa; infinite for none.
    """

    def __init__(self, model: HeldModel, frame: str, stress_limit: float) -> None:
        self._model, self._frame, self._limit = model, frame, stress_limit
        self._last: tuple[bytes, HeldShape] = b"", model.rest

    def predict(self, request: PredictObject.Request, response: PredictObject.Response) -> PredictObject.Response:
        """Fill an answer.

        Raises:
            SoftformError: If the request cannot be meant, or the model finds no shape there.
        """
        base = np.asarray(request.gripper_poses or np.zeros(12), dtype=np.float64)
        if base.shape != (12,) or not np.isfinite(base).all() or not self._are_near(base):
            raise SoftformError(
                "These are no poses of two grippers near the grasp.",
                "Give x, y, z in m and a rotation vector in rad of each, relative to the grasp.",
            )
        weights, places, importance = self._points(request)
        led = base.tobytes() + weights.indices.tobytes() + weights.data.tobytes()
        shape = self._last[1] if led == self._last[0] else self._model.shape(base)
        if len(places):
            shape = led_shape(self._model, weights, places, importance, base, shape)
        self._last = led, shape
        stress = self._model.nodal_stresses(shape)
        off = np.linalg.norm(places - weights @ shape.nodes, axis=1)
        response.success = True
        response.gripper_poses = shape.poses.tolist()
        response.target = cloud_from_points(shape.nodes, self._frame, Time(), {"stress": stress})
        response.off, response.stress = float(off.max(initial=np.nan if not len(off) else 0.0)), float(stress.max())
        response.stress_limit = self._limit if np.isfinite(self._limit) else 0.0
        return response

    def _are_near(self, poses: Array) -> bool:
        shifts, turns = np.linalg.norm(poses.reshape(2, 2, 3), axis=2).T
        return bool(shifts.max() < _FARTHEST * self._model.size and turns.max() < _MOST_TURN)

    def _points(self, request: PredictObject.Request) -> tuple[csr_matrix, Array, Array]:
        """Weights (B, V), places (B, 3) m and importance (B,) of the points of a request."""
        places = np.array([(place.x, place.y, place.z) for place in request.places]).reshape(-1, 3)
        count, (nodes, size) = len(places), (self._model.rest_nodes, self._model.size)
        which, weights = np.asarray(request.nodes, dtype=np.int64), np.asarray(request.weights, dtype=np.float64)
        importance = np.asarray(request.importance or np.ones(count), dtype=np.float64)
        fits = len(which) == len(weights) == 3 * count and len(importance) == count <= _MOST_POINTS
        numbers = np.concatenate([weights, importance, places.ravel()])
        if not fits or not np.isfinite(numbers).all() or (weights < 0.0).any() or not (importance > 0.0).all():
            raise SoftformError(
                f"These are no points of the object: {count} places, {len(which)} nodes, {len(weights)} weights.",
                f"Give three nodes and weights of each, and no more than {_MOST_POINTS} points.",
            )
        sums = weights.reshape(-1, 3).sum(axis=1)
        if count and (which.max() >= len(nodes) or np.abs(sums - 1.0).max() > 1e-3):
            raise SoftformError(
                "A point of the object has unknown nodes, or weights that are not 1 in all.",
                f"The model has {len(nodes)} nodes.",
            )
        rows = np.repeat(np.arange(count), 3)
        matrix = csr_matrix((weights, (rows, which)), (count, len(nodes)))
        if count and np.linalg.norm(places - matrix @ nodes, axis=1).max() > _FARTHEST * size:
            raise SoftformError("A point is wanted far from the object.", "Places are in m, in the object's frame.")
        return matrix, places, importance
