"""Sim-to-real learning on realities drawn at random, each by itself and kept on disk; and statistics over them."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from softform_core.errors import SoftformError
from softform_core.executors import Executor
from softform_core.frames.frames import Frames
from softform_core.kept import Ledger
from softform_core.robots import Robot
from softform_core.threads import one_thread
from softform_core.training.recipe import Recipe
from softform_rig.draw_reality import draw_reality
from softform_rig.reality import Reality
from softform_studies.sim_to_real.judge import Errors, Judge
from softform_studies.sim_to_real.learners import Learners, recipe_for
from softform_studies.sim_to_real.make_frames import FRAMES_VERSION, make_captured
from softform_studies.sim_to_real.reality_floors import floors, memory_floor

_FLOOR_SHAPES = 10
"""Held-out actuations at which the floors are measured."""


@dataclass(frozen=True)
class DrawSettings:
    """Numbers of frames and points of a scan to learn from, recipe, and number of actuations to judge at.

    Each reality is also learned from scans with w_c = 1, and without the robot's prior.
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
    learners = Learners.of(robot, 0)
    settings = replace(settings, recipe=recipe_for(robot, settings.recipe))
    ledger = Ledger(folder / "draws.jsonl")
    common = {**learners.identity, **asdict(settings), "frames_version": FRAMES_VERSION}
    del common["recipe"]["chosen_on"]  # it changes nothing
    realities = {seed: draw_reality(robot, seed) for seed in seeds}
    keys = {seed: {**common, "seed": seed, "reality": each.model_dump(mode="json")} for seed, each in realities.items()}
    kept = {seed: ledger.find(key) for seed, key in keys.items()}
    # What failed is tried again: the cause may be mended.
    measured = {seed: found for seed, found in kept.items() if found is not None and "error" not in found}
    missing = [seed for seed in seeds if seed not in measured]
    prepare = partial(_measurer, robot, learners, settings)
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
    """Return the names of the fields in which a drawn reality differs, other than those that every one draws."""
    everywhere = {"cells", "elements", "element", "gravity"}
    of_devices = reality.model_fields_set & {"pressure_sensors", "motors", "hysteresis", "creep"}
    return sorted(reality.body.model_fields_set - everywhere | of_devices)


def _measurer(robot: Robot, learners: Learners, settings: DrawSettings) -> Callable[[int], tuple[int, dict[str, Any]]]:
    def measure(seed: int) -> tuple[int, dict[str, Any]]:
        try:
            with one_thread():
                return seed, _measure(robot, replace(learners, seed=seed), draw_reality(robot, seed), settings)
        except SoftformError as error:
            return seed, {"error": str(error)}

    return measure


def _measure(robot: Robot, learners: Learners, reality: Reality, settings: DrawSettings) -> dict[str, Any]:
    """Return errors in mm (`mean_mm`, and `max_mm`, the mean of each shape's largest) before and after."""
    sizes = settings.frames, settings.held_out, settings.points
    frames, held_out, missing = make_captured(robot, reality, *sizes, learners.seed)
    judge = Judge(robot, learners.forward_kinematics, held_out)
    frames, unfit = learners.fit_frames(frames, settings.recipe)
    few = held_out.part(slice(_FLOOR_SHAPES))
    found: dict[str, Any] = {
        "missing": round(missing, 3),
        "left_out": len(unfit),
        "before": _pair(judge.before),
        "memory": _pair(memory_floor(robot, reality, few.actuation, learners.seed)),
    }
    recipes = {"after": settings.recipe}
    if isinstance(frames, Frames):
        recipes["fixed"] = replace(settings.recipe, confidence="one")
    if isinstance(frames, Frames) and learners.prior is not None:
        recipes["without_prior"] = replace(settings.recipe, prior_scale=None)
    for name, recipe in recipes.items():
        trained = learners.learn(frames, recipe)
        found[name] = _pair(judge.errors(judge.predicted(trained.sim_to_real)))
        found[f"{name}_s"] = round(trained.seconds, 1)
        if name == "after":
            few_judged = Judge(robot, learners.forward_kinematics, few)
            found["floors"] = floors(robot, reality, few_judged, trained.sim_to_real).figures
    return found


def _pair(errors: Errors) -> dict[str, float]:
    return {"mean_mm": round(errors.mean_mm, 4), "max_mm": round(errors.max_mm, 4)}


MUCH_MISSING = 0.3
"""Share of the surface that scans lack, beyond which confidence has something to tell."""

Draw = dict[str, Any]


def draw_figures(draws: Sequence[Draw]) -> dict[str, Any]:
    """Return shares by which the mean error and each shape's largest error fall; draws that failed do not count.

    Returns:
        JSON-ready; what each key says stands in docs/steps/bench-sim-to-real.md.

    Raises:
        SoftformError: If no reality was measured.
    """
    measured = [draw for draw in draws if "error" not in draw]
    if not measured:
        raise SoftformError("No reality could be measured.", "Look at the reasons above.")
    named = sorted({kind for draw in measured for kind in draw["kinds"]})
    kinds = {kind: [draw for draw in measured if kind in draw["kinds"]] for kind in named}
    kinds[f"missing_above_{MUCH_MISSING:g}"] = [draw for draw in measured if draw["missing"] > MUCH_MISSING]
    kinds["no_memory"] = [draw for draw in measured if not draw["memory"]["mean_mm"]]
    without: dict[str, Any] = {}
    if all("without_prior" in draw for draw in measured):
        pairs = [(draw["without_prior"], draw["after"]) for draw in measured]
        larger = {  # number of realities that are learned worse without it
            f"{error}_larger": sum(one[f"{error}_mm"] > other[f"{error}_mm"] for one, other in pairs)
            for error in ("mean", "max")
        }
        without = {"without_prior": cuts_of(measured, "without_prior", spread) | larger}
    return {
        "draws": len(measured),
        **cuts_of(measured, "after", spread),
        **_fixed(measured, spread),
        **without,
        "missing": _median([draw["missing"] for draw in measured]),
        "left_out": sum(draw["left_out"] for draw in measured),
        "memory_floor_mm": _median([draw["memory"]["mean_mm"] for draw in measured]),
        **{what: median_errors(measured, what) for what in ("before", "after")},
        "floors": _floors(measured),
        "by_kind": {
            kind: {
                "draws": len(those),
                **cuts_of(those, "after", _median),
                **_fixed(those, _median),
            }
            for kind, those in kinds.items()
            if those
        },
    }


def _fixed(draws: Sequence[Draw], say: Callable[[list[float]], Any]) -> dict[str, Any]:
    """Return cuts with w_c = 1; markers have no other."""
    return {"fixed_confidence": cuts_of(draws, "fixed", say)} if all("fixed" in draw for draw in draws) else {}


def median_errors(draws: Sequence[Draw], what: str) -> dict[str, float]:
    """Return the medians over the realities of the mean and of the largest error, mm."""
    return {error: _median([draw[what][error] for draw in draws]) for error in ("mean_mm", "max_mm")}


def _floors(draws: Sequence[Draw]) -> dict[str, dict[str, float]]:
    """Return medians of errors and of the cuts that they would be, of memory and of what `reality_floors` measures."""
    found = {"memory": median_errors(draws, "memory") | cuts_of(draws, "memory", _median)}
    for name in draws[0]["floors"]:
        each = [draw["floors"][name] for draw in draws]
        found[name] = {figure: _median([one[figure] for one in each]) for figure in each[0]}
    return found


def cuts_of(draws: Sequence[Draw], learner: str, say: Callable[[list[float]], Any]) -> dict[str, Any]:
    """Return what `say` makes of the cuts of mean and largest error by a learner in each of the realities."""

    def cut(error: str) -> Any:
        pairs = [[draw[what][f"{error}_mm"] for what in ("before", learner)] for draw in draws]
        return say([(before - after) / before for before, after in pairs])

    return {"mean_reduction": cut("mean"), "max_reduction": cut("max")}


def _median(values: list[float]) -> float:
    return round(float(np.median(values)), 4)


def spread(values: list[float]) -> dict[str, float]:
    """Return the median, the 10th percentile and the least of values, one a reality."""
    worst_tenth = float(np.percentile(values, 10))
    return {"median": _median(values), "p10": round(worst_tenth, 4), "worst": round(min(values), 4)}
