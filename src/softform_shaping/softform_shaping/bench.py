"""`softform bench shaping`: the tasks of paper 003 by the true object, the printed controller beside ours."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.executors import Executor
from softform_core.threads import one_thread
from softform_shaping.controllers import Limits
from softform_shaping.features import cumulative_variance, principal_components
from softform_shaping.poses import limited, moved
from softform_shaping.preparation import CONTROLLERS, prepared, prepared_task
from softform_shaping.printed import Printed, first_past
from softform_shaping.scene import make_scene
from softform_shaping.session import Shaped, shape_object
from softform_shaping.tasks import TASKS
from softform_shaping.true_object import TrueObject

__all__ = ["best_reachable", "outcome", "run_task", "shaping"]

SUCCESS = 2.0
"""True root mean square error, mm, up to which a task counts as done."""
_MOST = {"ours": 20, "printed": 60}
_REACH_ROUNDS, _COMPONENTS = 4, (6, 8, 10, 12)
PAPER: dict[str, Any] = {
    "successes": "11 of 11, by e < 0.05 m of the corrected model",
    "s_per_iteration": 2.9,
    "cumulative_variance": {"6": 0.90, "8": 0.97, "10": 0.98, "12": 0.99},
}
"""What paper 003 prints (Tables 3 to 5); its seconds hold the motion of the arms, too."""


class Job(NamedTuple):
    """One run of the benchmark: a task, a controller and a seed."""

    task: str
    controller: str
    seed: int


class Outcome(NamedTuple):
    """What became of a job, JSON-ready figures."""

    job: Job
    figures: dict[str, Any]


def best_reachable(truth: TrueObject, target: Array) -> tuple[float, float]:
    """Least errors of the true object that its grippers can do near where they are, mm: by its own sensitivities.

    It moves the object, and says more than any controller can know.
    """
    best = truth.errors(target)
    for _ in range(_REACH_ROUNDS):
        residual = (target - truth.nodes)[truth.has].ravel()
        step = np.asarray(
            np.linalg.lstsq(truth.sensitivity()[truth.has].reshape(-1, 12), residual, rcond=1e-4)[0], np.float64
        )
        try:
            truth.move(moved(truth.poses, limited(step, 0.01, 0.1)))
        except SoftformError:
            break
        found = truth.errors(target)
        if found[0] > 0.999 * best[0]:
            return min(best, found)
        best = found
    return best


def run_task(job: Job, measure_reachable: bool) -> Outcome:
    """Do one task once."""
    with one_thread():
        described, task = prepared_task(job.task)
        scene = make_scene(described, task.model, job.seed)
        controller = CONTROLLERS[job.controller](task, job.seed)
        shaped = shape_object(controller, scene, _MOST[job.controller])
        figures = outcome(shaped)
        if measure_reachable:
            figures["reachable_mm"] = best_reachable(scene.truth, task.target)[0]
        return Outcome(job, figures)


def outcome(shaped: Shaped) -> dict[str, Any]:
    """Figures of one run."""
    if not shaped.iterations:
        return {"success": False, "ended": shaped.ended, "iterations": 0}
    last = shaped.last
    return {
        "success": last.true_rms <= SUCCESS,
        "true_rms_mm": last.true_rms,
        "true_max_mm": last.true_max,
        "reported_mm": last.estimate.rms,
        "reported_e_m": last.estimate.error,
        "iterations": len(shaped.iterations),
        "to_success": next((i for i, one in enumerate(shaped.iterations, 1) if one.true_rms <= SUCCESS), None),
        "s_per_iteration": float(np.mean([each.seconds for each in shaped.iterations])),
        "corrections": sum(each.estimate.corrections for each in shaped.iterations),
        "travel_m": shaped.travel,
        "ended": shaped.ended,
    }


def shaping(
    names: Sequence[str], seeds: Sequence[int], executor: Executor, report: Callable[[str], None]
) -> dict[str, Any]:
    """Do tasks with both controllers on drawn rigs.

    Args:
        names: Of `TASKS`.
        seeds: Of the rigs for each.
        executor: Does them.
        report: Called with a line for each.

    Returns:
        JSON-ready figures: means over the seeds, `success` the share of them.

    Raises:
        SoftformError: If there is no such task.
    """
    for name in names:
        if name not in TASKS:
            raise SoftformError(f"There is no task '{name}'.", f"Known: {', '.join(TASKS)}.")
    jobs = [Job(name, which, seed) for name in names for which in CONTROLLERS for seed in seeds]
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for done in executor.run(_worker, jobs):
        found.setdefault(done.job[:2], []).append(done.figures)
        said = ", ".join(f"{key} {_short(value)}" for key, value in done.figures.items())
        report(f"{done.job.task} by {done.job.controller}, seed {done.job.seed}: {said}")
    tasks = {name: _means(found[name, "ours"]) for name in names}
    beside = {name: _means(found[name, "printed"]) for name in names}
    return {
        "seeds": len(seeds),
        "first_seed": min(seeds),
        "success_mm": SUCCESS,
        "tasks": tasks,
        "printed": {"tasks": beside},
        "summary": {"ours": _summary(tasks), "printed": _summary(beside)},
        "cumulative_variance": _variance(),
        "paper": PAPER,
    }


def _worker() -> Callable[[Job], Outcome]:
    return lambda job: run_task(job, job.controller == "ours")


def _short(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _means(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over the seeds of what is a number; how often each ended as it did."""
    figures: dict[str, Any] = {"success": float(np.mean([run["success"] for run in runs]))}
    for key in ("true_rms_mm", "true_max_mm", "reported_mm", "reported_e_m", "iterations", "to_success",
                "s_per_iteration", "corrections", "travel_m", "reachable_mm"):  # fmt: skip
        values = [run[key] for run in runs if run.get(key) is not None]
        if values:
            figures[key] = round(float(np.mean(values)), 4)
    endings = [run["ended"] for run in runs]
    figures["ended"] = {ending: endings.count(ending) for ending in sorted(set(endings))}
    return figures


def _summary(tasks: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Over all tasks: how many always succeed, and means."""
    keys = ("success", "true_rms_mm", "iterations", "s_per_iteration")
    return {
        "tasks_always_done": sum(one["success"] == 1.0 for one in tasks.values()),
        **{key: round(float(np.mean([one[key] for one in tasks.values() if key in one])), 4) for key in keys},
    }


def _variance() -> dict[str, float]:
    """Table 3: cumulative share of the first components in the variance of first shapes, of the sponge."""
    _, model, _ = prepared("sponge")
    past = first_past(model, model.rest, Printed(), Limits().stretch, np.random.default_rng(0))
    shares = cumulative_variance(principal_components(past.shapes, 12))
    return {str(count): round(float(shares[count - 1]), 3) for count in _COMPONENTS}
