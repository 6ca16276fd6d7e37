"""The only place where units change.

SI at every ROS and file boundary; millimetres inside networks, losses and kinematics; kilopascal on the board's wire.
"""

from typing import Literal

MM_PER_M = 1000.0
PA_PER_KPA = 1000.0
NANOSECONDS_PER_SECOND = 1_000_000_000

AnyUnit = Literal["m", "mm", "cm", "in"]
PER_METRE: dict[AnyUnit, float] = {"m": 1.0, "mm": MM_PER_M, "cm": 100.0, "in": 1.0 / 0.0254}
"""Units that files of shapes may be in, and how many of each a metre has."""
