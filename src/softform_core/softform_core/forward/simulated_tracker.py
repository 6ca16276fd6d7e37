"""A simulated surface that follows targets by joint steps (`simulation.tracking`)."""

from collections import deque
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, Protocol

import numpy as np

from softform_core.arrays import Array
from softform_core.contact.touching_body import TrackedTouchingBody
from softform_core.forward.forward_model import DerivedState, Efforts, SplineModel, Tracker, batch_of
from softform_core.simulation.newton import NO_EQUILIBRIUM_ADVICE, NoEquilibriumError, find_equilibria, newton
from softform_core.simulation.simulated_body import TrackedBody
from softform_core.simulation.tracking import (
    Balance,
    Joint,
    advanced,
    corrected,
    furthest,
    linearised,
    predicted,
    rebalanced,
)
from softform_core.surface.patch_set import PatchSet
from softform_core.units import MM_PER_M

__all__ = ["LinearSurface", "SimulatedTracker", "TrackedSurface"]

_TENSION_MM = 0.01
"""mm per N of tension: of the actuations of one shape, that of the least tension."""
_SLACKENED_MM = 10.0
"""mm per m that a cable lacks to be taut: a slack one would have no say at all."""
_MADE_GOOD_MM = 0.5
"""Stretch that a step makes good at most of what a cable lacks to be taut, or is stretched too far."""
_KEPT = 16
_NEAR_MM, _SURE_MM, _PLACES = 2.0, 0.1, 16
"""Distances from a stable balance up to which a shape is gone back to where none is found further on, once and again,
and number of such shapes that are kept: the newest may have none near after all."""


class TrackedSurface(Protocol):
    """What is taken of a simulated surface, see `simulated_models.SimulatedSurface`."""

    patches: PatchSet
    uv: Array

    @property
    def actuators_of(self) -> Callable[[Array], Array]:
        """Values (n, k) of the actuators of an actuation (n, m)."""

    @property
    def inputs(self) -> Sequence[str]:
        """Names of the actuation."""

    @property
    def fit_matrix(self) -> Array:
        """Control points of vertices, (C, V)."""

    @property
    def by_actuation(self) -> Array:
        """Derivative of the actuators' values by the actuation, (k, m)."""

    def vertices_of(self, points: Array) -> Array:
        """Those of the points of the body that are vertices of the surface."""


class LinearSurface(SplineModel):
    """A surface whose vertices are linear in the actuation; see `about`.

    Args:
        surface: The simulated surface whose vertices it takes.
    """

    def __init__(self, surface: TrackedSurface) -> None:
        self._fit = surface.fit_matrix
        self._sampled: dict[bytes, tuple[Any, ...]] = {}
        super().__init__(surface.patches, surface.uv, surface.inputs)
        self._vertices = np.zeros((self._fit.shape[1], 3))
        self._slopes = np.zeros((*self._vertices.shape, len(self.inputs)))
        self._actuation = np.zeros(len(self.inputs))

    def _sample(self, uv: Array) -> None:
        """Keep what belongs to the last few sets of points: a stream asks for the same ones again and again."""
        key = np.asarray(uv, dtype=np.float64).tobytes()
        known = self._sampled.get(key)
        if known is None:
            super()._sample(uv)
            self._rows = np.asarray(self._basis @ self._fit)  # points from vertices, both (…, 3)
            if len(self._sampled) >= _KEPT:
                self._sampled.clear()
            self._sampled[key] = self.uv, self._derivatives, self._basis, self._rows
        else:
            self.uv, self._derivatives, self._basis, self._rows = known

    def about(self, vertices: Array, slopes: Array, actuation: Array) -> "LinearSurface":
        """Return the same points of vertices (V, 3) mm at an actuation (k,), with slopes (V, 3, k) mm per unit."""
        other = copy(self)
        other.__dict__.pop("coarse", None)
        other._vertices, other._slopes, other._actuation = vertices, slopes, actuation
        return other

    def forward(self, actuation: Array) -> DerivedState:
        """Evaluate (n, k)."""
        flat, _ = batch_of(actuation, len(self.inputs))
        steps = flat - self._actuation
        points, slopes = self._rows @ self._vertices, self._along(self._rows)
        return DerivedState(points + np.moveaxis(slopes @ steps.T, -1, 0), slopes)

    def jacobian(self, state: DerivedState) -> Array:
        """Return the slopes, (n, P, 3, k) mm per unit."""
        return np.broadcast_to(state.source, (len(state.points), *state.source.shape))

    def predict_control(self, actuation: Array) -> tuple[Array, Array]:
        """Return the control points (n, C, 3) mm at (n, k), and their slopes."""
        slopes = self._along(self._fit)
        return self._fit @ self._vertices + np.moveaxis(slopes @ (actuation - self._actuation).T, -1, 0), slopes

    def control_jacobian(self, predicted: Array) -> Array:
        """Return the slopes of the control points, (1, C, 3, k) mm per unit."""
        return predicted[None]

    def _along(self, rows: Array) -> Array:
        flat = self._slopes.reshape(len(self._slopes), -1)
        return np.asarray(rows @ flat).reshape(len(rows), 3, -1)


class SimulatedTracker(Tracker):
    """`Tracker` of a simulated surface.

    Args:
        surface: The surface.
        body: Its body.
        actuation: (k,).
        unknowns: (1, m) to begin from, in balance or not.
    """

    def __init__(self, surface: TrackedSurface, body: TrackedBody, actuation: Array, unknowns: Array) -> None:
        self._surface, self._body, self.actuation = surface, body, np.array(actuation, dtype=np.float64)
        self._at = Balance(unknowns, surface.actuators_of(self.actuation[None]))
        self._joint: Joint | None = None
        self._linear, self._slopes = LinearSurface(surface), np.zeros(0)
        self._started = self.actuation
        self._good: deque[tuple[Balance, Array, float]] = deque(maxlen=_PLACES)
        self._returned: Balance | None = None
        self.gap_mm, self.lack_mm, self.is_stable, self.steps = float("inf"), float("inf"), False, 0

    @property
    def unknowns(self) -> Array:
        """Unknowns (1, m) of the shape."""
        return self._at.unknowns

    @property
    def shape(self) -> LinearSurface:
        """See `Tracker`."""
        vertices = self._surface.vertices_of(self._body.points(self._at.unknowns)[0])
        if not self._slopes.size:
            self._slopes = np.zeros((*vertices.shape, len(self.actuation)))
        return self._linear.about(MM_PER_M * vertices, self._slopes, self.actuation)

    def linearised(self) -> LinearSurface:
        """See `Tracker`."""
        joint = self._joint = linearised(self._body, self._at)
        self.steps += 1
        self._started = self.actuation
        self.lack_mm = MM_PER_M * furthest(self._body, joint.at.unknowns, joint.step)
        self.is_stable = joint.is_stable
        if self.is_stable and self.lack_mm <= (_SURE_MM if joint.at is self._returned else _NEAR_MM):
            self._good.append((joint.at, self.actuation, self.lack_mm))
        by_actuation = joint.by_actuators @ self._surface.by_actuation
        moves = np.concatenate([joint.step[..., None], by_actuation], axis=2)
        moved = MM_PER_M * self._body.moved_points(joint.at.unknowns, moves)[0]
        own = self._surface.vertices_of(moved)
        self._slopes = np.ascontiguousarray(own[..., 1:])
        here = MM_PER_M * self._surface.vertices_of(self._body.points(joint.at.unknowns)[0])
        return self._linear.about(here + own[..., 0], self._slopes, self.actuation)

    def efforts(self) -> Efforts:
        """See `Tracker`: tension; cables are to be taut and no tighter than they may be, or nearer to that than now."""
        assert self._joint is not None
        joint, body = self._joint, self._body
        loads = body.tendon_loads(*joint.at)
        moves = np.concatenate([joint.step[..., None], joint.by_actuators], axis=2)
        stretched = body.moved_stretch(joint.at.unknowns, moves)
        slopes = (stretched[:, 1:] + np.eye(len(stretched))) @ self._surface.by_actuation
        stretch = loads.stretch + stretched[:, 0]
        rise = np.where(loads.tension > 0.0, loads.stiffness, 0.0)
        tension = np.maximum(loads.tension + rise * stretched[:, 0], 0.0)
        lowest, highest = body.stretch_limits(loads.stretch)
        lacking = np.minimum(stretch - lowest, 0.0)
        is_slack = (lacking < 0.0)[:, None]
        margins, by_actuation = [stretch - lowest, highest - stretch], [slopes, -slopes]
        if isinstance(body, TrackedTouchingBody):
            left, moved = body.clearances(joint.at.unknowns, moves)
            margins.append(np.maximum(left + moved[:, 0], 0.0))
            by_actuation.append(moved[:, 1:] @ self._surface.by_actuation)
        return Efforts(
            residuals=np.concatenate([_TENSION_MM * tension, _SLACKENED_MM * lacking]),
            rows=np.concatenate([_TENSION_MM * rise[:, None] * slopes, _SLACKENED_MM * is_slack * slopes]),
            margins=np.maximum(MM_PER_M * np.concatenate(margins), -_MADE_GOOD_MM),
            slopes=MM_PER_M * np.concatenate(by_actuation),
            slack_mm=-MM_PER_M * float(lacking.sum()),
        )

    def advance(self, actuation: Array, corrections: int = 1) -> None:
        """See `Tracker`."""
        assert self._joint is not None
        wanted = np.asarray(actuation, dtype=np.float64)
        values = self._surface.actuators_of(wanted[None])
        if isinstance(self._body, TrackedTouchingBody):
            at, gap = self._led_along(self._body, values)
        else:
            at, gap = advanced(self._body, self._joint, values, corrections)
        self._at, self.actuation, self.gap_mm = at, wanted, MM_PER_M * gap

    def _led_along(self, body: TrackedTouchingBody, values: Array) -> tuple[Balance, float]:
        """Where it touches something its balance is solved for: the factor before knew nothing of that."""
        joint = self._joint
        assert joint is not None
        start = predicted(self._body, joint, values)
        if not (body.is_touching(start) or body.is_touching(joint.at.unknowns)):
            return corrected(self._body, joint, start, values)
        found = newton(body, start, values)
        self.steps += int(found.iterations[0])
        return Balance(found.unknowns, values), float("nan") if found.failures[0] else 0.0

    def go_back(self) -> bool:
        """See `Tracker`."""
        if not self._good:
            return False
        self._at, self.actuation, self.gap_mm = self._good.pop()
        self._returned = self._at
        return True

    def rebalance(self) -> None:
        """See `Tracker`."""
        assert self._joint is not None
        self._at, length = rebalanced(self._body, self._joint)
        self.actuation, self.gap_mm = self._started, MM_PER_M * length

    def settle(self) -> None:
        """See `Tracker`: from the shape as it is, or else as it was before the last step, or else from rest."""
        values = self._at.actuators
        starts = [self._at.unknowns] if np.isfinite(self.gap_mm) else []
        if self._joint is not None:
            starts.append(self._joint.at.unknowns)
        for start in starts:
            found = newton(self._body, start, values)
            self.steps += int(found.iterations[0])
            if not found.failures[0]:
                break
        else:
            found = find_equilibria(self._body, values)
            self.steps += int(found.iterations[0])
        if found.failures[0]:
            raise NoEquilibriumError(found.failures[0], NO_EQUILIBRIUM_ADVICE)
        self._at, self.gap_mm = Balance(found.unknowns, values), 0.0
