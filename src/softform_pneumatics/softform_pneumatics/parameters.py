"""Parameters of the node `pneumatics`."""

from softform_core import priority
from softform_pneumatics.boards.detection import AUTO, BOARDS
from softform_ros.parameters import Parameter

PARAMETERS = (
    Parameter("robot", "membrane", "robot to drive: a name in `config/robots`, or the path of a description"),
    Parameter("port", "/dev/ttyUSB0", "device of the board; the virtual rig makes a link to its own"),
    Parameter("board", AUTO, "what is on the port (see docs/boards.md); `auto` finds out", choices=BOARDS),
    Parameter("state_folder", "", "folder of latch and offsets; empty for `pneumatics` in the folder of runs"),
    Parameter("loop_rate", 50.0, "setpoints sent a second, Hz", minimum=5.0, maximum=100.0),
    Parameter(
        "realtime_priority",
        priority.DRIVER,
        "SCHED_FIFO priority of the driver's threads, if the system grants it; 0 for none",
        0,
        80,
    ),
    Parameter("command_timeout", 1.0, "the robot is vented when no command came for this long, s", 0.1, 10.0),
    Parameter("stream_timeout", 1.0, "fault when the board sent no pressures for this long, s", 0.2, 10.0),
    Parameter("settle_time", 0.5, "time over which that mean is taken, s", 0.0, 10.0),
    Parameter("follow_timeout", 5.0, "fault when a chamber has not followed its setpoint for this long, s", 0.5, 60.0),
    Parameter(
        "plant",
        "auto",
        "`auto`: leaks and blockages by `config/plant.yaml` on an OpenPneu; `none`: not at all",
        choices=("auto", "none"),
    ),
    Parameter("chamber_volume", 1.0, "volume of a chamber and its tube, in those of the identified plant", 0.05, 50.0),
    Parameter("response_timeout", 1.5, "time over which the balance of air is taken, s", 0.5, 10.0),
    Parameter("offset_limit", 500.0, "a sensor further off at rest than this is rejected, Pa", 0.0, 5000.0),
)
