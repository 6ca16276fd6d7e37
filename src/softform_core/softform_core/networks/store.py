"""The model file of N_fk and its card."""

from pathlib import Path

from torch.jit import ScriptModule

from softform_core.networks.model_files import ModelFiles
from softform_core.networks.surface_card import SurfaceKinematicsCard
from softform_core.paths import models_dir
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
) -> tuple[ScriptModule, SurfaceKinematicsCard]:
    """N_fk of a robot, ready to evaluate on the CPU.

    Args:
        robot: The robot or its name.
        path: Folder that holds the model; `models/<robot>` by default.

    Returns:
        The network, (n, k) Pa -> (n, rows, cols, 3) mm, and its card.

    Raises:
        ModelError: If the model is missing, corrupt, of another schema, or made for another robot.
    """
    robot = load_robot(robot) if isinstance(robot, str) else robot
    return FORWARD_KINEMATICS.load(models_dir() / robot.name if path is None else Path(path), robot)
