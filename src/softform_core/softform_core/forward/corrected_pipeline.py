"""A forward pipeline plus what a capture showed that it lacks: the next plan then aims at the measured surface."""

from collections.abc import Callable

from softform_core.arrays import Array
from softform_core.forward.forward_model import DerivedState, ForwardModel, SurfaceModel
from softform_core.forward.memory import Memory


class CorrectedPipeline(ForwardModel):
    """A forward model whose points are displaced by what was measured at one actuation.

    The displacement is held constant, so that the Jacobian stays the model's: as in a quasi-Newton method, the steps
    are a little off, the point at which they end is not.

    Args:
        pipeline: The model.
        displacement: Returns the displacement (P, 3) mm of a pipeline's points, which is added to them.
    """

    def __init__(self, pipeline: SurfaceModel, displacement: Callable[[SurfaceModel], Array]) -> None:
        self._pipeline, self._displacement_of, self._displacement = pipeline, displacement, displacement(pipeline)
        self._inputs = pipeline.inputs

    @property
    def coarse(self) -> "CorrectedPipeline":
        """The same shape at about a hundred points."""
        return CorrectedPipeline(self._pipeline.coarse, self._displacement_of)

    def at(self, uv: Array) -> "CorrectedPipeline":
        """Return the same shape at other surface parameters (M, 2)."""
        return CorrectedPipeline(self._pipeline.at(uv), self._displacement_of)

    @property
    def memory(self) -> Memory:
        """Memory of the corrected model."""
        return self._pipeline.memory

    def forward(self, actuation: Array) -> DerivedState:
        """Evaluate (n, k); the result has `points` (n, P, 3) mm."""
        state = self._pipeline.forward(actuation)
        return DerivedState(state.points + self._displacement, state)

    def jacobian(self, state: DerivedState) -> Array:
        """Return the derivative of the points, (n, P, 3, k) mm/Pa."""
        return self._pipeline.jacobian(state.source)

    def jacobian_along(self, state: DerivedState, directions: Array) -> Array:
        """Return the derivative of each point along a direction (P, 3) of its own, (P, k) mm/Pa."""
        return self._pipeline.jacobian_along(state.source, directions)
