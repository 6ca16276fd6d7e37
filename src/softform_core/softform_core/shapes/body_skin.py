"""The skin that a robot without a surface has by its description: the outside of its body, on its body's bones."""

from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_core.surface.skin import Skin
from softform_core.surface.skinning import on_bones

_made: dict[str, Skin | None] = {}
"""By fingerprint: streams ask for it with each target."""


def has_body_skin(robot: Robot) -> bool:
    """Return whether a robot has no surface, and a body that is simulated and tells its outside."""
    return _skin_of(robot) is not None


def body_skin(robot: Robot) -> Skin:
    """Return the skin of a robot that has one by its description.

    Raises:
        SoftformError: If it has none.
    """
    skin = _skin_of(robot)
    if skin is None:
        raise SoftformError(f"'{robot.name}' tells no outside of its body.", "Bind a skin: ./softform skin FILE.")
    return skin


def _skin_of(robot: Robot) -> Skin | None:
    if robot.surfaces or not robot.body.is_simulated:
        return None
    fingerprint = robot.fingerprint()
    if fingerprint not in _made:
        _made[fingerprint] = _bound(robot, fingerprint)
    return _made[fingerprint]


def _bound(robot: Robot, fingerprint: str) -> Skin | None:
    shell = robot.body.shell()
    if shell is None:
        return None
    body, (vertices, triangles) = robot.body.simulator(), shell
    anchors, _ = on_bones(body.bones(body.rest[None])[0], vertices)
    return Skin(vertices, triangles, anchors, {"robot": robot.name, "robot_fingerprint": fingerprint, "bones": 0})
