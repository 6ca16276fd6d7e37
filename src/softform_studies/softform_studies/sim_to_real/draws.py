"""Sim-to-real learning on realities drawn at random, each by itself; what was measured is kept on disk."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from tqdm import tqdm

from softform_core.errors import SoftformError
from softform_core.executors import Executor
from softform_core.frames.frames import Frames
from softform_core.networks.mlp_weights import MlpWeights, extract_mlp
from softform_core.networks.store import load_forward_kinematics
from softform_core.robots import Robot
from softform_core.threads import one_thread
from softform_core.training.displacement_prior import DisplacementPrior, load_displacement_prior
from softform_core.training.recipe import Recipe
from softform_rig.draw_reality import draw_reality
from softform_rig.reality import Reality
from softform_studies.sim_to_real.judge import Errors, Judge
from softform_studies.sim_to_real.learners import Learners, recipe_for
from softform_studies.sim_to_real.ledger import Ledger
from softform_studies.sim_to_real.make_frames import FRAMES_VERSION, make_captured
from softform_studies.sim_to_real.reality_floors import floors, memory_floor

_FLOOR_SHAPES = 10
"""Held-out actuations at which the floors are measured."""


@dataclass(frozen=True)
class DrawSettings:
    """How each reality is measured.

    Attributes:
        frames: Frames to learn from.
        held_out: Other actuations to judge at.
        points: Points of each scan.
        recipe: Recipe of the training; from scans each reality is also learned with w_c = 1, and without the robot's
            prior.
    """

    frames: int
    held_out: int
    points: int
    recipe: Recipe


def measure_draws(
    robot: Robot,
    seeds: Sequence[int],
    settings: DrawSettings,
    folder: Path,
    executor: Executor,
    say: Callable[[str], None],
    progress: bool,
) -> list[dict[str, Any]]:
    """Measure the realities of these seeds; those that `folder` holds with the same settings are not measured again.

    Raises:
        SoftformError: If N_fk is missing, the folder cannot be used, or a worker is lost.
    """
    network, card = load_forward_kinematics(robot)
    weights = extract_mlp(network)
    settings = replace(settings, recipe=recipe_for(robot, settings.recipe))
    ledger = Ledger(folder / "draws.jsonl")
    prior = load_displacement_prior(robot)
    common = {"robot": robot.fingerprint(), "forward_kinematics": card.weights_sha256, **asdict(settings)}
    common["prior"] = None if prior is None else prior.sha256
    common["frames_version"] = FRAMES_VERSION
    del common["recipe"]["chosen_on"]  # it changes nothing
    realities = {seed: draw_reality(robot, seed) for seed in seeds}
    keys = {seed: {**common, "seed": seed, "reality": each.model_dump(mode="json")} for seed, each in realities.items()}
    kept = {seed: ledger.find(key) for seed, key in keys.items()}
    # What failed is tried again: the cause may be mended.
    measured = {seed: found for seed, found in kept.items() if found is not None and "error" not in found}
    missing = [seed for seed in seeds if seed not in measured]
    prepare = partial(_measurer, robot, weights, prior, settings)
    bar = tqdm(total=len(keys), initial=len(measured), desc="realities", unit="reality", disable=not progress)
    with bar:
        for seed, found in executor.run(prepare, missing):
            if "error" in found:
                say(f"  {realities[seed].name} failed: {found['error']}")
            ledger.keep(keys[seed], found)
            measured[seed] = found
            bar.update()
    return [{"seed": seed, "kinds": kinds_of(realities[seed]), **measured[seed]} for seed in seeds]


def kinds_of(reality: Reality) -> list[str]:
    """Names of the fields in which a drawn reality differs, other than those that every one draws."""
    everywhere = {"cells", "elements", "element", "gravity"}
    of_devices = reality.model_fields_set & {"pressure_sensors", "motors", "hysteresis", "creep"}
    return sorted(reality.body.model_fields_set - everywhere | of_devices)


def _measurer(
    robot: Robot, forward_kinematics: MlpWeights, prior: DisplacementPrior | None, settings: DrawSettings
) -> Callable[[int], tuple[int, dict[str, Any]]]:
    """What measures the reality of a seed."""

    def measure(seed: int) -> tuple[int, dict[str, Any]]:
        try:
            with one_thread():
                return seed, _measure(robot, forward_kinematics, prior, draw_reality(robot, seed), seed, settings)
        except SoftformError as error:
            return seed, {"error": str(error)}

    return measure


def _measure(
    robot: Robot,
    forward_kinematics: MlpWeights,
    prior: DisplacementPrior | None,
    reality: Reality,
    seed: int,
    settings: DrawSettings,
) -> dict[str, Any]:
    """Errors in mm (`mean_mm`, and `max_mm`, the mean over the shapes of each one's largest) before and after."""
    sizes = settings.frames, settings.held_out, settings.points
    frames, held_out, missing = make_captured(robot, reality, *sizes, seed)
    judge = Judge(robot, forward_kinematics, held_out)
    learners = Learners(forward_kinematics, judge.patches, seed, prior=prior, alike=robot.alike_actuations)
    frames, unfit = learners.fit_frames(frames, settings.recipe)
    few = held_out.part(slice(_FLOOR_SHAPES))
    found: dict[str, Any] = {
        "missing": round(missing, 3),
        "left_out": len(unfit),
        "before": _pair(judge.before),
        "memory": _pair(memory_floor(robot, reality, few.actuation, seed)),
    }
    recipes = {"after": settings.recipe}
    if isinstance(frames, Frames):
        recipes["fixed"] = replace(settings.recipe, confidence="one")
    if isinstance(frames, Frames) and prior is not None:
        recipes["without_prior"] = replace(settings.recipe, prior_scale=None)
    for name, recipe in recipes.items():
        trained = learners.learn(frames, recipe)
        found[name] = _pair(judge.errors(judge.predicted(trained.sim_to_real)))
        found[f"{name}_s"] = round(trained.seconds, 1)
        if name == "after":
            few_judged = Judge(robot, forward_kinematics, few)
            found["floors"] = floors(robot, reality, few_judged, trained.sim_to_real).figures
    return found


def _pair(errors: Errors) -> dict[str, float]:
    return {"mean_mm": round(errors.mean_mm, 4), "max_mm": round(errors.max_mm, 4)}
