"""Parameters of the node `pneumatics`."""

from softform_ros.parameters import Parameter

PARAMETERS = (
    Parameter("robot", "membrane", "robot to drive: a name in `config/robots`, or the path of a description"),
    Parameter("port", "/dev/ttyUSB0", "device of the board; the virtual rig makes a link to its own"),
    Parameter("loop_rate", 20.0, "setpoints sent a second, Hz", minimum=5.0, maximum=50.0),
    Parameter("command_timeout", 1.0, "the robot is vented when no command came for this long, s", 0.1, 10.0),
    Parameter("stream_timeout", 1.0, "fault when the board sent no pressures for this long, s", 0.2, 10.0),
    Parameter(
        "settle_tolerance",
        100.0,
        "a chamber whose mean is this near to its command counts as settled, Pa",
        10.0,
        5000.0,
    ),
    Parameter("settle_time", 0.5, "time over which that mean is taken, s", 0.0, 10.0),
    Parameter("overpressure_margin", 1000.0, "fault beyond the robot's range by more than this, Pa", 0.0, 10000.0),
    Parameter("follow_tolerance", 1000.0, "a chamber further from its setpoint than this does not follow it, Pa", 50.0),
    Parameter("follow_timeout", 5.0, "fault when a chamber has not followed its setpoint for this long, s", 0.5, 60.0),
    Parameter("vent_threshold", 200.0, "the board vents a channel this far above its target, Pa", 10.0, 5000.0),
)
