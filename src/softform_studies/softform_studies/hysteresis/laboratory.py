"""What the models of the race share: shapes, splits, fitted centre lines, the rod without friction; and its tasks."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.executors import Executor
from softform_core.kept import kept_arrays
from softform_core.robots import load_robot
from softform_studies.hysteresis.centre_lines import CentreLines
from softform_studies.hysteresis.friction_free import TRAINED_ON, FrictionFreeRod, Parameters, identified
from softform_studies.hysteresis.memories import split_rows
from softform_studies.hysteresis.ours import surrogate
from softform_studies.tendon_robot.shapes import RecordedShapes, read_shapes

Split = Literal["printed", "by_current", "by_prior", "trajectories"]
SPLITS: tuple[Split, ...] = ("printed", "by_current", "by_prior")

_TOWARDS_PRIOR, _GAINS = (0.0, 0.15, 0.3), (0.8, 0.95, 1.1)
"""Where the fit of a centre line may begin: the rod's at a configuration moved towards the prior one, and scaled."""
_CHUNK = 256
_VERSION = 1
"""Of how lines are fitted and models trained: what was kept by another version does not count."""


@dataclass(frozen=True)
class Plan:
    """How much is done.

    Attributes:
        tests: Shapes judged by in the printed split.
        tests_apart: In the other two.
        validated: Shapes to validate by, at most.
        learned: Shapes that the others learn from, at most.
        ours: Shapes that ours learns from and validates by: a tenth of the paper's.
        steps: Of the optimiser, of each network that learns from shapes, however few.
        printed: Whether the decoder and that of the present configuration alone are also trained as printed.
        curve: Numbers of shapes of the learning curves, those to validate by included.
        weights: lambda of the scan, mm.
    """

    tests: int = 50
    tests_apart: int = 150
    validated: int = 300
    learned: int = 100_000
    ours: int = 831
    steps: int = 8000
    printed: bool = True
    curve: tuple[int, ...] = (100, 200, 400, 831, 1700, 3400)
    weights: tuple[float, ...] = (1.0, 10.0, 100.0)


QUICK = Plan(
    tests_apart=50, validated=150, learned=600, ours=300, steps=600, printed=False, curve=(100, 300), weights=(10.0,)
)


@dataclass(frozen=True, eq=False)
class Prepared:
    """Everything that a task needs.

    Attributes:
        shapes: All recorded shapes.
        bends: (n, W) fitted to their clouds, not a number of those that no split has; those of shapes that a model is
            judged by are not shown to it.
        candidates: (n, c, W) where the fit of a cloud may begin, a measured or a predicted one.
        rod: That rod.
        plan: How much is done.
        settings: What all of this was made of: what is kept of it has the same.
    """

    shapes: RecordedShapes
    bends: Array
    candidates: Array
    rod: FrictionFreeRod
    plan: Plan
    settings: Mapping[str, Any]

    @property
    def paths(self) -> Array:
        """Configurations (n, h + 1, k) m, the present one last."""
        return np.concatenate([self.shapes.past, self.shapes.q_current[:, None]], axis=1)

    def rows(self, split: Split) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return rows to learn from, to validate and to judge by; of `trajectories` the walk is learned from, too."""
        return rows_of(self.shapes, split, self.plan)


def rows_of(
    shapes: RecordedShapes, split: Split, plan: Plan
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return rows to learn from, to validate and to judge by."""
    singles = np.flatnonzero(np.isin(shapes.part, (0, 1, 2)))
    kind = "printed" if split == "trajectories" else split
    tests = plan.tests if kind == "printed" else plan.tests_apart
    places = split_rows(kind, shapes.q_current[singles], shapes.q_prior[singles], tests, seed=0)
    learned, validated, judged = (singles[one] for one in places)
    random = np.random.default_rng(1)
    if split == "trajectories":
        walk = random.permutation(np.flatnonzero(shapes.part == 3))
        most = int(0.7 * len(walk))
        learned, validated = np.concatenate([learned, walk[:most]]), np.concatenate([validated, walk[most:]])
        judged = np.flatnonzero(shapes.part == 4)
    return random.permutation(learned)[: plan.learned], random.permutation(validated)[: plan.validated], judged


def prepare(path: Path, plan: Plan, executor: Executor, report: Callable[[str], None], folder: Path) -> Prepared:
    """Read shapes, identify the rod without friction on clouds that no split judges by, and fit centre lines.

    What was found is kept in `folder`, and taken from there where shapes and plan are the same.

    Raises:
        SoftformError: If there are no such shapes, or too few, or the folder cannot be written.
    """
    shapes = read_shapes(path)
    singles = int(np.isin(shapes.part, (0, 1, 2)).sum())
    if singles < 3 * plan.tests:
        raise SoftformError(
            f"{path} has {singles} shapes after single moves; {3 * plan.tests} are needed at least.",
            "Make more by `./softform histories` with more --levels.",
        )
    content = sha256(shapes.cloud.tobytes() + shapes.q_current.tobytes() + shapes.past.tobytes()).hexdigest()[:16]
    settings = {"version": _VERSION, "robot": shapes.robot, "shapes": content, "plan": asdict(plan)}
    report(f"{len(shapes)} shapes; the rod without friction, and centre lines of their clouds")
    kept = kept_arrays(folder, settings, lambda: _found(shapes, plan, executor, report))
    body = load_robot(shapes.robot).body
    rod = FrictionFreeRod(body, CentreLines(body), Parameters(kept["parameters"]))
    return Prepared(shapes, kept["bends"], kept["candidates"], rod, plan, settings)


def _found(
    shapes: RecordedShapes, plan: Plan, executor: Executor, report: Callable[[str], None]
) -> Mapping[str, Array]:
    """Return the rod's parameters, and bends and candidates as of `Prepared`."""
    body = load_robot(shapes.robot).body
    lines = CentreLines(body)
    judged = np.concatenate([rows_of(shapes, split, plan)[2] for split in (*SPLITS, "trajectories")])
    known = np.setdiff1d(rows_of(shapes, "printed", plan)[0], judged)
    chosen = np.random.default_rng(2).permutation(known)[:TRAINED_ON]
    rod = identified(body, lines, shapes.q_current[chosen], shapes.cloud[chosen], report)
    used = np.unique(
        np.concatenate([one for split in (*SPLITS, "trajectories") for one in rows_of(shapes, split, plan)])
    )
    report(f"centre lines of {len(used)} clouds")
    prior = surrogate(rod.bends, np.unique(shapes.q_current, axis=0))
    candidates = _candidates(prior, shapes)
    parts = [
        (rows, shapes.cloud[rows], candidates[rows]) for rows in np.split(used, np.arange(_CHUNK, len(used), _CHUNK))
    ]
    bends = np.full_like(candidates[:, 0], np.nan)
    for rows, found in executor.run(partial(_fitter, shapes.robot), parts):
        bends[rows] = found
    return {"parameters": rod.parameters.values, "bends": bends, "candidates": candidates}


def _candidates(prior: Callable[[torch.Tensor], torch.Tensor], shapes: RecordedShapes) -> Array:
    """Bends (n, c, W) where the fit of a cloud may begin."""
    present, before = shapes.q_current, shapes.q_prior
    asked = [
        gain * (present + share * np.maximum(before - present, 0.0)) for share in _TOWARDS_PRIOR for gain in _GAINS
    ]
    with torch.inference_mode():
        of_each = [prior(torch.as_tensor(one, dtype=torch.float32)).numpy() for one in asked]
    return np.stack(of_each, axis=1).astype(np.float64)


Part = tuple[NDArray[np.int64], NDArray[np.float32], Array]


def _fitter(robot: str) -> Callable[[Part], tuple[NDArray[np.int64], Array]]:
    torch.set_num_threads(1)
    lines = CentreLines(load_robot(robot).body)

    def fit(part: Part) -> tuple[NDArray[np.int64], Array]:
        rows, clouds, candidates = part
        return rows, lines.fitted_from(clouds, candidates)

    return fit
