"""The only place where units change.

SI at every ROS and file boundary; millimetres inside networks, losses and kinematics; kilopascal on the board's wire.
"""

MM_PER_M = 1000.0
PA_PER_KPA = 1000.0
NANOSECONDS_PER_SECOND = 1_000_000_000
