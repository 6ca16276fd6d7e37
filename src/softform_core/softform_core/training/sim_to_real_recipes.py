"""Settings of sim-to-real training: the paper's printed recipe and ours (docs/sim-to-real-as-printed.md)."""

from dataclasses import dataclass, replace

from softform_core.forward.rbf_warp import KERNEL_WIDTH


@dataclass(frozen=True)
class Schedule:
    """How long and in which steps the members of an ensemble are trained.

    Attributes:
        epochs: At most; passes over the training frames.
        patience: Training stops after so many epochs without a better validation error.
        learning_rate: Of AdamW; falls to zero along a cosine.
        weight_decay: Of AdamW.
        batch_size: Frames a step.
        refresh: Epochs between validations (with scans: searches for nearest neighbours, too).
        members: Of the ensemble.
        folds: Each member is stopped by one of so many parts of the frames.
    """

    epochs: int
    patience: int
    learning_rate: float
    weight_decay: float
    batch_size: int
    refresh: int
    members: int
    folds: int


@dataclass(frozen=True)
class Recipe(Schedule):
    """How N_rbf and N_conf are trained.

    Attributes:
        name: For logs and cards.
        kernels: N, a square number; centers on an even grid of parameters.
        kernel_width: c of Eq. 2, 1/mm^2.
        surface_points: Samples of the predicted surface.
        components: Principal components of the control points that enter the networks, None for all control points.
        hidden: Widths of N_rbf's hidden layers.
        activation: Between them.
        smallest_direction: See `stable_directions`; None for gamma itself.
        to_plane: Distances along the mean of captured and predicted normals, instead of full ones.
        tangential: Share of the full squared distance added to them.
        mean_confidence: Eq. 8 with a mean over the points.
        outlier_spread: Captured points further than so many robust standard deviations are left out; None keeps all.
        confidence_weight: omega_cr of Eq. 12.
        normal_weight: omega_nc.
        geometric_weight: omega_gr.
        amplitude_weight: Of the mean squared amplitude along the stable directions.
        slide_weight: Of the mean squared displacement along the surface.
        rim_slide_weight: Of the same at the border of the surface, in addition.
        border_weight: Of the border's misfit (`training.border`).
        confidence_steps: Of N_conf at each refresh.
        confidence_rate: Learning rate of N_conf.
        fixed_confidence: w_c = 1, the paper's baseline.
    """

    name: str
    kernels: int
    kernel_width: float
    surface_points: int
    components: int | None
    hidden: tuple[int, ...]
    activation: str
    smallest_direction: float | None
    to_plane: bool
    tangential: float
    mean_confidence: bool
    outlier_spread: float | None
    confidence_weight: float = 12.0
    normal_weight: float = 0.5
    geometric_weight: float = 1.5e-4
    amplitude_weight: float = 0.0
    slide_weight: float = 0.0
    rim_slide_weight: float = 0.0
    border_weight: float = 0.0
    confidence_steps: int = 40
    confidence_rate: float = 3e-3
    fixed_confidence: bool = False


PAPER = Recipe(
    name="paper",
    epochs=300,
    patience=300,
    learning_rate=1e-3,
    weight_decay=0.0,
    batch_size=8,
    refresh=1,
    confidence_steps=5,
    members=1,
    folds=5,
    kernels=100,
    kernel_width=KERNEL_WIDTH,
    surface_points=1000,
    components=None,
    hidden=(24, 24),
    activation="relu",
    smallest_direction=None,
    to_plane=False,
    tangential=0.0,
    mean_confidence=False,
    outlier_spread=None,
)
DEFAULT = replace(
    PAPER,
    name="default",
    epochs=80,
    patience=80,
    learning_rate=1e-2,
    weight_decay=2.0,
    refresh=5,
    kernel_width=3e-4,
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
)
RECIPES = {recipe.name: recipe for recipe in (DEFAULT, PAPER)}
