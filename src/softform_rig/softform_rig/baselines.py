"""The paper's baselines (paper 000, Sec. V-C), learned from the same frames as ours and judged alike."""

from dataclasses import dataclass, replace

from softform_core.networks.layers import MlpWeights
from softform_core.training.direct_learning import AS_PRINTED, DirectRecipe, train_direct
from softform_core.training.frames import Frames
from softform_core.training.sim_to_real import train_sim_to_real
from softform_core.training.sim_to_real_recipes import Recipe
from softform_rig.judge import Errors, Judge


@dataclass(frozen=True)
class Baseline:
    """Errors at the held-out actuations, and seconds of training."""

    errors: Errors
    seconds: float

    def figures(self, judge: Judge) -> dict[str, float]:
        """What `Judge.figures` says, with the time."""
        return {**judge.figures(self.errors), "train_s": round(self.seconds, 1)}


def direct_learning(
    judge: Judge,
    forward_kinematics: MlpWeights,
    frames: Frames,
    seed: int,
    recipe: DirectRecipe = AS_PRINTED,
    progress: bool = False,
) -> Baseline:
    """Eqs. 18-20: actuation to 200 points, then RBF-based deformation."""
    grid = judge.grid
    trained = train_direct(
        forward_kinematics, frames, recipe, seed, grid.rows, grid.cols, grid.degree, progress=progress
    )
    predicted = trained.points(judge.held_out.actuation, judge.uv)
    return Baseline(judge.errors(predicted), trained.seconds)


def fixed_confidence(
    judge: Judge, forward_kinematics: MlpWeights, frames: Frames, recipe: Recipe, seed: int, progress: bool = False
) -> Baseline:
    """Ours with w_c = 1 everywhere."""
    grid = judge.grid
    trained = train_sim_to_real(
        forward_kinematics, frames, replace(recipe, fixed_confidence=True), seed, grid.rows, grid.cols, grid.degree,
        progress=progress,
    )  # fmt: skip
    return Baseline(judge.errors(judge.predicted(trained.sim_to_real)), trained.seconds)
