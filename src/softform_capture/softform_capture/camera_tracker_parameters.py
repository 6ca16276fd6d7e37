"""Parameters of the camera tracker node; its page in the docs is made from this table."""

from softform_capture.camera_tracker.code_sheet import RULER_LENGTH, SHEETS
from softform_ros.parameters import Parameter

PARAMETERS = (
    Parameter("robot", "planar_fingers", "Robot that wears the marker: a name in `config/robots`, or a path."),
    Parameter("source", "0",
        "Camera's index, path of a video, pattern of images (`f/%04d.png`), or `topic:NAME` of images."),
    Parameter("marker", "tip", "Name of the marker in `captured_markers`."),
    Parameter("hue", 0.0, "The marker's hue, degrees: red 0, yellow 60, green 120, blue 240.", 0.0, 360.0),
    Parameter("hue_tolerance", 15.0, "Largest difference of hue, degrees.", 1.0, 90.0),
    Parameter("least_saturation", 0.5, "Of the marker, 0 grey to 1.", 0.0, 1.0),
    Parameter("least_value", 0.2, "Of the marker, 0 black to 1.", 0.0, 1.0),
    Parameter("diameter", 0.012, "Of the marker, m.", 0.001, 0.2),
    Parameter("sheet", "A4", "Which sheet of codes was printed.", choices=tuple(SHEETS)),
    Parameter("ruler_length", RULER_LENGTH, "Length of the sheet's ruler as measured on paper, m.", 0.1, 0.3),
    Parameter("sheet_pose", [0.0, 0.0, 0.0],
        "Where the sheet's cross lies in the robot's plane and where its x axis points: x, y (m), yaw (rad)."),
    Parameter("marker_height", 0.0, "Height of the marker above the sheet, m; other than 0 needs the lens.", -0.5, 0.5),
    Parameter("camera_calibration", "", "ROS camera calibration of the lens (.yaml); empty if it draws straight."),
    Parameter("hold_codes", 5.0, "How long the camera is trusted to stand still while codes are hidden, s.",
        0.0, 3600.0),
    Parameter("least_rate", 10.0, "Below so many images a second the node warns, Hz.", 0.1, 1000.0),
)  # fmt: skip
