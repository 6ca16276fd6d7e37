"""What sim-to-real training gives back, from scans and from markers alike."""

from dataclasses import dataclass

from softform_core.kinematics.rbf_warp import SimToReal
from softform_core.networks.sim_to_real import Confidence, ShapeInput


@dataclass(frozen=True)
class FrameFlag:
    """Something that people should know of a frame.

    Attributes:
        frame: Its number.
        reason: What it is.
    """

    frame: int
    reason: str


@dataclass(frozen=True)
class TrainedSimToReal:
    """A trained sim-to-real transfer.

    Attributes:
        sim_to_real: The mean of the ensemble, for the pipelines of kinematics.
        members: Each member; their spread tells how sure the prediction is.
        confidence: N_conf of each member; empty if it was learned from markers.
        shape_input: How control points enter N_conf.
        validation_mm: Mean distance of captured points to the predicted surface in each member's validation frames.
        best_epochs: Epoch of each member's weights.
        seconds: Time spent, interrupted runs included.
        spread_factor: See `training.uncertainty`.
        spread_floor_mm: See `training.uncertainty`.
        flags: Frames that are explained far worse than the others, or whose prediction folds.
    """

    sim_to_real: SimToReal
    members: list[SimToReal]
    confidence: list[Confidence]
    shape_input: ShapeInput
    validation_mm: list[float]
    best_epochs: list[int]
    seconds: float
    spread_factor: float
    spread_floor_mm: float
    flags: tuple[FrameFlag, ...] = ()
