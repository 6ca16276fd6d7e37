"""Where the body on the rig comes from, said where it is not the physics that the robot's models have learned."""

from softform_core.errors import SoftformError
from softform_core.networks.store import FORWARD_KINEMATICS, TIP_KINEMATICS
from softform_core.paths import models_of
from softform_core.robots import Robot
from softform_core.simulation.simulated_body import BodyOfData
from softform_rig.reality import Reality


def origin(robot: Robot, reality: Reality) -> str:
    """A sentence on what the body does between data, or on models that have learned another body; else empty.

    Raises:
        SoftformError: If the body is imported, and its data cannot be read.
    """
    if not robot.body.is_simulated:
        body = robot.body.real_simulator(reality.body)
        assert isinstance(body, BodyOfData)
        return f"The body on the rig is no physics: it lies {body.told}."
    folder = models_of(robot.name)
    model = FORWARD_KINEMATICS if robot.surfaces else TIP_KINEMATICS
    try:
        is_imported = model.read_card(folder, robot).data.is_imported
    except SoftformError:  # without a model nothing contradicts it
        return ""
    if not is_imported:
        return ""
    return (
        f"The rig simulates '{robot.name}' by its described physics, but the kinematics in {folder} were learned from "
        "imported data: what is measured here tells nothing of them. Describe the body as kind imported for a rig that "
        "moves as your data do."
    )
