"""Every QoS profile of the stack, named once."""

from rclpy.duration import Duration
from rclpy.qos import DurabilityPolicy, HistoryPolicy, LivelinessPolicy, QoSProfile, ReliabilityPolicy


def _profile(depth: int, reliable: bool = True, latched: bool = False) -> QoSProfile:
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=depth,
        reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
    )


ACTUATOR_COMMAND = _profile(depth=1)
ACTUATOR_COMMAND_LOG = _profile(depth=1000)
"""Receives every command, where the driver receives the newest."""
ACTUATOR_STATE = _profile(depth=10)
ACTUATOR_STATE_READER = _profile(depth=10, reliable=False)
CAPTURED_CLOUD = _profile(depth=5)
CAPTURED_MARKERS = _profile(depth=5, reliable=False)
CAMERA_INPUT = _profile(depth=1, reliable=False)
"""Receives from cameras' drivers of any reliability; of images and clouds only the newest counts."""
PREDICTED_SURFACE = _profile(depth=1)
TARGET_SHAPE = _profile(depth=1, latched=True)
TARGET_READER = _profile(depth=1)
"""Receives targets, latched or not; earlier ones are not wanted."""
SERVO_STATE = _profile(depth=10)
LATCHED_STATE = _profile(depth=1, latched=True)
TRUE_SURFACE = _profile(depth=1)
FAULT_EVENTS = _profile(depth=100)
DIAGNOSTICS = _profile(depth=10)
TF = _profile(depth=100)
TF_STATIC = _profile(depth=1, latched=True)
TF_STATIC_READER = _profile(depth=100, latched=True)
"""Receives the last message of each publisher."""
ATTENDANCE = _profile(depth=1)
ATTENDANCE.liveliness = LivelinessPolicy.AUTOMATIC
ATTENDANCE.liveliness_lease_duration = Duration(seconds=3)
"""Nothing is sent with it: its publisher's end, however it comes, is noticed after the lease."""
