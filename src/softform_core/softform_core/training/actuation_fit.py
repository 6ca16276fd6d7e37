"""A correction of the actuation, fitted to captured frames before the warp is learned, and anew when it ages.

Sensors that are off, and a body that is softer or thinner than simulated, change shapes nearly as other actuations do.
A few numbers are averages over all frames; what a warp of a thousand coefficients would learn of it is spoilt by what
differs from frame to frame (registration, memory of the material). Not in paper 000.

Scans and a few markers tell gain and offset of each actuation, what actuators of alike sections share, and, where the
commands before each frame are known, what the body remembers of them (`memory_model`). Many markers tell more: how
actuators act on one another, what bends, and how the base sits. An arm is long: an error of a tenth in one section
moves what hangs on it by its whole length, which a warp would have to learn of each shape anew.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

from softform_core.arrays import Array
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.forward.rbf_warp import ActuationCorrection
from softform_core.frames.frames import Frames, MarkerFrames
from softform_core.geometry.rigid import RigidTransform
from softform_core.networks.mlp_weights import MlpWeights
from softform_core.training.actuation_model import ActuationModel, AlikeModel, PerceptronModel, QuadraticMisfit
from softform_core.training.memory_model import RememberingModel
from softform_core.units import MM_PER_M

_ITERATIONS = 6
_STEP = 0.02
"""Step of the differences, over half the range."""
UNKNOWN, AGED = (0.3, 0.1), (0.05, 0.04)
"""Standard deviations of the gain less one, and of the offset over half the range: of a body that was never captured,
and of one whose model has aged."""
_COUPLING = 0.3
"""Standard deviation of the matrix's other elements, fitted where markers tell them."""
_OUT, _INTO = 0.1, 0.7
"""Standard deviations of the weights behind the neurons, over half the range, and of those before them and biases."""
_NEURONS, _MEMBERS, _ROUNDS = 16, 4, 4
_MOTION = np.array([0.1, 0.1, 0.1, 10.0, 10.0, 10.0])
"""Standard deviations of the base's motion: rotation, rad, and shift, mm."""
_INDEPENDENT = 30.0
"""Number of a frame's distances that count as independent: neighbours share a misfit of the surface."""
_MARKERS = 100
"""Most markers of a frame that count; more add nothing."""
_SMALLEST_GAIN = 0.3
_HUBER = 2.0
"""Distance over the robust standard deviation from which it pulls no harder."""

Told = tuple[list[Array], list[Array], list[Array]]
"""Each frame's distances (m,) mm still to go, and their derivatives by the relative actuation (m, k) and by the motion
(m, q)."""
Look = Callable[[Array, Array], Told]
"""Maps actuations (n, k) and motion (q,) to what frames tell there."""


def fit_actuation(
    simulated: ForwardPipeline,
    network: MlpWeights,
    frames: Frames,
    deviations: tuple[float, float] = UNKNOWN,
    alike: NDArray[np.int64] | None = None,
) -> ActuationCorrection:
    """Return the gain and offset of each actuation: nearest neighbours, distances along the mean of both normals.

    The function that alike actuators share is fitted, too, if N_fk's activation is tanh and there are at least as many
    frames as actuations (`AlikeModel`).

    Args:
        simulated: Forward kinematics at samples of the surface; what they already correct comes after this one.
        network: N_fk, for its range.
        frames: Captured frames; the memory is fitted too if their past is known.
        deviations: Standard deviations that are expected of the gain's difference from one, and of the offset over
            half the range.
        alike: (r, c) of a body whose sections are alike, see `Robot.alike_actuations`; None or (0, 0) of any other.
    """
    half = network.input_scale
    clouds = [MM_PER_M * cloud for cloud in frames.clouds]

    def look(effective: Array, _: Array) -> Told:
        points, normals = simulated.points(effective), simulated.normals(effective)
        slopes = _slopes(simulated, effective, points, half)
        rests, rows = [], []
        for frame, (cloud, cloud_normals) in enumerate(zip(clouds, frames.normals, strict=True)):
            nearest = cKDTree(points[frame]).query(cloud)[1]
            between = normals[frame][nearest] + cloud_normals
            between /= np.maximum(np.linalg.norm(between, axis=1, keepdims=True), 1e-12)
            rests.append(np.einsum("mx,mx->m", cloud - points[frame][nearest], between))
            rows.append(np.einsum("mxk,mx->mk", slopes[frame][nearest], between))
        return rests, rows, [np.zeros((len(rest), 0)) for rest in rests]

    return _own_gains(look, network, frames, deviations, alike)


def _own_gains(
    look: Look,
    network: MlpWeights,
    frames: Frames | MarkerFrames,
    deviations: tuple[float, float],
    alike: NDArray[np.int64] | None,
) -> ActuationCorrection:
    """Fit each actuation's own gain and offset, the memory, and what alike actuators share, of a body that stands."""
    half, still = network.input_scale, np.zeros(0)
    model = PerceptronModel(frames.actuation, network.input_offset, half)
    affine = _affine(model, look, _expected(model, *deviations, 0.0), still, frames.past)
    if alike is None or not len(alike) or network.activation != "tanh" or len(frames) < len(half):
        return affine.model.correction([affine.unknowns])
    shared = AlikeModel(frames.actuation, network.input_offset, half, alike)
    start = shared.unknowns(*model.parts(affine.of_behind)[:2])
    # The affine fit takes a nonlinear response for a memory; the shared function explains it.
    return _remembering(shared, look, shared.expected(*deviations), start, still, frames.past)


def fit_actuation_to_few_markers(
    simulated: ForwardPipeline, network: MlpWeights, frames: MarkerFrames, alike: NDArray[np.int64] | None = None
) -> ActuationCorrection:
    """Fit the actuation like `fit_actuation`, to known correspondences and full distances.

    Args:
        simulated: Forward kinematics at every marker.
        network: N_fk.
        frames: Captured frames.
        alike: See `fit_actuation`.
    """
    tell = _markers(simulated, network, frames)

    def look(effective: Array, _: Array) -> Told:
        told = tell(effective, np.zeros(6))
        return told[0], told[1], [np.zeros((len(rest), 0)) for rest in told[0]]

    return _own_gains(look, network, frames, UNKNOWN, alike)


def _markers(simulated: ForwardPipeline, network: MlpWeights, frames: MarkerFrames) -> Look:
    """Return what tells the distances of markers, the body moving as a whole."""
    chosen = slice(None, None, max(1, len(frames.uv) // _MARKERS))
    simulated, captured = simulated.at(frames.uv[chosen]), MM_PER_M * frames.positions[:, chosen]
    seen = np.asarray(np.isfinite(captured).all(axis=2))

    def look(effective: Array, motion: Array) -> Told:
        at_rest, turn = simulated.points(effective), Rotation.from_rotvec(motion[:3]).as_matrix()
        points = at_rest @ turn.T + motion[3:]
        slopes = turn @ _slopes(simulated, effective, at_rest, network.input_scale)
        by_motion = np.zeros((*points.shape, 6))
        by_motion[..., :3] = np.cross(np.eye(3), (points - motion[3:])[..., None, :]).swapaxes(-1, -2)
        by_motion[..., 3:] = np.eye(3)
        each = list(zip(captured - points, slopes, by_motion, seen, strict=True))
        rests = [rest[there].ravel() for rest, _, _, there in each]
        rows = [row[there].reshape(-1, row.shape[-1]) for _, row, _, there in each]
        return rests, rows, [row[there].reshape(-1, 6) for _, _, row, there in each]

    return look


def fit_actuation_to_markers(
    simulated: ForwardPipeline, network: MlpWeights, frames: MarkerFrames
) -> tuple[ActuationCorrection, RigidTransform]:
    """Fit the actuation of a body never captured to many markers: known correspondences and full distances.

    Where N_fk's activation is tanh, neurons learn what bends: the mean of a few that begin at random.

    Args:
        simulated: Forward kinematics at every marker.
        network: N_fk.
        frames: Captured frames.

    Returns:
        The correction, and how the base sits: the motion of the simulated body, mm, that belongs to it.
    """
    look, half = _markers(simulated, network, frames), network.input_scale
    model = PerceptronModel(frames.actuation, network.input_offset, half)
    affine = _affine(model, look, _expected(model, *UNKNOWN, _COUPLING), np.zeros(6), frames.past)
    if network.activation != "tanh":
        return affine.model.correction([affine.unknowns]), _transform(affine.motion)
    bending = replace(model, neurons=_NEURONS)
    of_behind = _expected(bending, *UNKNOWN, _COUPLING)
    whole: ActuationModel = bending
    if isinstance(affine.model, RememberingModel):
        whole = replace(affine.model, behind=bending)
    members, motions = [], []
    for seed in range(_MEMBERS):
        start = np.random.default_rng(seed).standard_normal(len(of_behind)) * of_behind
        start[: len(affine.of_behind)] = affine.of_behind
        bending.parts(start)[2][:] = 0.0  # the neurons begin unheard
        unknowns, expected = start, of_behind
        if isinstance(whole, RememberingModel):
            unknowns = np.concatenate([start, affine.unknowns[len(affine.of_behind) :]])
            expected = whole.expected(of_behind)
        moved = affine.motion
        for _ in range(_ROUNDS):
            quadratic, _ = _quadratic_misfit(whole, look, unknowns, moved, affine.noise)
            unknowns, moved, _ = whole.improved(unknowns, moved, quadratic, expected, _MOTION)
        members.append(unknowns)
        motions.append(moved)
    return whole.correction(members), _transform(np.mean(motions, axis=0))


def _expected(model: PerceptronModel, gain: float, offset: float, coupling: float) -> Array:
    """Return standard deviations of the unknowns."""
    k, h = len(model.half), model.neurons
    matrix = np.full((k, k), coupling)
    matrix[np.diag_indices(k)] = gain
    return np.concatenate([np.full(k, offset), matrix.ravel(), np.full(k * h, _OUT), np.full(h * k + h, _INTO)])


class _Affine(NamedTuple):
    """A fit without neurons: model, its unknowns, those of them without the memory, motion (q,), and noise, mm."""

    model: ActuationModel
    unknowns: Array
    of_behind: Array
    motion: Array
    noise: float


def _affine(model: PerceptronModel, look: Look, of_behind: Array, motion: Array, past: Array | None) -> _Affine:
    """Fit without neurons; with the memory if the commands (n, h, k) before each frame are known and it is one."""
    k, number = len(model.half), len(of_behind)
    whole: ActuationModel = model if past is None else RememberingModel.of(model, past)
    expected = whole.expected(of_behind) if isinstance(whole, RememberingModel) else of_behind
    unknowns, moved, noise = np.zeros(len(expected)), motion, 0.0
    for _ in range(_ITERATIONS):
        quadratic, noise = _quadratic_misfit(whole, look, unknowns, moved)
        unknowns, moved, _ = whole.improved(unknowns, moved, quadratic, expected, _MOTION[: len(moved)])
        gains = unknowns[k:number].reshape(k, k)
        gains[np.diag_indices(k)] = np.maximum(gains[np.diag_indices(k)], _SMALLEST_GAIN - 1.0)
    if isinstance(whole, RememberingModel) and whole.memory(unknowns) is None:
        return _affine(model, look, of_behind, motion, None)
    return _Affine(whole, unknowns, unknowns[:number], moved, noise)


def _remembering(
    model: ActuationModel, look: Look, of_behind: Array, start: Array, motion: Array, past: Array | None
) -> ActuationCorrection:
    """Return the correction that begins at these unknowns of a model (b,), and its memory at none."""
    whole = model if past is None else RememberingModel.of(model, past)
    expected = whole.expected(of_behind) if isinstance(whole, RememberingModel) else of_behind
    unknowns = np.concatenate([start, np.zeros(len(expected) - len(start))])
    for _ in range(_ROUNDS):
        quadratic, _ = _quadratic_misfit(whole, look, unknowns, motion)
        unknowns, motion, _ = whole.improved(unknowns, motion, quadratic, expected, _MOTION[: len(motion)])
    if isinstance(whole, RememberingModel) and whole.memory(unknowns) is None:
        return _remembering(model, look, of_behind, start, motion, None)
    return whole.correction([unknowns])


def _quadratic_misfit(
    model: ActuationModel, look: Look, unknowns: Array, motion: Array, noise: float | None = None
) -> tuple[QuadraticMisfit, float]:
    """Return what the frames tell with Huber's weights, and their robust scale, mm, which is the default noise."""
    effective = model.effective(unknowns)
    rests, rows, moves = look(model.half * effective, motion)
    every = np.abs(np.concatenate(rests))
    scale = max(1.4826 * float(np.median(every)), 1e-6)
    variance = len(every) / len(rests) / _INDEPENDENT * (scale if noise is None else noise) ** 2
    parts: list[list[Array]] = [[], [], [], [], []]
    for rest, row, move in zip(rests, rows, moves, strict=True):
        weights = 1.0 / np.maximum(1.0, np.abs(rest) / (_HUBER * scale)) / variance
        by_row, by_move = row.T * weights, move.T * weights
        products = by_row @ row, by_row @ rest, by_row @ move, by_move @ move, by_move @ rest
        for part, product in zip(parts, products, strict=True):
            part.append(product)
    matrix, right, by_motion, of_motion, motion_right = (np.array(part) for part in parts)
    return QuadraticMisfit(
        effective, motion, matrix, right, by_motion, of_motion.sum(axis=0), motion_right.sum(axis=0)
    ), scale


def _slopes(simulated: ForwardPipeline, effective: Array, points: Array, half: Array) -> Array:
    """Return derivatives (n, P, 3, k) of the points (n, P, 3) by the actuations (n, k), mm over half their range."""
    ahead = [simulated.points(effective + step) for step in np.diag(_STEP * half)]
    return np.stack([(moved - points) / _STEP for moved in ahead], axis=-1)


def _transform(motion: Array) -> RigidTransform:
    return RigidTransform(Rotation.from_rotvec(motion[:3]).as_matrix(), motion[3:])
