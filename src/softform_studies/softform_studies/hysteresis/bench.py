"""`softform bench hysteresis`: the decoder of paper 004 raced against others and against ours."""

import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from softform_core.arrays import Array
from softform_core.executors import Executor
from softform_core.kept import Ledger
from softform_core.threads import one_thread
from softform_studies.hysteresis.laboratory import Plan, Prepared, prepare
from softform_studies.hysteresis.losses import seen_floor_m2, whole_skin_floor_m2
from softform_studies.hysteresis.tasks import Runner, Task, tasks

_BATCH, _ALONE = 1000, 200
PAPER = {
    "physics": {"chamfer_m2": 0.0374, "tip_mm": 19.0},
    "no_hysteresis": {"chamfer_m2": 0.013, "tip_mm": 10.0},
    "decoder": {"chamfer_m2": 0.0057, "tip_mm": 7.6},
    "ratios": {"physics": 6.6, "no_hysteresis": 2.3, "chamfer_alone": 1.47, "mse": 199.0},
    "trajectories": {
        "physics": {"chamfer_m2": 0.044, "tip_mm": 20.0},
        "no_hysteresis": {"chamfer_m2": 0.015, "tip_mm": 11.0},
        "decoder": {"chamfer_m2": 0.009, "tip_mm": 9.0},
    },
    "ms_per_shape": 0.32,
}
"""What paper 004 prints of its robot (Sec. VI-D); its Chamfer's distances are squared, and so in m²."""


def hysteresis(
    path: Path, plan: Plan, folder: Path, executor: Executor, report: Callable[[str], None]
) -> dict[str, Any]:
    """Race all models; those that `folder` holds, of the same shapes and plan, are not trained again.

    Args:
        path: Store of `softform histories`.
        plan: How much is done.
        folder: Where what is found is kept, model by model.
        executor: Trains the models.
        report: Called with lines on the way.

    Returns:
        JSON-ready figures: one object for each model, by the splits and losses beside, learning curves, times, and the
        least Chamfer's distance that can be told: of what the cameras see of the shapes to judge by, and of all skin.

    Raises:
        SoftformError: If there are no such shapes, or too few, or the folder cannot be written.
    """
    prepared, ledger = prepare(path, plan, executor, report, folder), Ledger(folder / "race.jsonl")
    figures: dict[str, Any] = {
        "shapes": len(prepared.shapes),
        "plan": asdict(plan),
        "sampling_floor_m2": round(seen_floor_m2(prepared.shapes.cloud[prepared.rows("printed")[2]]), 5),
        "whole_skin_floor_m2": round(whole_skin_floor_m2(prepared.shapes.area), 5),
        "fitted_centre_lines": _fits(prepared),
        "paper": PAPER,
    }
    listed = {task.key: {**prepared.settings, "task": asdict(task)} for task in tasks(prepared)}
    missing = [task for task in tasks(prepared) if ledger.find(listed[task.key]) is None]
    report(f"{len(missing)} of {len(listed)} models are to be trained")
    for key, found, said in executor.run(partial(Runner, prepared), missing):
        report(said)
        ledger.keep(listed[key], found)
    for key, settings in listed.items():
        place = figures
        for name in key[:-1]:
            place = place.setdefault(name, {})
        place[key[-1]] = ledger.find(settings)
    with one_thread():
        figures["ms_per_shape"] = _times(prepared)
    return figures


def _fits(prepared: Prepared) -> dict[str, float]:
    """How far the centre lines that curve models learn from are from the true ones, mm."""
    runner = Runner(prepared)
    rows = prepared.rows("printed")[0]
    line = runner.lines.lines(prepared.bends[rows])
    off = np.linalg.norm(line.points - prepared.shapes.centre_line[rows], axis=2)
    return {"rms_mm": round(float(np.sqrt((off**2).mean())), 3), "tip_mm": round(float(off[:, -1].mean()), 3)}


def _times(prepared: Prepared) -> dict[str, float]:
    """Milliseconds a shape of one core, many at once and alone: ours with centre line and skin.

    They are processor time, which other work on the machine does not lengthen.
    """
    runner = Runner(prepared)
    model = runner.curve(Task(("ours",), "ours", most=prepared.plan.ours))
    paths = prepared.paths
    paths = paths[np.resize(np.arange(len(paths)), _BATCH)]
    net = runner.untrained(Task(("decoder",), "decoder"))
    eta = np.concatenate([paths[:, -2], paths[:, -1]], axis=1)

    def ours(one: Array) -> None:
        runner.lines.carried(runner.lines.lines(model.bends(one)))

    found = {}
    for name, work, inputs in (("ours", ours, paths), ("decoder", net.clouds, eta)):
        work(inputs)
        began = time.process_time()
        work(inputs)
        found[f"{name}_batched"] = round(1e3 * (time.process_time() - began) / _BATCH, 4)
        began = time.process_time()
        for row in range(_ALONE):
            work(inputs[row : row + 1])
        found[f"{name}_alone"] = round(1e3 * (time.process_time() - began) / _ALONE, 3)
    return found
