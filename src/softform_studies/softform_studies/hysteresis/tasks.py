"""The models of the race, each trained on the learned rows of a split and judged by its others."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.robots import load_robot
from softform_studies.hysteresis import curve_models
from softform_studies.hysteresis.centre_lines import CentreLines
from softform_studies.hysteresis.curve_models import CurveModel, Known
from softform_studies.hysteresis.decoder import BATCH, Decoder, Loss, Recipe, train_decoder
from softform_studies.hysteresis.judge import Carrier, Judge
from softform_studies.hysteresis.laboratory import Prepared, Split
from softform_studies.hysteresis.ours import Ours, surrogate
from softform_studies.tendon_robot.shapes import RecordedShapes

Rows = NDArray[np.int64]

PAPER_WEIGHT = 1000.0
"""lambda = 1 of the paper, whose lengths are in metres, in mm."""

_METRIC = 100
"""Lines about which it is told how far bends move a line."""

CURVES: dict[str, Callable[[Known], CurveModel]] = {
    "memory_free_curve": curve_models.memory_free,
    "play": curve_models.play,
    "prandtl_ishlinskii": curve_models.prandtl_ishlinskii,
    "gru": curve_models.recurrent,
    "tcn": curve_models.convolutional,
    "turning_points": curve_models.by_turning_points,
}
"""Opponents that tell centre lines."""


@dataclass(frozen=True)
class Task:
    """A model to be trained and judged.

    Attributes:
        key: Under which its figures stand.
        model: `physics`, `ours`, one of `CURVES`, or `decoder`.
        split: Of the rows.
        most: Shapes that it learns from and validates by, 70 and 30 %, at most.
        sees_prior: Whether a decoder is told the prior configuration.
        from_home: Whether it learns from shapes that were reached from home alone.
        loss: Of a decoder.
        weight: lambda of its loss, mm.
        printed: Whether a decoder is trained by the paper's schedule, not in the steps that all have.
    """

    key: tuple[str, ...]
    model: str
    split: Split = "printed"
    most: int | None = None
    sees_prior: bool = True
    from_home: bool = False
    loss: Loss = "tendon"
    weight: float = PAPER_WEIGHT
    printed: bool = False


class Runner:
    """Trains and judges models.

    Args:
        prepared: What they need.

    Attributes:
        lines: Of the robot.
    """

    def __init__(self, prepared: Prepared) -> None:
        torch.set_num_threads(1)
        self._prepared, self._shapes = prepared, prepared.shapes
        self.lines = CentreLines(load_robot(prepared.shapes.robot).body)
        self._paths = prepared.paths

    def __call__(self, task: Task) -> tuple[tuple[str, ...], dict[str, Any], str]:
        """Return the key of a task, its figures, and what is to be said of it."""
        learned, validated, judged = self._rows(task)
        said: list[str] = []
        judge = Judge(self.lines, self._shapes.of(judged), self._prepared.candidates[judged])
        figures: dict[str, Any] = {"learned_from": len(learned), "validated_by": len(validated)}
        if task.model == "decoder":
            net = self.decoder(task, said.append)
            figures |= _spent(net.steps, BATCH, len(learned))
            figures |= judge.of_clouds(net.clouds(self._inputs(task)[judged]))
        else:
            model = self.curve(task)
            line = self.lines.lines(model.bends(self._paths[judged]))
            figures |= judge.of_line(line, self.carrier(learned).clouds_of(line, self._shapes.of(judged).eta))
            if isinstance(model, curve_models.Felt):
                figures["parameters"] = model.parameters
            if isinstance(model, curve_models.Network):
                figures |= _spent(self._prepared.plan.steps, curve_models.BATCH, len(learned))
        line_of = f"{' '.join(task.key)}: " + ", ".join(f"{name} {value:g}" for name, value in figures.items())
        return task.key, figures, "\n".join([*said, line_of])

    def _rows(self, task: Task) -> tuple[Rows, Rows, Rows]:
        learned, validated, judged = self._prepared.rows(task.split)
        if task.from_home:
            learned, validated = (one[self._shapes.part[one] == 0] for one in (learned, validated))
        if task.most is not None:
            validated = validated[: max(1, 3 * task.most // 10)]
            learned = learned[: task.most - len(validated)]
        return learned, validated, judged

    def _inputs(self, task: Task) -> Array:
        return self._shapes.eta if task.sees_prior else self._shapes.q_current

    def decoder(self, task: Task, report: Callable[[str], None]) -> Decoder:
        """Return the trained decoder of a task."""
        learned, validated, _ = self._rows(task)
        inputs, clouds = self._inputs(task), self._shapes.cloud
        recipe = Recipe.of_steps(task.loss, task.weight, self._prepared.plan.steps)
        if task.printed:
            recipe = Recipe.printed(task.loss, task.weight, len(learned))
        return train_decoder((inputs[learned], clouds[learned]), (inputs[validated], clouds[validated]), recipe, report)

    def untrained(self, task: Task) -> Decoder:
        """Return a decoder of the shape of a task's, which takes as long."""
        inputs, clouds = self._inputs(task), self._shapes.cloud
        return Decoder(inputs.shape[1], clouds.shape[1], np.ones(inputs.shape[1]), np.zeros(3), 1.0)

    def curve(self, task: Task) -> CurveModel:
        """Return the trained model of a task that tells centre lines."""
        if task.model == "physics":
            return _OfPresent(self._prepared.rod.bends)
        known = self.known(task)
        if task.model != "ours":
            return CURVES[task.model](known)
        prior = surrogate(self._prepared.rod.bends, np.unique(self._shapes.q_current, axis=0))
        return Ours(prior, known)

    def known(self, task: Task) -> Known:
        """Return what a model that tells centre lines learns from, and is validated by."""
        learned, validated, _ = self._rows(task)
        paths, bends = self._paths, self._prepared.bends
        metric = self.lines.metric(bends[learned[:_METRIC]])
        steps = self._prepared.plan.steps
        return Known(paths[learned], bends[learned], paths[validated], bends[validated], metric, steps)

    def carrier(self, learned: Rows) -> Carrier:
        """Return what makes clouds about lines, of the shapes that a model learned from."""
        shapes: RecordedShapes = self._shapes.of(learned)
        return Carrier(self.lines.lines(self._prepared.bends[learned]), shapes.cloud, shapes.eta)


def _spent(steps: int, batch: int, shapes: int) -> dict[str, float]:
    """Figures of how long a network learned: steps, and how often it saw each shape."""
    return {"steps": steps, "epochs": round(steps * min(batch, shapes) / shapes, 1)}


@dataclass(frozen=True, eq=False)
class _OfPresent:
    """A model of the present configuration alone."""

    of: Callable[[Array], Array]

    def bends(self, paths: Array) -> Array:
        return self.of(paths[:, -1])


def tasks(prepared: Prepared) -> list[Task]:
    """Return all tasks, long ones first."""
    plan = prepared.plan
    decoder = Task(("decoder",), "decoder")
    memory_free = replace(decoder, key=("no_hysteresis_all_data",), sees_prior=False)
    ours = Task(("ours",), "ours", most=plan.ours)
    listed = [
        replace(one, key=("as_printed", *one.key), printed=True)
        for one in (decoder, memory_free, replace(memory_free, key=("no_hysteresis",), from_home=True))
        if plan.printed
    ]
    listed += [
        decoder,
        memory_free,
        replace(memory_free, key=("no_hysteresis",), from_home=True),
        replace(decoder, key=("losses", "chamfer_alone"), loss="chamfer"),
        replace(decoder, key=("losses", "mse"), loss="mse"),
        *(replace(decoder, key=("losses", f"lambda_{weight:g}_mm"), weight=weight) for weight in plan.weights),
    ]
    for split in ("by_current", "by_prior", "trajectories"):
        named = [decoder, memory_free, ours, Task(("physics",), "physics")]
        named += [Task((name,), name) for name in ("play", "gru", "tcn")]
        listed += [replace(one, key=(split, *one.key), split=split) for one in named]
    for count in plan.curve:
        for one in (decoder, Task(("gru",), "gru"), Task(("ours",), "ours")):
            if one.model != "ours" or count <= 2 * plan.ours:
                listed.append(replace(one, key=("learning_curve", *one.key, str(count)), most=count))
    listed += [ours, Task(("physics",), "physics"), *(Task((name,), name) for name in CURVES)]
    return sorted(listed, key=lambda task: task.model != "decoder")
