"""Parameters of the node `shape_predictor`."""

from softform_ros.parameters import MODEL_PARAMETERS, Parameter

PARAMETERS = (
    *MODEL_PARAMETERS,
    Parameter("surface_points", 1000, "points of `predicted_cloud`", 100, 100000),
    Parameter("rate", 10.0, "most predictions a second, Hz", 0.1, 50.0),
    Parameter("state_timeout", 2.0, "values silent for this long are reported in the diagnostics, s", 0.1, 60.0),
)
