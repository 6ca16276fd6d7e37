"""Model files of a tip's networks; named as those of robots with a surface, so that a folder holds a robot's models."""

from pathlib import Path

from softform_core.networks.model_files import ModelError, ModelFiles
from softform_core.networks.saved_network import SavedNetwork
from softform_core.networks.tip_card import TipKinematicsCard, TipSimToRealCard
from softform_core.robots import Robot

TIP_KINEMATICS = ModelFiles(
    kind="tip-kinematics",
    card_type=TipKinematicsCard,
    weights_file="forward_kinematics.pt",
    card_file="forward_kinematics.json",
    page_file="README.md",
    command="softform train fk",
)

TIP_SIM_TO_REAL = ModelFiles(
    kind="tip sim-to-real",
    card_type=TipSimToRealCard,
    weights_file="sim_to_real.pt",
    card_file="sim_to_real.json",
    page_file="sim_to_real.md",
    command="softform train s2r",
)


def load_tip_kinematics(robot: Robot, folder: Path) -> tuple[SavedNetwork, TipKinematicsCard]:
    """N_fk and N_J (`networks.TipKinematics`) with their card.

    Raises:
        ModelError: If the model is missing, corrupt, of another schema, or made for another robot.
    """
    return TIP_KINEMATICS.load(folder, robot)


def load_tip_sim_to_real(
    robot: Robot, folder: Path, kinematics: TipKinematicsCard
) -> tuple[SavedNetwork, TipSimToRealCard]:
    """N_s2r (`networks.TipNetwork`) with its card.

    Raises:
        ModelError: If the model is missing, corrupt, made for another robot, or trained with another N_fk.
    """
    network, card = TIP_SIM_TO_REAL.load(folder, robot)
    if card.forward_kinematics.weights_sha256 != kinematics.weights_sha256:
        raise ModelError(
            f"The sim-to-real model in {folder} was trained with another N_fk "
            f"({card.forward_kinematics.weights_sha256[:12]}) than the one in use ({kinematics.weights_sha256[:12]}).",
            TIP_SIM_TO_REAL.train_again(robot),
        )
    return network, card
