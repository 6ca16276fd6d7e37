"""Two arms with an object between them, as a kind of body: what the driver and the rig know of a robot of joints."""

from typing import ClassVar, Literal

import numpy as np

from softform_core.arrays import Array
from softform_core.robots.body import Body, Outline

__all__ = ["GRIPPER_FRAMES", "JOINTS", "OBJECT", "TwoArmsBody"]

JOINTS = 6
"""Of each arm."""
GRIPPER_FRAMES = "left", "right"
"""Names of both grippers' frames, which TF knows while `object_shaper` runs."""
OBJECT = "object"
"""Name of what they hold, as an output of `predicted_topology`."""


class TwoArmsBody(Body):
    """Two arms that hold an object; frames are both grippers' centres, and `tip`, the middle between them.

    Attributes:
        object: Name in `config/objects`, or path of a description; the arms stand beyond its ends.
    """

    physics: ClassVar[str] = "softform_shaping.arm_pair"

    kind: Literal["two_arms"]
    object: str

    @property
    def inputs(self) -> list[str]:
        """The joints, from each base on."""
        return [f"{side}_{joint + 1}" for side in ("left", "right") for joint in range(JOINTS)]

    @property
    def size(self) -> float:
        """About the reach of an arm, m."""
        return 1.0

    @property
    def held(self) -> Body:
        """The object's own."""
        from softform_shaping.objects import load_object  # the driver has no use for what it loads

        return load_object(self.object).body

    @property
    def box(self) -> tuple[Array, Array]:
        """Where the grippers may be, m."""
        return np.full(3, -1.5), np.full(3, 1.5)

    @property
    def frames(self) -> dict[str, int]:
        """The middle, and both grippers."""
        return {"tip": 3, "left": 3, "right": 3}

    def outlines(self) -> list[Outline]:
        """The joints in two rows."""
        return [
            Outline(side, "ellipse", 0.1 * joint, 0.0, 0.05, 0.05)
            for side in ("left", "right")
            for joint in range(JOINTS)
        ]
