"""Checks that every forward model must pass, which a package runs on its own: see docs/extending.md, A model.

    for check in CHECKS:
        check(model, low, high)

Each check raises an `AssertionError` that says what is wrong.
"""

from collections.abc import Callable

import numpy as np

from softform_core.arrays import Array
from softform_core.forward.forward_model import ForwardModel, SurfaceModel
from softform_core.forward.history import History
from softform_core.forward.memory import Commands

_STEP = 1e-5
"""Step of finite differences, as a share of the range."""
_SLOPE_SHARE = 2e-3
"""Largest error of derivatives against differences, over the largest derivative; single precision reaches it."""
_SAME_MM = 2e-3
"""Largest distance of one point between two calls, mm: iterations end within a tolerance."""
_INTERIOR = 0.15, 0.85
"""Part of the range in which actuations are tried; a body may hang slack at its ends."""

Check = Callable[[ForwardModel, Array, Array], None]


def _tried(low: Array, high: Array, count: int) -> Array:
    inner = np.random.default_rng(0).uniform(*_INTERIOR, (count, len(low)))
    return np.asarray(low + inner * (high - low))


def inputs_are_named(model: ForwardModel, low: Array, high: Array) -> None:
    """Check that each actuation has a name, and each name comes once."""
    assert len(model.inputs) == len(low) == len(high), f"{len(model.inputs)} inputs for {len(low)} actuations"
    assert len(set(model.inputs)) == len(model.inputs), f"inputs repeat: {model.inputs}"


def points_are_finite(model: ForwardModel, low: Array, high: Array) -> None:
    """Check that points are (n, P, 3) finite numbers over the whole range."""
    for actuation in (low, high, *_tried(low, high, 3)):
        points = np.asarray(model.forward(actuation[None]).points)
        assert points.ndim == 3 and points.shape[0] == 1 and points.shape[2] == 3, f"points of shape {points.shape}"
        assert np.isfinite(points).all(), f"points are not finite at {actuation}"


def evaluation_is_pure(model: ForwardModel, low: Array, high: Array) -> None:
    """Check that an actuation gives the same points, whatever was evaluated in between."""
    first, other = _tried(low, high, 2)
    before = np.array(model.forward(first[None]).points)
    model.forward(other[None])
    after = np.asarray(model.forward(first[None]).points)
    assert np.abs(before - after).max() <= _SAME_MM, f"differs by {np.abs(before - after).max():.2g} mm"


def derivatives_are_those_of_the_points(model: ForwardModel, low: Array, high: Array) -> None:
    """Check `jacobian` by central differences, and `jacobian_along` and `objective_gradient` by it."""
    actuation = _tried(low, high, 1)[0]
    state = model.forward(actuation[None])
    jacobian = np.asarray(model.jacobian(state))
    assert jacobian.shape == (*np.shape(state.points), len(low)), f"a Jacobian of shape {jacobian.shape}"
    for place, span in enumerate(high - low):
        step = np.zeros(len(low))
        step[place] = _STEP * span * 100.0
        beyond, behind = (np.asarray(model.forward((actuation + s * step)[None]).points)[0] for s in (1.0, -1.0))
        moved, expected = 2.0 * jacobian[0, :, :, place] * step[place], beyond - behind
        worst = np.abs(moved - expected).max()
        assert worst <= _SLOPE_SHARE * max(np.abs(expected).max(), 1.0), (
            f"the derivative by {model.inputs[place]} is off by {worst:.2g} mm of {np.abs(expected).max():.2g} mm"
        )
    directions = np.random.default_rng(1).normal(size=jacobian.shape[1:3])
    along = np.einsum("pxk,px->pk", jacobian[0], directions)
    assert np.allclose(model.jacobian_along(state, directions), along, rtol=1e-3, atol=1e-3 * np.abs(along).max())
    gradient = 2.0 * np.einsum("pxk,px->k", jacobian[0], directions)
    found = model.objective_gradient(state, directions)
    assert np.allclose(found, gradient, rtol=1e-3, atol=1e-3 * np.abs(gradient).max()), "objective_gradient"


def memory_gives_what_is_wanted(model: ForwardModel, low: Array, high: Array) -> None:
    """Check that commands of the memory have the wanted effect within the limits, and that no state is altered."""
    memory, wanted = model.memory, _tried(low, high, 4)
    state = memory.state_after(History(), low, 0.0)
    found = Commands(memory, state, (low, high))
    for each in wanted:
        before = found.state
        commanded = found.command(each)
        again = memory.effective(before, commanded)
        assert np.allclose(again, found.effective), "effective changes with how often it is asked"
        assert np.allclose(memory.now(found.state), again), "what is in effect now is not what came into effect"
        assert np.abs(found.effective - each).max() <= 0.05 * (high - low).max(), f"{each} became {found.effective}"
    given = model.given(found.state)
    assert np.isfinite(np.asarray(given.forward(wanted[:1]).points)).all(), "a model given a state predicts nothing"


def surfaces_agree_wherever_they_are_asked(model: ForwardModel, low: Array, high: Array) -> None:
    """Check that `points`, `control_points`, `normals` and `at` of a surface model agree on one shape."""
    if not isinstance(model, SurfaceModel):
        return
    actuation = _tried(low, high, 1)[0]
    points, some = model.points(actuation), np.arange(0, len(model.uv), max(1, len(model.uv) // 7))
    elsewhere = model.at(model.uv[some])
    assert np.array_equal(elsewhere.uv, model.uv[some]), "at() keeps other parameters"
    assert np.abs(elsewhere.points(actuation) - points[some]).max() <= _SAME_MM, "at() moves the points"
    assert np.abs(np.asarray(model.forward(actuation[None]).points)[0] - points).max() <= 0.05, "points and forward"
    assert model.control_points(actuation).shape == (model.patches.control_points, 3), "control points"
    lengths = np.linalg.norm(model.normals(actuation), axis=-1)
    assert lengths.shape == (len(model.uv),) and np.allclose(lengths, 1.0, atol=1e-3), "normals are not of length one"
    assert len(np.asarray(model.coarse.forward(actuation[None]).points)[0]) <= max(len(points), 500), "coarse is finer"


CHECKS: tuple[Check, ...] = (
    inputs_are_named,
    points_are_finite,
    evaluation_is_pure,
    derivatives_are_those_of_the_points,
    memory_gives_what_is_wanted,
    surfaces_agree_wherever_they_are_asked,
)
