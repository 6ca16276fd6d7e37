"""The quadratic model of the merit about a place: gradient and Gauss-Newton Hessian.

The residual of a point is its distance to the target, taken along p* - (R c* + t): point-to-plane. Its gradient is
exactly Eq. 16, for the closest point moves only across that direction; and the step may slide along the target, as in
point-to-plane registration, which Algorithm 2 must creep along (it is point-to-point). Only d . dp*/da is needed of
the pipeline (`jacobian_along`).

Variables: actuation as parts of its range; pose as a rotation times half the robot's size, and a translation, mm.
"""

from typing import NamedTuple

import numpy as np

from softform_core.arrays import Array
from softform_core.geometry.rigid import RigidTransform, centroid
from softform_core.inverse.feature_term import FeatureMatches, FeatureTerm
from softform_core.inverse.ik_problem import Evaluation, Problem

_SLIDE = 1e-3
"""Weight of the pose's motion along the target: determines the pose on shapes that fit themselves when moved."""

_APART = 1e-9
"""Distance above which the direction to the closest point is used, mm; below it, the target's normal."""

_AXES = np.eye(3)


class QuadraticModel(NamedTuple):
    """merit(step) = merit + gradient . step + step . hessian step / 2.

    Attributes:
        gradient: (m,) mm^2, m = k, or k + 6 with the pose.
        hessian: (m, m) mm^2.
        pivot: (3,) mm, what the pose turns about.
    """

    gradient: Array
    hessian: Array
    pivot: Array


def quadratic_model(problem: Problem, at: Evaluation) -> QuadraticModel:
    """Return the quadratic model of `problem` about the evaluation `at`."""
    rows, residuals, pivot = weighted_rows(problem, at)
    # The merit is the sum of squares of the residuals, without the one half of the textbooks.
    gradient, hessian = 2.0 * (rows.T @ residuals), 2.0 * (rows.T @ rows)
    k = len(at.actuation)
    if not problem.options.fix_pose and at.covered.any():
        hessian *= 1.0 - _SLIDE
        hessian[k:, k:] += _SLIDE * _pose_motion(problem, at, pivot)
    if problem.cost.curvature > 0.0:
        gradient[:k] += problem.cost.gradient(at.actuation)
        hessian[range(k), range(k)] += problem.cost.curvature
    return QuadraticModel(gradient, hessian, pivot)


def weighted_rows(problem: Problem, at: Evaluation) -> tuple[Array, Array, Array]:
    """Return the residuals of target and feature points; their squares sum to their part of the merit.

    Returns:
        Their Jacobian (n, m) mm, the residuals (n,) mm, and the point (3,) mm that the pose turns about.
    """
    pivot = _pivot(problem, at)
    parts = []
    if at.covered.any():
        parts.append(_surface_rows(problem, at, pivot))
    if at.features is not None and problem.features is not None:
        parts.append(_feature_rows(problem, problem.features, at.features, pivot))
    if not parts:
        variables = len(at.actuation) + (0 if problem.options.fix_pose else 6)
        return np.zeros((0, variables)), np.zeros(0), pivot
    if len(parts) == 1:
        return *parts[0], pivot
    rows, residuals = (np.concatenate(kind) for kind in zip(*parts, strict=True))
    return rows, residuals, pivot


def moved(problem: Problem, at: Evaluation, step: Array, pivot: Array) -> tuple[Array, RigidTransform]:
    """Return the actuation, within the bounds, and pose after a step of the model's variables."""
    k = len(at.actuation)
    actuation = problem.clip(at.actuation + step[:k] * problem.range)
    if problem.options.fix_pose:
        return actuation, at.pose
    return actuation, at.pose.moved(step[k : k + 3] * (2.0 / problem.size), step[k + 3 :], pivot)


def _pivot(problem: Problem, at: Evaluation) -> Array:
    """Return the point that the pose turns about: the mean of the points that count."""
    if problem.options.fix_pose:
        return np.zeros(3)
    places = at.points if at.covered.all() else at.points[at.covered]
    if at.features is not None:
        places = np.concatenate([places, at.features.points])
    return centroid(places) if len(places) else np.zeros(3)


def _surface_rows(problem: Problem, at: Evaluation, pivot: Array) -> tuple[Array, Array]:
    """Return weighted rows along p* - (R c* + t), or the target's normal where that is nil; zero if uncovered."""
    matches, distances = at.matches, at.matches.distances[:, None]
    roots = np.sqrt(np.where(at.covered, at.weights, 0.0) / max(1, np.count_nonzero(at.covered)))
    apart = distances > _APART
    directions = np.where(apart, at.points - matches.points, matches.normals)
    directions *= roots[:, None] / np.where(apart, distances, 1.0)
    rows = _rows(problem, problem.jacobian_along(at, directions), directions, matches.points, pivot)
    return rows, roots * matches.distances


def _rows(problem: Problem, along: Array, directions: Array, matched: Array, pivot: Array) -> Array:
    """Return derivatives of d . (p - c) by parts of the actuation's range, from d . dp*/da (P, k), and by a pose.

    A small turn w moves c by w x arm, and d . (p - c) the other way.
    """
    by_actuation = along * problem.range
    if problem.options.fix_pose:
        return by_actuation
    arms = (matched - pivot) * (2.0 / problem.size)
    return np.concatenate([by_actuation, np.cross(directions, arms), -directions], axis=1)


def _feature_rows(problem: Problem, term: FeatureTerm, features: FeatureMatches, pivot: Array) -> tuple[Array, Array]:
    count = len(term)
    roots = np.repeat(np.sqrt(term.features.weights / count), 3)
    directions, wanted = np.tile(_AXES, (count, 1)), np.repeat(features.wanted, 3, axis=0)
    rows = _rows(problem, term.jacobian(features).reshape(3 * count, -1), directions, wanted, pivot)
    return rows * roots[:, None], (features.points - features.wanted).ravel() * roots


def _pose_motion(problem: Problem, at: Evaluation, pivot: Array) -> Array:
    """Return the Hessian of the mean squared motion of the matched points under the pose, (6, 6) mm^2."""
    arms = (at.matches.points[at.covered] - pivot) * (2.0 / problem.size)
    x, y, z = centroid(arms)
    spread = arms.T @ arms / len(arms)
    across = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    motion = np.empty((6, 6))
    motion[:3, :3] = np.trace(spread) * _AXES - spread
    motion[:3, 3:], motion[3:, :3] = across, across.T
    motion[3:, 3:] = _AXES
    return 2.0 * motion
