"""The skin that a robot without a surface has by its description: the outside of its body, on its body's bones."""

from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_core.surface.skin import Skin
from softform_core.surface.skinning import on_bones


def has_body_skin(robot: Robot) -> bool:
    """Return whether a robot has no surface, and a body that is simulated and tells its outside."""
    return not robot.surfaces and robot.body.is_simulated and robot.body.shell() is not None


def body_skin(robot: Robot) -> Skin:
    """Return the skin of a robot that has one by its description; that of a description is made once.

    Raises:
        SoftformError: If it has none.
    """
    fingerprint, shell = robot.fingerprint(), robot.body.shell()
    if shell is None:
        raise SoftformError(f"'{robot.name}' tells no outside of its body.", "Bind a skin: ./softform skin FILE.")
    if fingerprint not in _made:
        body, (vertices, triangles) = robot.body.simulator(), shell
        anchors, _ = on_bones(body.bones(body.rest[None])[0], vertices)
        card = {"robot": robot.name, "robot_fingerprint": fingerprint, "bones": 0}
        _made[fingerprint] = Skin(vertices, triangles, anchors, card)
    return _made[fingerprint]


_made: dict[str, Skin] = {}
