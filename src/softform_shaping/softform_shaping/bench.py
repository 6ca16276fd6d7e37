"""`softform bench shaping`: the tasks of paper 003 by the true object, the printed controller beside ours."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.executors import Executor
from softform_core.kept import Ledger
from softform_core.threads import one_thread
from softform_shaping.controllers import Limits
from softform_shaping.objects import load_object
from softform_shaping.ours import Ours
from softform_shaping.poses import limited, moved
from softform_shaping.preparation import CONTROLLERS, prepared_task
from softform_shaping.printed import Printed
from softform_shaping.scene import make_scene
from softform_shaping.session import Shaped, shape_object
from softform_shaping.tasks import TASKS
from softform_shaping.true_object import TrueObject

__all__ = ["SUCCESS", "best_reachable", "outcome", "run_task", "shaping"]

SUCCESS = 2.0
"""True root mean square error, mm, up to which a task counts as done."""
_MOST = {"ours": 20, "printed": 60}
_REACH_ROUNDS = 4
_VERSION = 1
"""Of what is measured: what was kept of another one does not count."""
STEPS = ("simulation", "image", "correction", "control")
PAPER: dict[str, Any] = {
    "successes": "11 of 11, by e < 0.05 m of the corrected model",
    "s_per_iteration": 2.9,
    "s_by_step": {"simulation": 1.884, "image": 0.045, "correction": 0.02, "control": 0.958},
}
"""What paper 003 prints (Tables 4 and 5); its seconds of control hold the motion of the arms."""


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


def settings_of(job: Job) -> dict[str, Any]:
    """All that a run's figures depend on, but for the program itself."""
    task = TASKS[job.task]
    described = load_object(task.object)
    parameters: Ours | Printed = Ours() if job.controller == "ours" else Printed()
    return {
        "version": _VERSION,
        **job._asdict(),
        "most": _MOST[job.controller],
        "poses": task.poses.tolist(),
        "object": described.model_dump(mode="json"),
        "files": described.body.contents,
        "parameters": asdict(parameters),
        "limits": Limits()._asdict(),
    }


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
        "s_by_step": dict(
            zip(STEPS, np.mean([each.steps for each in shaped.iterations], axis=0).tolist(), strict=True)
        ),
        "course_mm": [round(each.true_rms, 3) for each in shaped.iterations],
        "corrections": sum(each.estimate.corrections for each in shaped.iterations),
        "travel_m": shaped.travel,
        "ended": shaped.ended,
    }


def shaping(
    names: Sequence[str],
    seeds: Sequence[int],
    executor: Executor,
    report: Callable[[str], None],
    ledger: Ledger | None = None,
    printed_seeds: int | None = None,
) -> dict[str, Any]:
    """Do tasks with both controllers on drawn rigs.

    Args:
        names: Of `TASKS`.
        seeds: Of the rigs for each.
        executor: Does them.
        report: Called with a line for each.
        ledger: Keeps each run as soon as it is done; what it has is not done again.
        printed_seeds: How many of the seeds, from the first on, the printed controller gets, which takes long; all, if
            left out.

    Returns:
        JSON-ready figures: means over the seeds, `success` the share of them.

    Raises:
        SoftformError: If there is no such task.
    """
    for name in names:
        if name not in TASKS:
            raise SoftformError(f"There is no task '{name}'.", f"Known: {', '.join(TASKS)}.")
    rigs = {"ours": seeds, "printed": seeds[:printed_seeds]}
    jobs = [Job(name, which, seed) for seed in seeds for name in names for which in rigs if seed in rigs[which]]
    found: dict[Job, dict[str, Any]] = {}
    for job in jobs if ledger is not None else []:
        assert ledger is not None
        if (kept := ledger.find(settings_of(job))) is not None:
            found[job] = kept
    left = [job for job in jobs if job not in found]
    if left and found:
        report(f"{len(found)} of {len(jobs)} runs were kept")
    for done in executor.run(_worker, left) if left else ():
        found[done.job] = done.figures
        if ledger is not None:
            ledger.keep(settings_of(done.job), done.figures)
        said = ", ".join(f"{key} {_short(value)}" for key, value in done.figures.items() if key != "course_mm")
        report(f"{done.job.task} by {done.job.controller}, seed {done.job.seed}: {said}")
    ours, printed = (
        {name: _means([found[Job(name, which, seed)] for seed in rigs[which]]) for name in names} for which in rigs
    )
    return {
        "seeds": len(seeds),
        "first_seed": min(seeds),
        "success_mm": SUCCESS,
        "tasks": ours,
        "printed": {"seeds": len(rigs["printed"]), "tasks": printed},
        "summary": {
            "ours": _summary(ours) | _where_reachable([found[job] for job in jobs if job.controller == "ours"]),
            "printed": _summary(printed),
            "both": _both(ours, printed),
        },
        "paper": PAPER,
    }


def _worker() -> Callable[[Job], Outcome]:
    return lambda job: run_task(job, job.controller == "ours")


def _short(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(f"{key} {_short(each)}" for key, each in value.items())
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _means(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over the seeds of what is a number; the worst error; how often each ended as it did; courses of errors.

    `to_success` is of the runs that succeeded.
    """
    figures: dict[str, Any] = {"success": float(np.mean([run["success"] for run in runs]))}
    for key in ("true_rms_mm", "true_max_mm", "reported_mm", "reported_e_m", "iterations", "to_success",
                "s_per_iteration", "corrections", "travel_m", "reachable_mm"):  # fmt: skip
        values = [run[key] for run in runs if run.get(key) is not None]
        if values:
            figures[key] = round(float(np.mean(values)), 4)
    seen = [run for run in runs if run["iterations"]]
    if seen:
        figures["worst_rms_mm"] = round(max(run["true_rms_mm"] for run in seen), 4)
        figures["s_by_step"] = {
            step: round(float(np.mean([run["s_by_step"][step] for run in seen])), 4) for step in STEPS
        }
        figures["courses_mm"] = [run["course_mm"] for run in seen]
    endings = [run["ended"] for run in runs]
    figures["ended"] = {ending: endings.count(ending) for ending in sorted(set(endings))}
    return figures


def _summary(tasks: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Over all tasks: how many always succeed, and means."""
    keys = ("success", "true_rms_mm", "iterations", "s_per_iteration")
    done = [one["s_by_step"] for one in tasks.values() if "s_by_step" in one]
    return {
        "tasks": len(tasks),
        "tasks_always_done": sum(one["success"] == 1.0 for one in tasks.values()),
        "worst_rms_mm": max((one["worst_rms_mm"] for one in tasks.values() if "worst_rms_mm" in one), default=None),
        **{key: _mean([one[key] for one in tasks.values() if key in one]) for key in keys},
        "s_by_step": {step: _mean([one[step] for one in done]) for step in STEPS},
    }


def _where_reachable(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Share of the runs whose true object could have come within what counts as done; of these, the share that did."""
    could = [run for run in runs if run.get("reachable_mm", np.inf) <= SUCCESS]
    return {"reachable": len(could) / len(runs), "success_where_reachable": _mean([run["success"] for run in could])}


def _both(ours: dict[str, dict[str, Any]], printed: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Iterations until success where both controllers always succeed."""
    names = [name for name in ours if ours[name]["success"] == printed[name]["success"] == 1.0]
    return {
        "tasks_always_done": len(names),
        "to_success_ours": _mean([ours[name]["to_success"] for name in names]),
        "to_success_printed": _mean([printed[name]["to_success"] for name in names]),
    }


def _mean(values: Sequence[float]) -> float | None:
    return round(float(np.mean(values)), 4) if values else None
