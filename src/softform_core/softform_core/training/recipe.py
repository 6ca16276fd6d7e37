"""Recipes of training: common settings, and those of sim-to-real training, the paper's printed ones and ours.

docs/notes/sim-to-real-as-printed.md tells what was tried.
"""

from dataclasses import dataclass, replace
from typing import Literal

from softform_core.forward.rbf_warp import KERNEL_WIDTH

__all__ = ["DEFAULT", "PAPER", "RECIPES", "Recipe"]


@dataclass(frozen=True)
class TrainingRecipe:
    """Length and step sizes of a network's training.

    Attributes:
        name: Name in logs and cards.
        epochs: Most passes over the training data.
        patience: Training stops after so many epochs without a better validation error.
        learning_rate: Learning rate of the optimiser; the initial one if it falls.
        batch_size: Samples a step.
    """

    name: str
    epochs: int
    patience: int
    learning_rate: float
    batch_size: int


@dataclass(frozen=True)
class Recipe(TrainingRecipe):
    """Settings of the training of N_rbf and N_conf, by default the printed ones; epochs are passes over the frames.

    Attributes:
        weight_decay: Weight decay of AdamW, whose learning rate falls to zero along a cosine.
        refresh: Epochs between validations (with scans: searches for nearest neighbours, too).
        members: Number of members of the ensemble.
        folds: Number of parts of the frames; each member is trained without one of them.
        keeps_best: Whether a member ends with the weights that explain this part best, not with the last.
        kernels: N, a square number; centers on an even grid of parameters.
        kernel_width: c of Eq. 2, 1/mm^2; None for that of `kernel_reach`.
        surface_points: Samples of the predicted surface.
        components: Principal components of the control points that enter the networks, None for all control points.
        hidden: Widths of N_rbf's hidden layers.
        activation: Activation between the layers.
        smallest_direction: See `stable_directions`; None for gamma itself.
        to_plane: Distances along the mean of captured and predicted normals, instead of full ones.
        tangential: Share of the full squared distance added to them.
        mean_confidence: Eq. 8 with a mean over the points.
        outlier_spread: Captured points further than so many robust standard deviations are left out; None keeps all.
        confidence_weight: omega_cr of Eq. 12.
        normal_weight: omega_nc.
        geometric_weight: omega_gr.
        amplitude_weight: Weight of the mean squared amplitude along the stable directions.
        slide_weight: Weight of the mean squared displacement along the surface.
        rim_slide_weight: Additional weight of the same at the border of the surface.
        border_weight: Weight of the border's misfit (`training.border`).
        confidence_steps: Steps of N_conf at each refresh.
        confidence_rate: Learning rate of N_conf.
        kernel_reach: Standard deviation of the kernels over their spacing.
        confidence: w_c of Eq. 6: that of N_conf as `learned`; 1 where captured points lie around and 0 elsewhere, as
            `seen`; or 1 everywhere, as `one`, the paper's baseline.
        corrects_actuation: Whether gains and offsets of the actuation are fitted first (`training.actuation_fit`).
        prior_scale: mm, typical amplitude of N_rbf's coordinates where the robot has a displacement prior; None leaves
            the prior out.
        chosen_on: Seeds of the realities and frames on which these settings were chosen; no published figure uses them.
    """

    weight_decay: float = 0.0
    refresh: int = 1
    members: int = 1
    folds: int = 5
    keeps_best: bool = True
    kernels: int = 100
    kernel_width: float | None = KERNEL_WIDTH
    surface_points: int = 1000
    components: int | None = None
    hidden: tuple[int, ...] = (24, 24)
    activation: str = "relu"
    smallest_direction: float | None = None
    to_plane: bool = False
    tangential: float = 0.0
    mean_confidence: bool = False
    outlier_spread: float | None = None
    confidence_weight: float = 12.0
    normal_weight: float = 0.5
    geometric_weight: float = 1.5e-4
    amplitude_weight: float = 0.0
    slide_weight: float = 0.0
    rim_slide_weight: float = 0.0
    border_weight: float = 0.0
    confidence_steps: int = 5
    confidence_rate: float = 3e-3
    kernel_reach: float = 1.28
    confidence: Literal["learned", "seen", "one"] = "learned"
    corrects_actuation: bool = False
    prior_scale: float | None = None
    chosen_on: tuple[int, ...] = ()


CHOSEN_ON = (
    *(*range(4), 100, 101, 102, 111, 175, 209, *range(300, 312), *range(400, 440), *range(500, 506)),
    *(*range(600, 624), 953),
)
"""Seeds of the realities, and of the frames of `default`, on which settings of ours were chosen.

300 to 311: the correction of the actuation, and (to 306) how far a model ages; 400 to 439: the displacement prior that
ships was learned from them; 504, of the manipulator: what alike actuators share; 600 to 623: plays and creep of the
memory (`training.memory_model`).
"""

PAPER = Recipe("paper", 300, 300, 1e-3, 8)
DEFAULT = replace(
    PAPER,
    name="default",
    epochs=40,
    patience=40,
    learning_rate=1e-2,
    weight_decay=2.0,
    refresh=5,
    kernel_width=None,
    components=9,
    hidden=(64, 64),
    activation="tanh",
    smallest_direction=1e-3,
    to_plane=True,
    tangential=0.005,
    mean_confidence=True,
    outlier_spread=4.0,
    confidence_weight=1.2,
    confidence_steps=40,
    geometric_weight=1e-6,
    amplitude_weight=1.0,
    slide_weight=0.03,
    rim_slide_weight=0.1,
    border_weight=0.03,
    members=4,
    keeps_best=False,
    confidence="seen",
    corrects_actuation=True,
    prior_scale=0.2,
    chosen_on=CHOSEN_ON,
)
RECIPES = {recipe.name: recipe for recipe in (DEFAULT, PAPER)}
