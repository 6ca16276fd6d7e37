"""Fig. 9a: the largest error of N_fk by its hidden layers and the neurons of each, in the paper's recipe and in ours.

The paper's figure is of its mannequin; this one is of any robot whose shapes have been simulated.
"""

from dataclasses import asdict, replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from tqdm import tqdm

from softform_core.paths import data_dir
from softform_core.training.forward_kinematics import (
    DEFAULT,
    PAPER,
    ForwardKinematicsRecipe,
    forget_run,
    train_forward_kinematics,
)
from softform_core.training.shapes import TrainingShapes, load_training_shapes
from softform_studies.sim_to_real.ledger import Ledger
from softform_studies.studies.catalogue import Outcome, Setting
from softform_studies.studies.drawing import COLOURS, MARKS


def layers(setting: Setting) -> Outcome:
    """Train N_fk in every size on the shapes of `./softform simulate`, as long as the paper does.

    Raises:
        SoftformError: If there are no shapes of the robot, or training fails.
    """
    robot, scale = setting.robot, setting.scale
    shapes = load_training_shapes(robot, data_dir() / robot.name / "simulation.zarr")
    ledger = Ledger(setting.folder / "runs.jsonl")
    ours = replace(DEFAULT, activation=robot.networks.activation)
    sizes = [
        (title, replace(recipe, epochs=scale.pick(PAPER.epochs, 2), hidden=depth * (width,)))
        for title, recipe in (("as printed", PAPER), ("ours", ours))
        for depth in scale.pick((1, 2, 3), (1, 2))
        for width in scale.pick((32, 64, 128, 256), (4, 8))
    ]
    entries = []
    for title, recipe in tqdm(sizes, "layers", unit="training", disable=not setting.progress):
        depth = len(recipe.hidden)
        series = f"{title}, {depth} layer{'s' * (depth > 1)}"
        entries.append({"series": series, "x": recipe.hidden[0], **_errors(setting, ledger, shapes, recipe)})
    return Outcome(entries, _draw(entries), f"{len(shapes.actuation)} simulated shapes, {PAPER.epochs} epochs")


def _errors(
    setting: Setting, ledger: Ledger, shapes: TrainingShapes, recipe: ForwardKinematicsRecipe
) -> dict[str, float]:
    """Errors of the control points of the test shapes: from the ledger, or trained now and written there."""
    # The shapes are what the robot and the seed of its store make of it.
    key = {"robot": setting.robot.fingerprint(), "store": shapes.provenance, "shapes": len(shapes.actuation)}
    key = {"layers": asdict(recipe), "seed": setting.seed, **key}
    result: dict[str, float] | None = ledger.find(key)
    if result is None:
        checkpoints = setting.folder / "checkpoints"
        trained = train_forward_kinematics(
            setting.robot, shapes, recipe, setting.seed, checkpoints, progress=setting.progress
        )
        errors = trained.errors[trained.split.test]
        result = {"mean_mm": round(float(errors.mean()), 4), "max_mm": round(float(errors.max()), 3)}
        result |= {"train_s": round(trained.seconds, 1)}
        ledger.keep(key, result)
        forget_run(shapes, recipe, setting.seed, checkpoints)
    return result


def _draw(entries: list[dict[str, Any]]) -> Figure:
    figure = Figure(figsize=(12.0, 4.8), dpi=120, layout="constrained")
    series = list(dict.fromkeys(entry["series"] for entry in entries))
    titles = list(dict.fromkeys(name.partition(",")[0] for name in series))
    most = max(entry["max_mm"] for entry in entries)
    for axes, title in zip(figure.subplots(1, len(titles)), titles, strict=True):
        for place, name in enumerate(one for one in series if one.startswith(title)):
            part = [entry for entry in entries if entry["series"] == name]
            x, y = np.array([(entry["x"], entry["max_mm"]) for entry in part]).T
            axes.plot(x, y, marker=MARKS[place], color=COLOURS[place], label=name.partition(", ")[2])
        axes.set_xscale("log")
        axes.set_xticks(x, [f"{value:g}" for value in x])
        axes.minorticks_off()
        axes.set(xlabel="neurons in each hidden layer of N_fk", ylabel="largest error of all test shapes (mm)")
        axes.set(title=title, ylim=(0.0, 1.12 * most))
        axes.grid(alpha=0.25)
        axes.legend()
    return figure
