"""Sim-to-real learning of tips on realities: errors before and after, with and without what was commanded before."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.executors import Executor
from softform_core.forward.tip_model import TipModel, load_tip_model
from softform_core.halton import halton_actuations
from softform_core.networks.mlp_weights import MlpWeights, extract_mlp
from softform_core.networks.store import TIP_KINEMATICS
from softform_core.paths import models_of
from softform_core.robots import Robot
from softform_core.stores.past import pasts
from softform_core.threads import one_thread
from softform_core.training.tip_samples import TipSamples
from softform_core.training.tips import play_shares, train_tip_transfer
from softform_core.units import MM_PER_M
from softform_rig.draw_reality import draw_reality
from softform_rig.live_body import LiveBody
from softform_rig.reality import Reality
from softform_studies.sim_to_real.draws import cuts_of, kinds_of, median_errors, spread
from softform_studies.waypoints.capture_tips import real_tips


class TipSettings(NamedTuple):
    """Number of tips to learn from, of held-out ones to judge by, and the seed of actuations, noise and training."""

    tips: int
    held_out: int
    seed: int


def measure_tips(robot: Robot, reality: Reality, settings: TipSettings) -> dict[str, Any]:
    """Return errors on held-out tips of a reality, JSON-ready.

    The body goes from rest through the tips that are learned from, and then through those that judge, which are true
    ones without noise. `without_memory` learns the same but for what was commanded before.

    Raises:
        SoftformError: If a model is missing, there are too few tips, or the reality has no equilibrium.
    """
    kinematics, model = _kinematics(robot), load_tip_model(robot)
    low, high, (tips, held_out, seed) = robot.actuation_min, robot.actuation_max, settings
    judged = np.random.default_rng([seed, 1]).uniform(low, high, (held_out, len(low)))
    actuation = np.concatenate([halton_actuations(low, high, tips, seed), judged])
    true, past = real_tips(robot, LiveBody(robot, reality), actuation), pasts(actuation, robot.rest_actuation)
    noise = reality.motion_capture.noise * np.random.default_rng(seed).standard_normal((tips, true.shape[1]))
    learned_from = TipSamples(actuation[:tips], true[:tips] + noise, past[:tips])
    of_judged = actuation[tips:], past[tips:], MM_PER_M * true[tips:]
    found: dict[str, Any] = {"reality": reality.name, "before": _errors(model, *of_judged)}
    for name, with_memory in (("after", True), ("without_memory", False)):
        with one_thread():
            trained = train_tip_transfer(
                robot, kinematics, learned_from, model.workspace_width_mm, seed, with_memory=with_memory, progress=False
            )
        found[name] = _errors(model.with_transfer(robot, trained.network), *of_judged)
        if with_memory:
            shares = play_shares(robot, trained.network.play_width.numpy())
            found["play"] = {name: round(share, 4) for name, share in shares.items()}
    return found


def measure_tip_draws(
    robot: Robot, seeds: Sequence[int], settings: TipSettings, executor: Executor, say: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Measure realities drawn by these seeds, each learned with its own seed; one that fails has its `error`.

    Raises:
        SoftformError: If a worker is lost.
    """
    measured = {}
    for seed, found in executor.run(partial(_measurer, robot, settings), list(seeds)):
        say(f"  drawn:{seed} failed: {found['error']}" if "error" in found else f"  drawn:{seed}: {found['after']}")
        measured[seed] = found
    return [measured[seed] for seed in seeds]


def tip_draw_figures(draws: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return shares by which the mean and the largest error fall; draws that failed do not count; JSON-ready.

    Raises:
        SoftformError: If no reality was measured.
    """
    measured = [draw for draw in draws if "error" not in draw]
    if not measured:
        raise SoftformError("No reality could be measured.", "Look at the reasons above.")
    return {
        "draws": len(measured),
        **cuts_of(measured, "after", spread),
        "without_memory": cuts_of(measured, "without_memory", spread) | median_errors(measured, "without_memory"),
        "remembered": sum(bool(draw["play"]) for draw in measured),
        **{what: median_errors(measured, what) for what in ("before", "after")},
        "each": list(measured),
    }


def _measurer(robot: Robot, settings: TipSettings) -> Callable[[int], tuple[int, dict[str, Any]]]:
    def measure(seed: int) -> tuple[int, dict[str, Any]]:
        reality = draw_reality(robot, seed)
        try:
            return seed, measure_tips(robot, reality, settings._replace(seed=seed)) | {"kinds": kinds_of(reality)}
        except SoftformError as error:
            return seed, {"error": str(error)}

    return measure


def _kinematics(robot: Robot) -> MlpWeights:
    return extract_mlp(TIP_KINEMATICS.load(models_of(robot.name), robot)[0].forward_kinematics)


def _errors(model: TipModel, actuation: Array, past: Array, tips: Array) -> dict[str, float]:
    """Return mean and largest distances of tips (s, n) mm from those predicted at (s, m) after others (s, h, m)."""
    missed = np.linalg.norm(model.tip(model.memory.effective_after(past, actuation)) - tips, axis=1)
    return {"mean_mm": round(float(missed.mean()), 4), "max_mm": round(float(missed.max()), 4)}
