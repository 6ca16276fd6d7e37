"""What pages are told of a robot's description."""

import logging

from softform_console.protocol import Actuator, Output, RobotInfo
from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_core.shapes.skin_store import load_skin, skin_names
from softform_core.surface.skin import Skin

OBJECT = "object"
"""Name of an object that arms hold, as `predicted_topology` has it."""


def skin_of(robot: Robot) -> tuple[str, Skin] | None:
    """Return the newest skin of a robot, by name; None without one that can be used, of which the log says why."""
    for name in skin_names(robot)[:1]:
        try:
            return name, load_skin(robot, name)
        except SoftformError as error:
            logging.getLogger(__name__).warning("the skin '%s' is not shown: %s", name, error)
    return None


def outputs_of(robot: Robot) -> list[Output]:
    """Return what the robot can be asked for: its skin, its patches, then its frames; without a surface its skin last.

    Of arms that hold an object that is the object, picked as a skin is.

    The models in use may not know a skin that rides on a body's elements; then the page is not told of its places.
    """
    if robot.body.held is not None:
        return [Output(name=OBJECT, kind="skin", dimensions=3)]
    found = skin_of(robot)
    skins = [] if found is None else [Output(name=found[0], kind="skin", dimensions=3)]
    patches = [Output(name=surface.patch, kind="patch", dimensions=3) for surface in robot.surfaces]
    dimensions = 3 if robot.surfaces else robot.tip_dimensions
    frames = [Output(name=name, kind="frame", dimensions=dimensions) for name in robot.frames]
    return [*skins, *patches, *frames] if robot.surfaces else [*frames, *skins]


def info_of(robot: Robot, index: int = 0) -> RobotInfo:
    """Return what a page is told of a robot."""
    each = zip(
        robot.actuators,
        robot.actuator_units,
        robot.actuator_min.tolist(),
        robot.actuator_max.tolist(),
        robot.safe.tolist(),
        robot.slew_rate.tolist(),
        strict=True,
    )
    held = robot.body.held
    return RobotInfo(
        index=index,
        name=robot.name,
        title=robot.title,
        frame=robot.base_frame,
        body=robot.model_dump(mode="json", include={"body"})["body"]["kind"],
        size=float((held or robot.body).size),
        actuators=[
            Actuator(name=name, unit=unit, low=low, high=high, safe=safe, slew=slew)
            for name, unit, low, high, safe, slew in each
        ],
        outputs=outputs_of(robot),
        has_surface=bool(robot.surfaces),
        holds=held is not None,
    )
