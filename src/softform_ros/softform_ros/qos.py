"""Every QoS profile of the stack, named once."""

from rclpy.duration import Duration
from rclpy.qos import DurabilityPolicy, HistoryPolicy, LivelinessPolicy, QoSProfile, ReliabilityPolicy


def profile(depth: int, reliable: bool = True, latched: bool = False) -> QoSProfile:
    """Return a profile that keeps the last `depth` messages."""
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=depth,
        reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
    )


ACTUATOR_COMMAND = profile(depth=1)
ACTUATOR_COMMAND_LOG = profile(depth=1000)
"""Receives every command, where the driver receives the newest."""
ACTUATOR_STATE = profile(depth=10)
ACTUATOR_STATE_READER = profile(depth=10, reliable=False)
CAPTURED_CLOUD = profile(depth=5)
CAPTURED_MARKERS = profile(depth=5, reliable=False)
CAMERA_INPUT = profile(depth=1, reliable=False)
"""Receives from camera drivers of any reliability; only the newest image or cloud counts."""
PREDICTED_SURFACE = profile(depth=1)
TARGET_SHAPE = profile(depth=1, latched=True)
TARGET_READER = profile(depth=1)
"""Receives targets, latched or not; earlier ones are not wanted."""
TARGET_READER_AT_BEST_EFFORT = profile(depth=1, reliable=False)
SERVO_STATE = profile(depth=10)
STEERING_BEAT = profile(depth=10)  # of several senders
LATCHED_STATE = profile(depth=1, latched=True)
TRUE_SURFACE = profile(depth=1)
FAULT_EVENTS = profile(depth=100)
DIAGNOSTICS = profile(depth=10)
TF = profile(depth=100)
TF_STATIC = profile(depth=1, latched=True)
TF_STATIC_READER = profile(depth=100, latched=True)
"""Receives the last message of each publisher."""
ATTENDANCE = profile(depth=1)
ATTENDANCE.liveliness = LivelinessPolicy.AUTOMATIC
ATTENDANCE.liveliness_lease_duration = Duration(seconds=3)
"""Profile for publishers that send nothing: their end, however it comes, is noticed after the lease."""
