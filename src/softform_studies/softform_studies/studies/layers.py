"""Fig. 9a: the largest error of N_fk by its hidden layers and the neurons of each, in the paper's recipe and in ours.

The paper's figure is of its mannequin; this one is of any robot whose shapes have been simulated.
"""

from dataclasses import asdict, replace
from typing import Any

from matplotlib.figure import Figure

from softform_core.kept import Ledger
from softform_core.paths import data_dir
from softform_core.training.forward_kinematics import (
    DEFAULT,
    PAPER,
    ForwardKinematicsRecipe,
    forget_run,
    train_forward_kinematics,
)
from softform_core.training.shapes import TrainingShapes, load_training_shapes
from softform_studies.studies.catalogue import Outcome, Setting
from softform_studies.studies.drawing import curves, even_ticks


def layers(setting: Setting) -> Outcome:
    """Train N_fk in every size on the shapes of `./softform simulate`, as long as the paper does.

    Raises:
        SoftformError: If there are no shapes of the robot, or training fails.
    """
    robot, scale = setting.robot, setting.scale
    shapes = load_training_shapes(robot, data_dir() / robot.name / "simulation.zarr")
    ledger = Ledger(setting.folder / "runs.jsonl")
    epochs, ours = scale.pick(PAPER.epochs, 2), replace(DEFAULT, activation=robot.networks.activation)
    sizes = [
        (f"{title}, {depth} layer{'s' * (depth > 1)}", width, replace(recipe, epochs=epochs, hidden=depth * (width,)))
        for title, recipe in (("as printed", PAPER), ("ours", ours))
        for depth in scale.pick((1, 2, 3), (1, 2))
        for width in scale.pick((32, 64, 128, 256), (4, 8))
    ]
    entries = [
        {"series": series, "x": width, **_errors(setting, ledger, shapes, recipe)}
        for series, width, recipe in setting.each([(f"{one[0]}, {one[1]}", one) for one in sizes], "layers", "training")
    ]
    return Outcome(entries, _draw(entries), f"{len(shapes.actuation)} simulated shapes, {PAPER.epochs} epochs")


def _errors(
    setting: Setting, ledger: Ledger, shapes: TrainingShapes, recipe: ForwardKinematicsRecipe
) -> dict[str, float]:
    """Return errors of the control points of the test shapes: from the ledger, or trained now and written there."""
    # The shapes are what the robot and the seed of its store make of it.
    key = {"robot": setting.robot.fingerprint(), "store": shapes.provenance, "shapes": len(shapes.actuation)}
    key = {"layers": asdict(recipe), "seed": setting.seed, **key}
    checkpoints = setting.folder / "checkpoints"

    def measure() -> dict[str, float]:
        given = setting.robot, shapes, recipe, setting.seed, checkpoints
        trained = train_forward_kinematics(*given, progress=setting.progress)
        errors = trained.errors[trained.split.test]
        figures = {"mean_mm": round(float(errors.mean()), 4), "max_mm": round(float(errors.max()), 3)}
        return figures | {"train_s": round(trained.seconds, 1)}

    result = ledger.kept(key, measure)
    forget_run(shapes, recipe, setting.seed, checkpoints)
    return result


def _draw(entries: list[dict[str, Any]]) -> Figure:
    figure = Figure(figsize=(12.0, 4.8), dpi=120, layout="constrained")
    titles = list(dict.fromkeys(entry["series"].partition(",")[0] for entry in entries))
    labels = "neurons in each hidden layer of N_fk", "largest error of all test shapes (mm)"
    most = max(entry["max_mm"] for entry in entries)
    for axes, title in zip(figure.subplots(1, len(titles)), titles, strict=True):
        part = [entry for entry in entries if entry["series"].startswith(title)]
        curves(axes, [(one["series"].partition(", ")[2], one["x"], one["max_mm"]) for one in part], *labels, most)
        even_ticks(axes, [entry["x"] for entry in part])
        axes.set_title(title)
        axes.grid(alpha=0.25)
        axes.legend()
    return figure
