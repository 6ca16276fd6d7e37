"""Parameters of the motion-capture node; its page in the docs is made from this table."""

from softform_ros.parameters import Parameter

PARAMETERS = (
    Parameter("robot", "membrane", "Robot that wears the markers: a name in `config/robots`, or a path."),
    Parameter("frame_id", "base_link", "Frame of the robot, written into the frames of markers."),
    Parameter(
        "max_residual",
        0.002,
        "Base markers further off their places than this (root mean square) align nothing, m.",
        minimum=1e-5,
        maximum=0.1,
    ),
    Parameter("max_speed", 2.0, "A marker that moves faster has jumped, m/s.", minimum=0.01, maximum=100.0),
    Parameter(
        "max_departure",
        0.03,
        "A marker that moves by so much more than its neighbours has jumped, m.",
        minimum=0.001,
        maximum=1.0,
    ),
    Parameter(
        "settle_time",
        1.0,
        "A marker that has jumped is believed again after it was seen at its new place for so long, s.",
        minimum=0.0,
        maximum=3600.0,
    ),
    Parameter("stale_after", 1.0, "Without a frame for this long the node warns, s.", minimum=0.1, maximum=86_400.0),
)
