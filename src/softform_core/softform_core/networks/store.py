"""Paths and readers of a robot's models; all kinds lie in one folder, those of a tip by the same names."""

from pathlib import Path

from softform_core.networks.card import ModelCard
from softform_core.networks.model_files import ModelError, ModelFiles
from softform_core.networks.saved_network import SavedNetwork
from softform_core.networks.sim_to_real_card import SurfaceSimToRealCard
from softform_core.networks.surface_card import SurfaceKinematicsCard
from softform_core.networks.tip_card import TipKinematicsCard, TipSimToRealCard
from softform_core.paths import models_of
from softform_core.robots import Robot, load_robot

__all__ = ["FORWARD_KINEMATICS", "TIP_KINEMATICS", "load_forward_kinematics", "load_tip_sim_to_real"]

_KINEMATICS = "forward_kinematics.pt", "forward_kinematics.json", "README.md", "./softform train fk"
SIM_TO_REAL_FILES = "sim_to_real.pt", "sim_to_real.json", "sim_to_real.md", "./softform train s2r"

FORWARD_KINEMATICS = ModelFiles("forward-kinematics", SurfaceKinematicsCard, *_KINEMATICS)
TIP_KINEMATICS = ModelFiles("tip-kinematics", TipKinematicsCard, *_KINEMATICS)
"""N_fk and N_J, `networks.TipKinematics`."""
TIP_SIM_TO_REAL = ModelFiles("tip sim-to-real", TipSimToRealCard, *SIM_TO_REAL_FILES)


def load_forward_kinematics(
    robot: Robot | str, path: Path | str | None = None
) -> tuple[SavedNetwork, SurfaceKinematicsCard]:
    """Load N_fk, (n, k) -> control points (n, ..., 3) mm of all patches, and its card; default `models/<robot>`.

    Raises:
        ModelError: If the model is missing, corrupt, of another schema, or made for another robot.
    """
    robot = load_robot(robot) if isinstance(robot, str) else robot
    return FORWARD_KINEMATICS.load(models_of(robot.name) if path is None else Path(path), robot)


def load_tip_sim_to_real(robot: Robot, folder: Path, kinematics: ModelCard) -> tuple[SavedNetwork, TipSimToRealCard]:
    """Return N_s2r (`networks.TipNetwork`) with its card.

    Raises:
        ModelError: If the model is missing, corrupt, made for another robot, or trained with another N_fk.
    """
    network, card = TIP_SIM_TO_REAL.load(folder, robot)
    require_kinematics(card, kinematics, folder, TIP_SIM_TO_REAL.train_again(robot))
    return network, card


def require_kinematics(
    card: SurfaceSimToRealCard | TipSimToRealCard, kinematics: ModelCard, folder: Path, next_step: str
) -> None:
    """Reject a sim-to-real model beside another N_fk than that which it was trained with.

    Raises:
        ModelError: If it was another.
    """
    trained, used = card.forward_kinematics.weights_sha256, kinematics.weights_sha256
    if trained != used:
        raise ModelError(
            f"The sim-to-real model in {folder} was trained with another N_fk ({trained[:12]}) than the one in use "
            f"({used[:12]}).",
            next_step,
        )
