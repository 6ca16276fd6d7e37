"""Inverse kinematics as a problem: Eq. 15, with the other costs of shape and actuation, for any method.

The merit that is minimised, mm^2::

    mean over covered points of loss(|p* - (R c* + t)|)     the target (Eq. 15)
  + mean over feature points of w |p - (R p' + t)|^2         paper 002, Sec. II-B
  + sum of weight * ((a - anchor) / range)^2                 preferred posture and smoothness

The loss is the square, or Tukey's biweight, which follows the square for small distances and is constant for those that
stand out. It is minimised by iteratively reweighted least squares (Holland and Welsch 1977). Beyond the scale a
distance has no weight: the loss trims, too. Millimetres; actuations in the robot's unit.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.forward_model import ForwardModel
from softform_core.geometry.rigid import RigidTransform, centroid
from softform_core.inverse.closest_points import ClosestPoints, Matches, posed_query
from softform_core.inverse.counterpart import BESIDE_PART, Footprint, RestingSurface
from softform_core.inverse.feature_term import FeatureMatches, FeatureTerm
from softform_core.inverse.ik_options import ActuationCost, IkOptions
from softform_core.shapes.shape import Shape
from softform_core.units import MM_PER_M

_TUNING = 4.685
"""Tuning of Tukey's loss to 95 % efficiency on normally distributed residuals."""

_NORMAL = 1.4826
"""Ratio of the standard deviation to the median absolute value of a normal distribution."""


def tukey_scale(distances: Array, least: float) -> float:
    """Return the distance beyond which a point has no weight, mm, from the median of all.

    Args:
        distances: (P,) mm, not negative.
        least: mm; without it a fit in which most points are exact would throw out the others.
    """
    return max(least, _TUNING * _NORMAL * float(np.median(distances))) if len(distances) else least


def tukey_loss(distances: Array, scale: float) -> Array:
    """Return the loss of each distance, mm^2: d^2 for small ones, scale^2 / 3 beyond the scale; infinite scale: d^2."""
    if math.isinf(scale):
        return np.asarray(distances**2)
    inside = np.maximum(1.0 - (distances / scale) ** 2, 0.0)
    return np.asarray(scale**2 / 3.0 * (1.0 - inside**3))


def tukey_weights(distances: Array, scale: float) -> Array:
    """Return the weight of each squared distance, loss'(d) / 2d, 1 … 0."""
    if math.isinf(scale):
        return np.ones_like(distances)
    return np.asarray(np.maximum(1.0 - (distances / scale) ** 2, 0.0) ** 2)


LEAST_SCALE_PART = 0.002
"""Least of Tukey's scale over the robot's size: smaller distances never stand out from the others."""

_MIN_COVERED = 0.05
_NO_MATCHES = Matches(np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0), np.zeros(0, dtype=bool))


@dataclass(frozen=True)
class Evaluation:
    """The merit at one actuation and pose.

    Errors are taken over the distances that count: of covered points to the target, and of feature points to where
    they are wanted.

    Attributes:
        actuation: (k,).
        pose: Applied to the target and the wanted places of feature points.
        state: The pipeline's, for derivatives; None without a target.
        points: (P, 3) mm; P is 0 without a target.
        matches: Closest points on the posed target.
        covered: (P,) points that count.
        weights: (P,) of their squared distances.
        features: Feature points, if there are any.
        merit: Minimised merit, mm^2.
    """

    actuation: Array
    pose: RigidTransform
    state: Any
    points: Array
    matches: Matches
    covered: NDArray[np.bool_]
    weights: Array
    features: FeatureMatches | None
    merit: float

    @property
    def residuals(self) -> Array:
        """p* - (R c* + t), zero where not covered, (P, 3) mm."""
        return np.where(self.covered[:, None], self.points - self.matches.points, 0.0)

    @property
    def errors(self) -> Array:
        """Distances that count, (n,) mm."""
        distances = self.matches.distances[self.covered]
        return distances if self.features is None else np.concatenate([distances, self.features.distances])

    @property
    def mean_error_mm(self) -> float:
        """Mean of `errors`."""
        errors = self.errors
        return float(errors.mean()) if len(errors) else float("inf")

    @property
    def max_error_mm(self) -> float:
        """Largest of `errors`."""
        return float(self.errors.max(initial=0.0))

    @property
    def miss(self) -> Array:
        """Mean vector from the points that count to where they are wanted, (3,) mm."""
        vectors = (self.matches.points - self.points)[self.covered]
        if self.features is not None:
            vectors = np.concatenate([vectors, self.features.wanted - self.features.points])
        return np.asarray(vectors.mean(axis=0)) if len(vectors) else np.zeros(3)

    @property
    def objective(self) -> float:
        """D of Eq. 15, mm^2."""
        distances = self.matches.distances[self.covered]
        return float(distances @ distances)


class Problem:
    """The merit for one pipeline and target; cheap to make for each target of a stream.

    Args:
        pipeline: Forward kinematics at the points that are compared with the target.
        target: Closest points on the target, or None: feature points alone.
        options: Bounds, pose and costs.
        features: Feature points, or None.

    Raises:
        SoftformError: If there is neither a target nor a feature point, or too few of them for a free pose.
    """

    def __init__(
        self,
        pipeline: ForwardModel,
        target: ClosestPoints | None,
        options: IkOptions,
        features: FeatureTerm | None = None,
    ) -> None:
        if target is None and features is None:
            raise SoftformError("There is neither a target nor a feature point.", "Give one of them.")
        if target is None and features is not None and not options.fix_pose and len(features) < 3:
            raise SoftformError(
                f"{len(features)} feature points do not fix the pose of a target.",
                "Keep the pose (fix_pose), or give at least 3 points.",
            )
        self.pipeline, self.target, self.options, self.features = pipeline, target, options, features
        self.low, self.high = options.bounds()
        self.range, self.parts = options.range, options.parts
        self.cost = ActuationCost(options)
        self.trims = False
        self.ignore_uncovered = False
        self.scale = np.inf
        self._size: float | None = None
        self._footprint: Footprint | None = None
        self._finer: Problem | None = None

    def coarse(self, options: IkOptions) -> "Problem":
        """Return the same problem at few points, with other limits."""
        coarse = Problem(self.pipeline.coarse, self.target, options, self.features)
        coarse.trims, coarse.ignore_uncovered, coarse.scale = self.trims, self.ignore_uncovered, self.scale
        coarse._finer = self
        coarse.sized_as(self)
        return coarse

    def sized_as(self, other: "Problem") -> None:
        """Take the size from another problem of the same robot, if that knows it: a simulation solves for it."""
        self._size = other._size

    @property
    def size(self) -> float:
        """Diagonal of the robot's shape at the lowest actuation, mm."""
        if self._size is None:
            shape = self.pipeline.coarse.forward(self.options.actuation_min[None]).points[0]
            self._size = float(np.linalg.norm(np.ptp(shape, axis=0)))
        return self._size

    @property
    def centre_of_target(self) -> Array:
        """Mean of the target's vertices, or of the places where feature points are wanted, (3,) mm, before any pose."""
        if self.target is not None:
            return centroid(self.target.vertices)
        assert self.features is not None
        return centroid(self.features.positions)

    def centre_of_shape(self, at: Evaluation) -> Array:
        """Return the mean of the predicted points that `centre_of_target` is to lie on, (3,) mm."""
        points = at.points if at.features is None or self.target is not None else at.features.points
        return centroid(points)

    def evaluate(self, actuation: Array, pose: RigidTransform) -> Evaluation:
        """Return the merit at an actuation (k,) and a pose."""
        features = None if self.features is None else self.features.match(actuation, pose)
        if self.target is None:
            return self._rated(actuation, pose, None, np.zeros((0, 3)), _NO_MATCHES, features)
        state = self.pipeline.forward(actuation[None])
        return self._matched(actuation, pose, state, state.points[0], features)

    def reposed(self, at: Evaluation, pose: RigidTransform) -> Evaluation:
        """Return the merit at another pose; nothing is predicted again."""
        features = None
        if self.features is not None and at.features is not None:
            features = self.features.posed(at.features.state, pose)
        return self._matched(at.actuation, pose, at.state, at.points, features)

    def rated_anew(self, at: Evaluation) -> Evaluation:
        """Return the same place by the rules that hold now: what is covered, and how much distances count.

        With `trims` the scale of the loss is taken from this place's distances, for this and later evaluations.
        """
        if self.trims:
            self.scale = np.inf
            covered = self._rated(at.actuation, at.pose, at.state, at.points, at.matches, at.features).covered
            self.scale = tukey_scale(at.matches.distances[covered], LEAST_SCALE_PART * self.size)
        return self._rated(at.actuation, at.pose, at.state, at.points, at.matches, at.features)

    @property
    def footprint(self) -> Footprint:
        """Place of the target over the robot at rest, or at the actuation in range that is nearest to rest."""
        if self._finer is not None:
            return self._finer.footprint
        if self._footprint is None:
            assert self.target is not None
            rest = np.clip(0.0, self.options.actuation_min, self.options.actuation_max)
            points = self.pipeline.forward(rest[None]).points[0] / MM_PER_M
            self._footprint = Footprint(RestingSurface(Shape(points)), self.target)
        return self._footprint

    def lacks_parts(self, at: Evaluation) -> bool:
        """Return whether points of the robot have no counterpart on the target."""
        return bool(self._uncovered(at.points, at.matches, at.pose).any())

    def _uncovered(self, points: Array, matches: Matches, pose: RigidTransform) -> NDArray[np.bool_]:
        if not len(matches.distances):
            return np.zeros(0, dtype=bool)
        near = matches.distances <= BESIDE_PART * self.size
        return ~near if near.all() else self.footprint.lacks(points, matches, pose)

    def jacobian_along(self, at: Evaluation, directions: Array) -> Array:
        """Return the derivative of each point along a direction (P, 3) of its own, (P, k) mm/Pa."""
        return self.pipeline.jacobian_along(at.state, directions)

    def clip(self, actuation: Array) -> Array:
        """Return the nearest actuation within the bounds."""
        return np.clip(actuation, self.low, self.high)

    def _matched(
        self, actuation: Array, pose: RigidTransform, state: Any, points: Array, features: FeatureMatches | None
    ) -> Evaluation:
        matches = _NO_MATCHES
        if self.target is not None:
            matches = posed_query(self.target, pose, points)
        return self._rated(actuation, pose, state, points, matches, features)

    def _rated(
        self,
        actuation: Array,
        pose: RigidTransform,
        state: Any,
        points: Array,
        matches: Matches,
        features: FeatureMatches | None,
    ) -> Evaluation:
        merit = self.cost.value(actuation)
        if self.target is None:
            covered, weights = _NO_MATCHES.on_border, _NO_MATCHES.distances
        else:
            distances = matches.distances
            covered, weights = np.ones(len(points), dtype=bool), np.zeros(len(points))
            if self.ignore_uncovered:
                covered = ~self._uncovered(points, matches, pose)
                distances = distances[covered]
            weights[covered] = tukey_weights(distances, self.scale)
            is_too_few = self.ignore_uncovered and len(distances) < max(4, _MIN_COVERED * len(points))
            merit += np.inf if is_too_few else float(tukey_loss(distances, self.scale).mean())
        if self.features is not None and features is not None:
            merit += self.features.value(features)
        return Evaluation(actuation, pose, state, points, matches, covered, weights, features, merit)
