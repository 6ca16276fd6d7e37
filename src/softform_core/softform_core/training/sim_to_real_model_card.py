"""The card of a freshly trained N_s2r."""

from softform_core.forward.sim_to_real_export import SimToRealNetwork
from softform_core.forward.sim_to_real_store import SIM_TO_REAL
from softform_core.networks.card import KinematicsReference, ModelCard, surface_entries
from softform_core.networks.sim_to_real_card import FramesUsed, HeldOutErrors, SurfaceSimToRealCard, Training, Transfer
from softform_core.robots import Robot
from softform_core.training.card_identity import card_identity
from softform_core.training.trained_sim_to_real import TrainedSimToReal


def network_of(robot: Robot, trained: TrainedSimToReal) -> SimToRealNetwork:
    """What is exported of a trained transfer."""
    return SimToRealNetwork(trained.members, trained.spread_factor, trained.spread_floor_mm, robot.patches)


def make_sim_to_real_card(
    robot: Robot,
    forward_kinematics: ModelCard,
    trained: TrainedSimToReal,
    frames: FramesUsed,
    training: Training,
    errors: HeldOutErrors,
    weights: bytes,
    command: str,
) -> SurfaceSimToRealCard:
    """Describe a trained transfer.

    Args:
        robot: The robot.
        forward_kinematics: Card of the N_fk that it corrects.
        trained: Result of training.
        frames: Frames that were learned from.
        training: Settings of the training.
        errors: Errors on held-out frames.
        weights: Exported weights.
        command: Makes it again.
    """
    network, play = trained.members[0].coefficients, trained.sim_to_real.play
    ranges = robot.actuation_max - robot.actuation_min
    return SurfaceSimToRealCard(
        **card_identity(robot, weights),
        surfaces=surface_entries(robot),
        forward_kinematics=KinematicsReference(weights_sha256=forward_kinematics.weights_sha256),
        transfer=Transfer(
            members=len(trained.members),
            kernels=len(trained.sim_to_real.kernel_uv),
            kernel_width_per_mm2=trained.sim_to_real.width,
            hidden=[len(bias) for bias in network.biases[:-1]],
            activation=network.activation,
            spread_factor=trained.spread_factor,
            spread_floor_mm=trained.spread_floor_mm,
            play=0.0 if play is None else float((play.width / ranges).mean()),
        ),
        frames=frames,
        training=training,
        errors_mm=errors,
        command=command,
        weights_file=SIM_TO_REAL.weights_file,
    )
