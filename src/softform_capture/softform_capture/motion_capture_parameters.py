"""Parameters of the motion-capture node; its page in the docs is made from this table."""

from softform_capture.motion_capture.sources import NETWORK, TOPICS
from softform_core.paths import DEFAULT_ROBOT
from softform_ros.parameters import Parameter

PARAMETERS = (
    Parameter("robot", DEFAULT_ROBOT, "Robot that wears the markers: a name in `config/robots`, or a path."),
    Parameter("system", "marker_frame",
        "Where frames come from: a topic of `MarkerFrame`, `mocap4r2_msgs/Markers` or `PointCloud2`, or a server.",
        choices=(*TOPICS, *NETWORK)),
    Parameter("topic", "mocap/markers", "Topic of the frames, for the systems that have one."),
    Parameter("server", "", "Address of the computer on which Tracker, Nexus, Motive or QTM runs."),
    Parameter("port", 0, "Its port (NatNet: the command port); 0 for the system's own.", 0.0, 65_535.0),
    Parameter("local_address", "0.0.0.0", "NatNet: address of this machine's interface towards the server."),
    Parameter("multicast_group", "239.255.42.99", "NatNet: multicast interface of Motive; empty for unicast."),
    Parameter("data_port", 1511, "NatNet: data port, for multicast.", 1.0, 65_535.0),
    Parameter("reconnect_after", 3.0, "Without a frame for so long a server is connected to anew, s.", 0.2, 3600.0),
    Parameter("rename", [""], "Names of the system and the names to be used: `theirs=ours`, one string for each."),
    Parameter("markers", [""], "Names of the markers on the robot; empty for those of the first frame."),
    Parameter("labels", "system",
        "Who labels: the system; or `nearest`, the node: each point is the marker that was nearest to it last.",
        choices=("system", "nearest")),
    Parameter("rest_markers", "",
        "`nearest`: YAML file of places at rest, `name: [x, y, z]`, m, robot frame; empty for m01, m02, ... in rows."),
    Parameter("reach", 0.015, "`nearest`: farther from where it is expected a point is not that marker, m.",
        0.001, 0.2),
    Parameter("max_residual", 0.002,
        "Base markers further off their places than this (root mean square) align nothing, m.", 1e-5, 0.1),
    Parameter("max_speed", 2.0, "A marker that moves faster has jumped, m/s.", 0.01, 100.0),
    Parameter("max_departure", 0.03, "A marker that moves by so much more than its neighbours has jumped, m.",
        0.001, 1.0),
    Parameter("settle_time", 1.0,
        "A marker that has jumped is believed again after it was seen at its new place for so long, s.", 0.0, 3600.0),
    Parameter("max_rate", 100.0, "Frames that come sooner after the one before are passed over, Hz.", 1.0, 1000.0),
    Parameter("stale_after", 1.0, "Without a frame for this long the node reports an error, s.", 0.1, 86_400.0),
    Parameter("max_gap", 10.0, "A marker that is missing for longer is named, s.", 0.1, 86_400.0),
    Parameter("max_latency", 2.0, "Older frames mean that clocks differ: the node warns, s.", 0.01, 86_400.0),
)  # fmt: skip
