"""What pages are told of a robot's description."""

from softform_console.protocol import Actuator, Output, RobotInfo
from softform_core.robots import Robot


def outputs_of(robot: Robot) -> list[Output]:
    """Return what the robot can be asked for: its patches, then its frames."""
    patches = [Output(name=surface.patch, kind="patch", dimensions=3) for surface in robot.surfaces]
    dimensions = 3 if robot.surfaces else robot.tip_dimensions
    return [*patches, *(Output(name=name, kind="frame", dimensions=dimensions) for name in robot.frames)]


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
    return RobotInfo(
        index=index,
        name=robot.name,
        title=robot.title,
        frame=robot.base_frame,
        body=robot.model_dump(mode="json", include={"body"})["body"]["kind"],
        size=float(robot.body.size),
        actuators=[
            Actuator(name=name, unit=unit, low=low, high=high, safe=safe, slew=slew)
            for name, unit, low, high, safe, slew in each
        ],
        outputs=outputs_of(robot),
        has_surface=bool(robot.surfaces),
    )
