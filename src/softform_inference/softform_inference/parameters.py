"""Parameters of the node `shape_predictor`."""

from softform_ros.parameters import Parameter

PARAMETERS = (
    Parameter("robot", "membrane", "robot whose shape to predict: a name in `config/robots`, or a description's path"),
    Parameter("model", "", "folder of the trained N_fk; empty for the robot's own in `models`"),
    Parameter(
        "sim_to_real",
        "auto",
        "sim-to-real model: `auto` for the robot's own in `models` if there is one, `none`, or a model's folder",
    ),
    Parameter("frame", "base_link", "frame of the predictions"),
    Parameter("surface_points", 1000, "points of `predicted_cloud`", 100, 100000),
    Parameter("rate", 10.0, "most predictions a second, Hz", 0.1, 50.0),
    Parameter("state_timeout", 2.0, "pressures silent for this long are reported in the diagnostics, s", 0.1, 60.0),
)
