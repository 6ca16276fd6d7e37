"""A skin that is bound without further words rides on the points that the predictor has without further parameters."""

from softform_core.cli.skin import skin
from softform_inference.shape_predictor_node import PARAMETERS


def test_a_skin_is_bound_to_as_many_points_as_are_predicted():
    samples = next(option for option in skin.params if option.name == "samples")
    points = next(row for row in PARAMETERS if row.name == "surface_points")
    assert samples.default == points.default
