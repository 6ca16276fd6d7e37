"""A correction of the actuation, fitted to captured frames before the warp is learned, and anew when it ages.

Sensors that are off, and a body that is softer or thinner than simulated, change shapes nearly as other actuations do.
A few numbers are averages over all frames; what a warp of a thousand coefficients would learn of it is spoilt by what
differs from frame to frame (registration, memory of the material). Not in paper 000.

Scans tell gain and offset of each actuation, what actuators of alike sections share, and, where the commands before
each frame are known, how far the body stays behind where an actuator turns back (`Play`). Many markers tell more: how
actuators act on one another, what bends, and how the base sits. An arm is long: an error of a tenth in one section
moves what hangs on it by its whole length, which a warp would have to learn of each shape anew.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

from softform_core.arrays import Array
from softform_core.forward.memory import WIDEST, Play
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.forward.rbf_warp import ActuationCorrection
from softform_core.frames.frames import Frames, MarkerFrames
from softform_core.geometry.rigid import RigidTransform
from softform_core.networks.mlp_weights import MlpWeights
from softform_core.training.actuation_model import ActuationModel, AlikeModel, PerceptronModel, QuadraticMisfit
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
_PLAY, _LEAST_PLAY = 0.05, 0.005
"""Width of the play over half the range, one for all actuators: its standard deviation, and the least that is not taken
for none."""
_PLAY_TOLERANCE = 5e-4
_HUBER = 2.0
"""Distance over the robust standard deviation from which it pulls no harder."""

Model = TypeVar("Model", bound=ActuationModel)

Look = Callable[[Array, Array], tuple[list[Array], list[Array], list[Array]]]
"""Maps actuations (n, k) and motion (q,) to each frame's distances (m,) mm still to go, and their derivatives by the
relative actuation (m, k) and by the motion (m, q)."""


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
        frames: Captured frames; the play is fitted too if their past is known.
        deviations: Standard deviations that are expected of the gain's difference from one, and of the offset over
            half the range.
        alike: (r, c) of a body whose sections are alike, see `Robot.alike_actuations`; None or (0, 0) of any other.
    """
    half = network.input_scale
    model = PerceptronModel(frames.actuation, network.input_offset, half)
    clouds = [MM_PER_M * cloud for cloud in frames.clouds]

    def look(effective: Array, _: Array) -> tuple[list[Array], list[Array], list[Array]]:
        points, normals = simulated.points(effective), simulated.normals(effective)
        slopes = _slopes(simulated, effective, points, model.half)
        rests, rows = [], []
        for frame, (cloud, cloud_normals) in enumerate(zip(clouds, frames.normals, strict=True)):
            nearest = cKDTree(points[frame]).query(cloud)[1]
            between = normals[frame][nearest] + cloud_normals
            between /= np.maximum(np.linalg.norm(between, axis=1, keepdims=True), 1e-12)
            rests.append(np.einsum("mx,mx->m", cloud - points[frame][nearest], between))
            rows.append(np.einsum("mxk,mx->mk", slopes[frame][nearest], between))
        return rests, rows, [np.zeros((len(rest), 0)) for rest in rests]

    still = np.zeros(0)
    model, play, unknowns, _, _ = _affine(model, look, _expected(model, *deviations, 0.0), still, frames.past)
    if alike is None or not len(alike) or network.activation != "tanh" or len(frames) < len(half):
        return replace(model.correction([unknowns]), play=play)
    commanded = AlikeModel(frames.actuation, network.input_offset, half, alike)
    shared = replace(commanded, actuation=model.actuation)
    expected = commanded.expected(*deviations)
    unknowns = shared.unknowns(*model.parts(unknowns)[:2])
    for _ in range(_ROUNDS):
        quadratic, _ = _quadratic_misfit(shared, look, unknowns, still)
        if frames.past is not None:
            # The affine fit takes a nonlinear response for a play; the shared function explains it.
            shared, play = _played(commanded, frames.past, quadratic, expected, unknowns, still)
        unknowns, _, _ = shared.improved(unknowns, still, quadratic, expected, still)
    return replace(shared.correction(unknowns), play=play)


def fit_actuation_to_markers(
    simulated: ForwardPipeline, network: MlpWeights, frames: MarkerFrames
) -> tuple[ActuationCorrection, RigidTransform]:
    """Fit the actuation of a body never captured, like `fit_actuation`, to known correspondences and full distances.

    Where N_fk's activation is tanh, neurons learn what bends: the mean of a few that begin at random.

    Args:
        simulated: Forward kinematics at every marker.
        network: N_fk.
        frames: Captured frames.

    Returns:
        The correction, and how the base sits: the motion of the simulated body, mm, that belongs to it.
    """
    chosen = slice(None, None, max(1, len(frames.uv) // _MARKERS))
    simulated, captured = simulated.at(frames.uv[chosen]), MM_PER_M * frames.positions[:, chosen]
    seen = np.asarray(np.isfinite(captured).all(axis=2))

    def look(effective: Array, motion: Array) -> tuple[list[Array], list[Array], list[Array]]:
        at_rest, turn = simulated.points(effective), Rotation.from_rotvec(motion[:3]).as_matrix()
        points = at_rest @ turn.T + motion[3:]
        slopes = turn @ _slopes(simulated, effective, at_rest, half)
        by_motion = np.zeros((*points.shape, 6))
        by_motion[..., :3] = np.cross(np.eye(3), (points - motion[3:])[..., None, :]).swapaxes(-1, -2)
        by_motion[..., 3:] = np.eye(3)
        each = list(zip(captured - points, slopes, by_motion, seen, strict=True))
        rests = [rest[there].ravel() for rest, _, _, there in each]
        rows = [row[there].reshape(-1, row.shape[-1]) for _, row, _, there in each]
        return rests, rows, [row[there].reshape(-1, 6) for _, _, row, there in each]

    half = network.input_scale
    model = PerceptronModel(frames.actuation, network.input_offset, half)
    expected = _expected(model, *UNKNOWN, _COUPLING)
    model, play, affine, motion, noise = _affine(model, look, expected, np.zeros(6), frames.past)
    if network.activation != "tanh":
        return replace(model.correction([affine]), play=play), _transform(motion)
    model = replace(model, neurons=_NEURONS)
    expected = _expected(model, *UNKNOWN, _COUPLING)
    members, motions = [], []
    for seed in range(_MEMBERS):
        unknowns = np.random.default_rng(seed).standard_normal(len(expected)) * expected
        unknowns[: len(affine)] = affine
        model.parts(unknowns)[2][:] = 0.0  # the neurons begin unheard
        moved = motion
        for _ in range(_ROUNDS):
            quadratic, _ = _quadratic_misfit(model, look, unknowns, moved, noise)
            unknowns, moved, _ = model.improved(unknowns, moved, quadratic, expected, _MOTION)
        members.append(unknowns)
        motions.append(moved)
    return replace(model.correction(members), play=play), _transform(np.mean(motions, axis=0))


def _expected(model: PerceptronModel, gain: float, offset: float, coupling: float) -> Array:
    """Return standard deviations of the unknowns."""
    k, h = len(model.half), model.neurons
    matrix = np.full((k, k), coupling)
    matrix[np.diag_indices(k)] = gain
    return np.concatenate([np.full(k, offset), matrix.ravel(), np.full(k * h, _OUT), np.full(h * k + h, _INTO)])


def _affine(
    model: PerceptronModel, look: Look, expected: Array, motion: Array, past: Array | None
) -> tuple[PerceptronModel, Play | None, Array, Array, float]:
    """Fit without neurons; with the play if the commands (n, h, k) before each frame are known.

    Returns:
        The model at the effective actuations, the play if there is one, unknowns, motion and noise (mm).
    """
    unknowns, noise, k = np.zeros(len(expected)), 0.0, len(model.half)
    commanded, play = model, None
    for _ in range(_ITERATIONS):
        quadratic, noise = _quadratic_misfit(model, look, unknowns, motion)
        if past is not None:
            model, play = _played(commanded, past, quadratic, expected, unknowns, motion)
        unknowns, motion, _ = model.improved(unknowns, motion, quadratic, expected, _MOTION[: len(motion)])
        gains = unknowns[k:].reshape(k, k)
        gains[np.diag_indices(k)] = np.maximum(gains[np.diag_indices(k)], _SMALLEST_GAIN - 1.0)
    return model, play, unknowns, motion, noise


def _played(
    commanded: Model, past: Array, quadratic: QuadraticMisfit, expected: Array, unknowns: Array, motion: Array
) -> tuple[Model, Play | None]:
    """Return the model after the play that explains best what the frames tell, the unknowns found anew."""

    def effective(width: float) -> Model:
        return replace(commanded, actuation=Play(width * commanded.half).effective_after(past, commanded.actuation))

    def misfit(width: float) -> float:
        _, _, left = effective(width).improved(unknowns, motion, quadratic, expected, _MOTION[: len(motion)])
        return left + 0.5 * (width / _PLAY) ** 2

    bounds, options = (0.0, WIDEST), {"xatol": _PLAY_TOLERANCE}
    width = float(minimize_scalar(misfit, bounds=bounds, method="bounded", options=options).x)
    return (effective(width), Play(width * commanded.half)) if width >= _LEAST_PLAY else (commanded, None)


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
