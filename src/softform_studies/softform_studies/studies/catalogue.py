"""The studies: the trainings of each figure of paper 000, and what each of them learns from."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, TypeVar

from matplotlib.figure import Figure
from tqdm import tqdm

from softform_core.robots import Robot
from softform_core.training.marker_learning import MARKERS
from softform_core.training.recipe import DEFAULT, PAPER, Recipe
from softform_rig.reality import Reality
from softform_studies.sim_to_real.direct_learning import AS_PRINTED, DirectRecipe

Method = Literal[
    "simulation_only",
    "sim_to_real",
    "fixed_confidence",
    "static_correspondences",
    "static_visible",
    "direct_learning",
    "markers",
    "direct_simulation",
]
"""`static_visible` leaves holes out of the static correspondences; `direct_simulation` is `sim_to_real` whose input
shapes come from the simulator instead of N_fk (Fig. 16)."""


@dataclass(frozen=True)
class Run:
    """One point of a study.

    Attributes:
        series: Curve or histogram of the run.
        x: Value along the axis; 0 where the study has none.
        scanner: Fields of the reality's scanner that differ.
        missing: Share of missing markers; for markers only.
        simulator: Kind of the body whose simulator it learns from, in a study by several; else empty.
    """

    series: str
    x: float
    method: Method
    frames: int
    recipe: Recipe
    points: int = 1000
    scanner: Mapping[str, float] = field(default_factory=dict)
    missing: float = 0.02
    direct: DirectRecipe = AS_PRINTED
    simulator: str = ""

    def settings(self) -> dict[str, Any]:
        """Return whatever decides its result beside N_fk; its place in a plot does not."""
        values = asdict(self)
        del values["series"], values["x"], values["simulator"]
        return values


T = TypeVar("T")

OURS, DIRECT, ONE, STATIC = "sim-to-real", "direct learning", "w = 1", "static correspondences"
BEFORE = "simulation only"


@dataclass(frozen=True)
class Scale:
    """Size of a study.

    Attributes:
        is_quick: Whether it only shows that everything runs; its figures mean nothing.
        full_frames: Captured frames of a run of a full study that does not vary them.
        full_points: Points of a scan, likewise.
        hole_radius: Radius of the holes in scans, where the study varies their number, m.
    """

    is_quick: bool = False
    full_frames: int = 40
    full_points: int = 1000
    hole_radius: float = 0.06

    @classmethod
    def of(cls, robot: Robot, is_quick: bool = False) -> Self:
        """Return the paper's scale (Table II) for an arm of silicone, which has fewer frames of fewer points."""
        return cls(is_quick, 30, 400, 0.03) if robot.body.kind == "solid" else cls(is_quick)

    def pick(self, full: T, quick: T) -> T:
        """Return one of two, by size."""
        return quick if self.is_quick else full

    @property
    def frames(self) -> int:
        """Captured frames of a run, where the study does not vary them."""
        return self.pick(self.full_frames, 6)

    @property
    def held_out(self) -> int:
        """Actuations to judge at."""
        return self.pick(20, 2)

    @property
    def points(self) -> int:
        """Points of a scan, where the study does not vary them."""
        return self.pick(self.full_points, 200)

    def shrunk(self, recipe: Recipe) -> Recipe:
        """Return a recipe as it is, or a very short form of it."""
        if not self.is_quick:
            return recipe
        return replace(recipe, epochs=2, patience=2, members=1, kernels=min(recipe.kernels, 16), surface_points=225)

    def run(self, series: str, x: float, method: Method, recipe: Recipe = DEFAULT, **changes: Any) -> Run:
        """Return a run of this size; `changes` are fields of `Run`."""
        values: dict[str, Any] = {"frames": self.frames, "points": self.points, **changes}
        return Run(series=series, x=x, method=method, recipe=self.shrunk(recipe), **values)


def frames(scale: Scale) -> list[Run]:
    """Fig. 11: ours and direct learning, by the number of frames."""
    ours = scale.pick((10, 20, 40, 100, 200, 400), (5, 6))
    steps = scale.pick(AS_PRINTED.steps, 50)
    direct = scale.pick((10, 20, 40, 100, 200, 400, 800), (5, 8))
    return [scale.run(OURS, n, "sim_to_real", frames=n) for n in ours] + [
        scale.run(DIRECT, n, "direct_learning", frames=n, direct=replace(AS_PRINTED, steps=steps)) for n in direct
    ]


def points(scale: Scale) -> list[Run]:
    """Fig. 13: by the number of points of a scan, beside 34 markers with known correspondences."""
    counts = scale.pick((100, 200, 500, 1000, 2000, 4000), (150, 300))
    return [scale.run(OURS, n, "sim_to_real", points=n) for n in counts] + [
        scale.run("34 markers", 34, "markers", MARKERS)
    ]


def kernels(scale: Scale) -> list[Run]:
    """Fig. 14: by the number of kernels, with the time for 1e5 warps."""
    counts = scale.pick((9, 25, 49, 100, 196, 324), (4, 9))
    return [scale.run(OURS, n, "sim_to_real", replace(DEFAULT, kernels=n)) for n in counts]


def neurons(scale: Scale) -> list[Run]:
    """Fig. 9b: by the number of neurons of N_rbf in two hidden layers."""
    widths = scale.pick((2, 4, 8, 16, 24, 64, 128), (2, 4))
    return [scale.run(OURS, 2 * n, "sim_to_real", replace(DEFAULT, hidden=(n, n))) for n in widths]


def geometric(scale: Scale) -> list[Run]:
    """Fig. 15: with and without the loss of geometric regularisation, in the paper's recipe and in ours."""
    found = [scale.run(BEFORE, 0, "simulation_only")]
    for recipe in (PAPER, DEFAULT):
        off = replace(recipe, name=f"{recipe.name}-no-gr", geometric_weight=0.0)
        found.append(scale.run(f"{recipe.name}, with G.R.", 0, "sim_to_real", recipe))
        found.append(scale.run(f"{recipe.name}, without G.R.", 0, "sim_to_real", off))
    return found


def surrogate(scale: Scale) -> list[Run]:
    """Fig. 16: input shapes from N_fk, as in training, and from the simulator itself."""
    return [
        scale.run(BEFORE, 0, "simulation_only"),
        scale.run("shapes from N_fk", 0, "sim_to_real"),
        scale.run("shapes from the simulator", 0, "direct_simulation"),
    ]


def missing(scale: Scale) -> list[Run]:
    """Fig. 12 and Sec. V-C2: by the share of the surface that scans miss, in few large holes."""
    holes = scale.pick((0.0, 1.0, 2.0, 3.5, 5.0, 6.0), (0.0, 3.0))
    methods: tuple[tuple[str, Method], ...] = (
        (OURS, "sim_to_real"),
        (ONE, "fixed_confidence"),
        (STATIC, "static_correspondences"),
        (f"{STATIC}, holes left out", "static_visible"),
    )
    return [
        scale.run(series, count, method, scanner={"holes": count, "hole_radius": scale.hole_radius})
        for count in holes
        for series, method in methods
    ]


BY_TWO_SIMULATORS = ("geometric",)
"""Studies that learn from the second model of a body, too, where it has one."""

STUDIES: dict[str, Callable[[Scale], list[Run]]] = {
    study.__name__: study for study in (frames, points, kernels, neurons, geometric, surrogate, missing)
}


@dataclass(frozen=True)
class Setting:
    """Inputs of a study.

    Attributes:
        robot: The robot; its N_fk must be trained.
        reality: Reality of the robot.
        scale: Full, or quick for a look at the form.
        seed: Seed of all that is drawn.
        folder: Folder of the study's files, and of what it goes on with.
        progress: Show progress on standard error.
    """

    robot: Robot
    reality: Reality
    scale: Scale
    seed: int
    folder: Path
    progress: bool

    def each(self, named: Sequence[tuple[str, T]], what: str, unit: str) -> Iterator[T]:
        """Yield cells of a grid one after the other, with a bar that names the one that is being done."""
        with tqdm(named, what, unit=unit, disable=not self.progress) as bar:
            for name, cell in bar:
                bar.set_postfix_str(name)
                yield cell


class Outcome(NamedTuple):
    """Outputs of a study.

    Attributes:
        entries: JSON-ready lines of the table, each with a `series` and its place `x` in it.
        figure: The picture, without its title.
        judged: What the study is judged by, for the caption.
    """

    entries: list[dict[str, Any]]
    figure: Figure
    judged: str
