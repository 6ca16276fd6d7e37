"""Parameters of the scanner node; its page in the docs is made from this table."""

from softform_core.shapes.read import UNITS
from softform_ros.parameters import Parameter

PARAMETERS = (
    Parameter("robot", "membrane", "Robot that is scanned: a name in `config/robots`, or the path of a description."),
    Parameter("watch_folder", "", "Folder where the scanner's software writes PLY, OBJ or STL exports."),
    Parameter("unit", "mm", "Unit of the exports' coordinates.", choices=UNITS),
    Parameter(
        "registration",
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0],
        "Pose of the scanner's frame in the robot's: x, y, z (m), qx, qy, qz, qw.",
    ),
    Parameter("frame_id", "base_link", "Frame of the robot, written into the clouds."),
    Parameter("include_existing", False, "Whether exports that lie in the folder at activation are read too."),
    Parameter("poll_period", 0.2, "Time between two looks into the folder, s.", minimum=0.02, maximum=10.0),
    Parameter("crop", True, "Whether points outside a box around the robot are dropped."),
    Parameter("crop_margin", 0.02, "Room around the robot within the box, m.", minimum=0.0, maximum=1.0),
    Parameter("remove_outliers", True, "Whether points that belong to no surface are dropped."),
    Parameter("max_points", 50_000, "A larger scan is thinned to this many points.", minimum=1_000, maximum=2_000_000),
    Parameter("stale_after", 10.0, "Without a scan for this long the node warns, s.", minimum=0.1, maximum=86_400.0),
)
