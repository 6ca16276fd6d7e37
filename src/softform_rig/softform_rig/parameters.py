"""Parameters of the rig node; its page in the docs is made from this table."""

from typing import get_args

from softform_core.paths import DEFAULT_ROBOT
from softform_rig.rig_settings import BoardName
from softform_ros.parameters import Parameter

REGISTRATION = [0.0, -0.22, 0.52, 0.978599773253286, 0.0, 0.0, -0.205772893716877]

PARAMETERS = (
    Parameter("robot", DEFAULT_ROBOT, "Robot on the rig: a name in config/robots or a path."),
    Parameter("reality", "default",
        "How the robot differs from the simulator: a name in config/realities/KIND-OF-BODY, or a path."),
    Parameter("seed", 0, "Seed of sensor and scanner noise.", 0, 2**31 - 1),
    Parameter("board", "openpneu_a", "Board that is emulated, as docs/boards.md names them.",
        choices=get_args(BoardName)),
    Parameter("firmware", "regulated",
        "An openpneu_a: all ten channels regulated, or like the published snapshot (pairs, two regulated).",
        choices=("regulated", "shipped")),
    Parameter("port_link", "",
        "Symbolic link to the board's terminal (of several `port_link`_DEVICE); by default `openpneu` in runs."),
    Parameter("scan_folder", "", "Folder of the scanner's exports; by default `scans` in the folder of runs."),
    Parameter("scan_period", 1.0, "Time between scans while the shape changes, s.", 0.2, 2.0),
    Parameter("mocap_rate", 0.0,
        "Frames of motion capture a second on `mocap/markers`; 0 for none. Fewer come while the shape changes fast.",
        0.0, 100.0),
    Parameter("faults", [""],
        "What goes wrong by itself: KIND[=VALUE][@START][+DURATION], s since the rig is active; see `inject-faults`."),
    Parameter("autostart", False, "Whether it configures and activates itself; without a bring-up manager."),
    Parameter("wire_log", "",
        "File that gets a line for each request on the board's wire (of several `wire_log`_DEVICE); empty: none."),
    Parameter("keep_scans", 100, "Exports to keep; older ones are deleted.", 1, 100000),
    Parameter("registration", REGISTRATION,
        "Pose of the scanner in the robot's frame: x, y, z (m), qx, qy, qz, qw. The scanner node needs the same."),
)  # fmt: skip
