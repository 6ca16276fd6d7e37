"""Gain and offset of every actuation, fitted to captured frames before the warp is learned, and anew when it ages.

Sensors that are off, and a body that is softer or thinner than simulated, change shapes nearly as other actuations do.
Two numbers of each actuation are averages over all frames; what a warp of a thousand coefficients would learn of it is
spoilt by what differs from frame to frame (registration, memory of the material). Not in paper 000.
"""

import numpy as np
from scipy.spatial import cKDTree

from softform_core.arrays import Array
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.forward.rbf_warp import ActuationCorrection
from softform_core.frames.frames import Frames, MarkerFrames
from softform_core.units import MM_PER_M

_ITERATIONS = 6
_STEP = 0.01
"""Step of the differences, over the range."""
UNKNOWN, AGED = (0.3, 0.05), (0.05, 0.02)
"""Standard deviations that are expected of the gain's difference from one, and of the offset over the range: of a body
that was never captured, and of one whose model has aged."""
_INDEPENDENT = 30.0
"""As many distances of a frame as tell something by themselves: a misfit of the surface is shared by neighbours."""
_SMALLEST_GAIN = 0.3
_HUBER = 2.0
"""Robust standard deviations beyond which a distance pulls no harder."""


def fit_actuation(
    simulated: ForwardPipeline, frames: Frames, deviations: tuple[float, float] = UNKNOWN
) -> ActuationCorrection:
    """Fit by Gauss-Newton, nearest neighbours found again in each iteration; distances along the mean of both normals.

    Args:
        simulated: Forward kinematics at samples of the surface; what they already correct comes after this one.
        frames: Captured frames.
        deviations: Standard deviations that are expected of the gain's difference from one, and of the offset over
            the range.
    """
    count = frames.actuation.shape[1]
    span = np.maximum(np.ptp(frames.actuation, axis=0), 1e-12)
    clouds = [MM_PER_M * cloud for cloud in frames.clouds]
    shared = float(np.mean([len(cloud) for cloud in clouds])) / _INDEPENDENT
    expected = np.repeat(deviations, count)
    unknowns = np.zeros(2 * count)  # gain - 1, and offset over the range
    for _ in range(_ITERATIONS):
        felt = (1.0 + unknowns[:count]) * frames.actuation + span * unknowns[count:]
        points, normals = simulated.points(felt), simulated.normals(felt)
        slopes = _slopes(simulated, felt, points, span)
        rows, rests = [], []
        for frame, (cloud, cloud_normals) in enumerate(zip(clouds, frames.normals, strict=True)):
            nearest = cKDTree(points[frame]).query(cloud)[1]
            between = normals[frame][nearest] + cloud_normals
            between /= np.maximum(np.linalg.norm(between, axis=1, keepdims=True), 1e-12)
            rests.append(np.einsum("mx,mx->m", cloud - points[frame][nearest], between))
            along = np.einsum("mxk,mx->mk", slopes[frame][nearest], between)
            rows.append(np.hstack([along * (frames.actuation[frame] / span), along]))
        unknowns = unknowns + _step(np.concatenate(rows), np.concatenate(rests), unknowns, expected, shared)
        unknowns[:count] = np.maximum(unknowns[:count], _SMALLEST_GAIN - 1.0)
    return ActuationCorrection(1.0 + unknowns[:count], span * unknowns[count:])


def fit_actuation_to_markers(simulated: ForwardPipeline, frames: MarkerFrames) -> ActuationCorrection:
    """As `fit_actuation`, for a body that was never captured, with known correspondences and full distances."""
    count, seen = frames.actuation.shape[1], np.isfinite(frames.positions).all(axis=2)
    span = np.maximum(np.ptp(frames.actuation, axis=0), 1e-12)
    shared = float(seen.sum(axis=1).mean()) * 3.0 / _INDEPENDENT
    expected = np.repeat(UNKNOWN, count)
    unknowns = np.zeros(2 * count)
    for _ in range(_ITERATIONS):
        felt = (1.0 + unknowns[:count]) * frames.actuation + span * unknowns[count:]
        points = simulated.points(felt)
        slopes = _slopes(simulated, felt, points, span)
        by_gain = slopes * (frames.actuation / span)[:, None, None, :]
        rows = np.concatenate([by_gain, slopes], axis=-1)[seen].reshape(-1, 2 * count)
        rests = (MM_PER_M * frames.positions - points)[seen].ravel()
        unknowns = unknowns + _step(rows, rests, unknowns, expected, shared)
        unknowns[:count] = np.maximum(unknowns[:count], _SMALLEST_GAIN - 1.0)
    return ActuationCorrection(1.0 + unknowns[:count], span * unknowns[count:])


def _slopes(simulated: ForwardPipeline, felt: Array, points: Array, span: Array) -> Array:
    """Derivatives (n, P, 3, k) of the points (n, P, 3) by the actuations (n, k), mm over their range."""
    ahead = [simulated.points(felt + step) for step in np.diag(_STEP * span)]
    return np.stack([(moved - points) / _STEP for moved in ahead], axis=-1)


def _step(rows: Array, rests: Array, unknowns: Array, expected: Array, shared: float) -> Array:
    """Least squares of Huber's weights beside what is expected of the unknowns."""
    scale = max(1.4826 * float(np.median(np.abs(rests))), 1e-6)
    weights = 1.0 / np.maximum(1.0, np.abs(rests) / (_HUBER * scale))
    prior = shared * scale**2 / expected**2
    matrix = rows.T @ (weights[:, None] * rows) + np.diag(prior)
    return np.asarray(np.linalg.solve(matrix, rows.T @ (weights * rests) - prior * unknowns))
