"""How networks are trained: what all recipes have in common, and the settings of sim-to-real training."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TrainingRecipe:
    """How long and in which steps a network is trained.

    Attributes:
        name: For logs and cards.
        epochs: At most; passes over the training data.
        patience: Training stops after so many epochs without a better validation error.
        learning_rate: Of the optimiser; at the beginning, if it falls.
        batch_size: Samples a step.
    """

    name: str
    epochs: int
    patience: int
    learning_rate: float
    batch_size: int


@dataclass(frozen=True)
class EnsembleRecipe(TrainingRecipe):
    """How the members of an ensemble are trained; epochs are passes over the training frames.

    Attributes:
        weight_decay: Of AdamW, whose learning rate falls to zero along a cosine.
        refresh: Epochs between validations (with scans: searches for nearest neighbours, too).
        members: Of the ensemble.
        folds: Each member is stopped by one of so many parts of the frames.
    """

    weight_decay: float
    refresh: int
    members: int
    folds: int


@dataclass(frozen=True)
class Recipe(EnsembleRecipe):
    """How N_rbf and N_conf are trained.

    Attributes:
        kernels: N, a square number; centers on an even grid of parameters.
        kernel_width: c of Eq. 2, 1/mm^2.
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
        amplitude_weight: Of the mean squared amplitude along the stable directions.
        slide_weight: Of the mean squared displacement along the surface.
        rim_slide_weight: Of the same at the border of the surface, in addition.
        border_weight: Of the border's misfit (`training.border`).
        confidence_steps: Of N_conf at each refresh.
        confidence_rate: Learning rate of N_conf.
        fixed_confidence: w_c = 1, the paper's baseline.
    """

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
