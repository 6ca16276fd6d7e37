"""The sparse objective of paper 002 (Sec. II-B) in Eq. 15: feature points of the surface and where they are wanted."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from softform_core.arrays import Array
from softform_core.forward.forward_model import ForwardModel
from softform_core.geometry.rigid import RigidTransform
from softform_core.shapes.features import FeaturePoints
from softform_core.units import MM_PER_M


class FeatureMatches(NamedTuple):
    """Feature points at one actuation and pose.

    Attributes:
        state: State of the pipeline at the feature points.
        points: (M, 3) mm, p(x(u)) of the paper.
        wanted: (M, 3) mm, p' of the paper, posed with the target.
        distances: (M,) mm.
    """

    state: Any
    points: Array
    wanted: Array
    distances: Array


@dataclass(frozen=True)
class FeatureTerm:
    """Mean over the feature points of weight * |p(x(u)) - p'|^2, mm^2; made by `of`."""

    pipeline: ForwardModel
    features: FeaturePoints

    @classmethod
    def of(cls, pipeline: ForwardModel, features: FeaturePoints) -> "FeatureTerm":
        """Prepare a pipeline, given at any surface parameters, for feature points."""
        return cls(pipeline.at(features.uv), features)

    def moved_to(self, features: FeaturePoints) -> "FeatureTerm":
        """Return the term for features at the same surface parameters; the prepared pipeline is kept."""
        return replace(self, features=features)

    def __len__(self) -> int:
        """Return the number M of points."""
        return len(self.features)

    @property
    def positions(self) -> Array:
        """Wanted positions of the points before any pose, (M, 3) mm."""
        return self.features.positions * MM_PER_M

    def match(self, actuation: Array, pose: RigidTransform) -> FeatureMatches:
        """Return points and wanted places at an actuation (k,) and a pose of the target."""
        state = self.pipeline.forward(actuation[None])
        return self.posed(state, pose)

    def posed(self, state: Any, pose: RigidTransform) -> FeatureMatches:
        """Return the same for a state that is already computed."""
        points, wanted = state.points[0], pose.apply(self.positions)
        if self.features.anchors is not None:
            points = self.features.anchors.points(points / MM_PER_M) * MM_PER_M
        return FeatureMatches(state, points, wanted, np.linalg.norm(points - wanted, axis=1))

    def value(self, matches: FeatureMatches) -> float:
        """Return the objective, mm^2."""
        return float(self.features.weights @ matches.distances**2) / len(self)

    def jacobian(self, matches: FeatureMatches) -> Array:
        """Return the derivative of the points, (M, 3, k) mm/Pa."""
        derivative = np.asarray(self.pipeline.jacobian(matches.state)[0])
        if self.features.anchors is None:
            return derivative
        return self.features.anchors.jacobian(matches.state.points[0] / MM_PER_M, derivative)
