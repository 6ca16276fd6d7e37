"""Parameters of the node `actuation` that are common to all devices."""

from softform_core import priority
from softform_core.paths import DEFAULT_ROBOT
from softform_ros.parameters import Parameter

PARAMETERS = (
    Parameter("robot", DEFAULT_ROBOT, "robot to drive: a name in `config/robots`, or the path of a description"),
    Parameter("loop_rate", 50.0, "setpoints sent a second, Hz", 5.0, 100.0),
    Parameter("realtime_priority", priority.DRIVER,
        "SCHED_FIFO priority of the driver's threads, if the system grants it; 0 for none", 0, 80),
    Parameter("command_timeout", 1.0, "the robot is made safe when no command came for this long, s", 0.1, 10.0),
    Parameter("command_age_limit", 0.5, "commands that were decided longer ago than this are rejected, s", 0.05, 5.0),
    Parameter("lease_timeout", 3.0, "a lease ends when nothing was commanded within this time after it was given, s",
        0.5, 30.0),
    Parameter("hold_timeout", 600.0,
        "the robot is made safe when the same values were commanded for this long, s: they may have been forgotten",
        10.0, 86400.0),
    Parameter("stream_timeout", 1.0, "fault when a device sent no measurements for this long, s", 0.2, 10.0),
    Parameter("settle_time", 0.5, "time over which the mean that has to be near the target is taken, s", 0.0, 10.0),
    Parameter("network", False, "whether hardware is driven though other computers can reach it (docs/security.md)"),
    Parameter("follow_timeout", 5.0, "fault when an actuator has not followed its setpoint for this long, s",
        0.5, 60.0),
)  # fmt: skip
