"""Parameters of the scanner node; its page in the docs is made from this table."""

from softform_capture.scanner.workspace import WORKSPACES
from softform_core.paths import DEFAULT_ROBOT
from softform_core.shapes.read import UNITS
from softform_ros.parameters import Parameter

PARAMETERS = (
    Parameter("robot", DEFAULT_ROBOT,
        "Robot that is scanned: a name in `config/robots`, or the path of a description."),
    Parameter("source", "folder", "Where scans come from: exports in a folder, or depth cameras.",
        choices=("folder", "cameras")),
    Parameter("watch_folder", "", "Folder where the scanner's software writes PLY, OBJ, STL, PCD or XYZ exports."),
    Parameter("unit", "mm", "Unit of the exports' coordinates.", choices=UNITS),
    Parameter("registration", [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0],
        "Pose of the scanner's frame in the robot's: x, y, z (m), qx, qy, qz, qw."),
    Parameter("include_existing", False, "Whether exports that lie in the folder at activation are read too."),
    Parameter("poll_period", 0.2, "Time between two looks into the folder, s.", 0.02, 10.0),
    Parameter("camera_calibration", "",
        "Cameras: file of `./softform calibrate-cameras`; empty for `data/ROBOT/cameras.yaml`."),
    Parameter("max_calibration_residual", 0.003, "Cameras: a worse calibration is rejected, m.", 1e-5, 0.1),
    Parameter("max_calibration_age", 30.0, "Cameras: an older calibration is rejected, days.", 0.01, 3650.0),
    Parameter("merge_period", 0.5, "Cameras: time between two merged clouds at least, s.", 0.02, 60.0),
    Parameter("max_stamp_gap", 0.1, "Cameras: largest time between clouds that are merged, s.", 0.001, 10.0),
    Parameter("max_disagreement", 0.005, "Cameras: clouds that lie further apart are rejected, m.", 1e-4, 0.1),
    Parameter("crop", True, "Whether points outside the robot's workspace are dropped."),
    Parameter("workspace", "box", "Its form: close around a membrane's shapes, or the hemisphere of paper 004.",
        choices=WORKSPACES),
    Parameter("crop_margin", 0.02, "Room around the robot within the workspace, m.", 0.0, 1.0),
    Parameter("spacing", 0.0, "One point stays in every cube of this side, m; 0 keeps all.", 0.0, 0.1),
    Parameter("remove_outliers", True, "Whether points that belong to no surface are dropped."),
    Parameter("max_points", 50_000, "A larger scan is thinned to this many points.", 1_000, 2_000_000),
    Parameter("normals", False, "Whether the clouds have normals, upwards, as fields normal_x, normal_y, normal_z."),
    Parameter("least_coverage", 0.5, "Scans that show less of the robot than this share make the node warn.", 0.0, 1.0),
    Parameter("stale_after", 10.0, "Without a scan for this long the node warns, s.", 0.1, 86_400.0),
)  # fmt: skip
