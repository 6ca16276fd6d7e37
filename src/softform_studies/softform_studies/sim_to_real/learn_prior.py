"""A robot's displacement prior, learned from realities drawn at random (`training.displacement_prior`)."""

from collections.abc import Callable, Sequence

import numpy as np
from tqdm import tqdm

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.networks.mlp_weights import MlpWeights, extract_mlp
from softform_core.networks.store import load_forward_kinematics
from softform_core.provenance import made_now
from softform_core.robots import Robot
from softform_core.training.actuation_fit import fit_actuation
from softform_core.training.displacement_prior import DisplacementPrior
from softform_core.training.recipe import DEFAULT
from softform_core.training.warp_data import kernel_width
from softform_rig.draw_reality import HELD_OUT_SEED, draw_reality
from softform_rig.reality import Reality
from softform_studies.sim_to_real.judge import search_tree
from softform_studies.sim_to_real.make_frames import make_frames
from softform_studies.sim_to_real.warp_fit import warped_onto

_SAMPLES = 400
_MODES = 60
_SCANS = 14
_SHAPES = 10
_ROUNDS, _TANGENTIAL = 3, 0.01
"""Rounds of closest points and a warp, and the weight of tangential distances."""


def learn_prior(robot: Robot, seeds: Sequence[int], say: Callable[[str], None], progress: bool) -> DisplacementPrior:
    """Learn from the realities of these seeds, below 1000; `say` gets a line for each that has not all shapes.

    Raises:
        SoftformError: If N_fk is missing, the body has no realities, a seed is one of those that figures are published
            for, or no reality has shapes.
    """
    if max(seeds) >= HELD_OUT_SEED:
        raise SoftformError(
            f"Seed {max(seeds)} belongs to those that published figures are judged on.",
            f"Keep --seed and --draws below {HELD_OUT_SEED}.",
        )
    network, _ = load_forward_kinematics(robot)
    weights = extract_mlp(network)
    robot.body.drawn_reality(np.random.default_rng(0))  # a body without realities says so at once
    found = []
    for seed in tqdm(seeds, desc="realities", unit="reality", disable=not progress):
        try:
            found.append(displacements(robot, weights, draw_reality(robot, seed), seed))
        except SoftformError as error:
            say(f"  reality {seed} is left out: {error}")
    if not found:
        raise SoftformError(
            "No reality has shapes in the working range.",
            f"Look at the robot: ./softform picture {robot.given_as} --output robot.png",
        )
    card: dict[str, object] = {
        "robot": robot.name,
        "robot_fingerprint": robot.fingerprint(),
        "seeds": list(seeds),
        **made_now(),
    }
    return DisplacementPrior.of(np.concatenate(found), _MODES, card)


def displacements(robot: Robot, forward_kinematics: MlpWeights, reality: Reality, seed: int) -> Array:
    """Return a reality's displacements from the simulation at corrected actuations, (n, P, 3) mm.

    Gains and offsets of the actuations are fitted to scans, as training does; the displacement is that of the warp
    (Eq. 2) that fits the true surface.

    Raises:
        SoftformError: If the reality has no shape at an actuation.
    """
    patches = robot.patches
    uv, kernel_uv = patches.samples(_SAMPLES), patches.kernels(DEFAULT.kernels)
    frames, true, _ = make_frames(robot, reality, _SCANS, _SHAPES, seed=seed)
    coarse = ForwardPipeline(forward_kinematics, patches.samples(DEFAULT.surface_points), None, patches)
    corrected = fit_actuation(coarse, forward_kinematics, frames).before(forward_kinematics)
    surface, kernels = (ForwardPipeline(corrected, at, None, patches) for at in (uv, kernel_uv))
    width = kernel_width(corrected.forward(true.actuation).mean(axis=0), kernel_uv, DEFAULT, patches)
    found = []
    for points, centers, vertices in zip(
        surface.points(true.actuation), kernels.points(true.actuation), true.vertices, strict=True
    ):
        truth = search_tree(vertices, true.faces)
        found.append(warped_onto(points, centers, truth, width, _ROUNDS, _TANGENTIAL) - points)
    return np.array(found)
