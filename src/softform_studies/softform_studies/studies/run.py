"""One training of a study: what is learned from what, by which method."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from softform_core.training.recipe import Recipe
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
        simulator: Kind of the body whose simulator it learns from, in a study by several; else empty.
        method: Learning method.
        frames: Captured frames it learns from.
        recipe: Recipe of sim-to-real learning.
        points: Points of each scan.
        scanner: Fields of the reality's scanner that differ.
        missing: Share of missing markers; for markers only.
        direct: Recipe of direct learning.
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
        """Whatever decides its result beside N_fk; its place in a plot does not."""
        values = asdict(self)
        del values["series"], values["x"], values["simulator"]
        return values
