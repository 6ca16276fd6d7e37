"""The model file of N_fk and its card."""

from pathlib import Path

from softform_core.networks.model_files import ModelFiles
from softform_core.networks.saved_network import SavedNetwork
from softform_core.networks.surface_card import SurfaceKinematicsCard
from softform_core.paths import models_of
from softform_core.robots import Robot, load_robot

FORWARD_KINEMATICS = ModelFiles(
    kind="forward-kinematics",
    card_type=SurfaceKinematicsCard,
    weights_file="forward_kinematics.pt",
    card_file="forward_kinematics.json",
    page_file="README.md",
    command="softform train fk",
)


def load_forward_kinematics(
    robot: Robot | str, path: Path | str | None = None
) -> tuple[SavedNetwork, SurfaceKinematicsCard]:
    """N_fk, (n, k) -> control points (n, ..., 3) mm of all patches, and its card; by default of `models/<robot>`.

    Raises:
        ModelError: If the model is missing, corrupt, of another schema, or made for another robot.
    """
    robot = load_robot(robot) if isinstance(robot, str) else robot
    return FORWARD_KINEMATICS.load(models_of(robot.name) if path is None else Path(path), robot)
