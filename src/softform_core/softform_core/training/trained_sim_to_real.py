"""Result of sim-to-real training, from scans and from markers alike."""

from collections.abc import Sequence
from dataclasses import dataclass

from softform_core.forward.rbf_warp import ActuationCorrection, SimToReal
from softform_core.networks.mlp_weights import mean_of
from softform_core.networks.sim_to_real import Confidence, ShapeInput
from softform_core.training.ensemble import Member, WarpProblem
from softform_core.training.warp_data import WarpData


@dataclass(frozen=True)
class FrameFlag:
    """Something that people should know of a frame, as a sentence."""

    frame: int
    reason: str


@dataclass(frozen=True)
class TrainedSimToReal:
    """A trained sim-to-real transfer.

    Attributes:
        sim_to_real: The mean of the ensemble, for the pipelines of kinematics.
        members: Each member; their spread tells how sure the prediction is.
        confidence: N_conf of each member; empty if none was learned.
        shape_input: Encoding of the control points for N_conf.
        validation_mm: Mean distance of captured points to the predicted surface in each member's validation frames.
        best_epochs: Epoch of each member's weights.
        seconds: Time spent, interrupted runs included.
        spread_factor: See `evaluation.uncertainty`.
        spread_floor_mm: See `evaluation.uncertainty`.
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


def model_of(
    members: Sequence[Member[WarpProblem]],
    data: WarpData,
    calibration: tuple[float, float],
    flags: Sequence[FrameFlag],
    confidence: Sequence[Confidence] = (),
    actuation: ActuationCorrection | None = None,
) -> TrainedSimToReal:
    """Make one model of the trained members: their mean, and their spread with its calibration.

    Args:
        members: Trained members of the ensemble.
        data: What all of them learned from.
        calibration: Factor and floor (mm) of the spread, see `evaluation.uncertainty`.
        flags: Remarks on the frames for the user.
        confidence: N_conf of each member.
        actuation: Correction under which they were learned.
    """
    nets = [member.problem.network.weights(data.shape_input) for member in members]
    return TrainedSimToReal(
        sim_to_real=SimToReal(data.kernel_uv, mean_of(nets), data.kernel_width, actuation),
        members=[SimToReal(data.kernel_uv, net, data.kernel_width, actuation) for net in nets],
        confidence=list(confidence),
        shape_input=data.shape_input,
        validation_mm=[member.error for member in members],
        best_epochs=[member.best_epoch for member in members],
        seconds=sum(member.seconds for member in members),
        spread_factor=calibration[0],
        spread_floor_mm=calibration[1],
        flags=tuple(flags),
    )
