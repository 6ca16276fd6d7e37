"""Parameters of the node `inverse_kinematics`."""

from softform_core import priority
from softform_ik.goals.reach_limit import REACH_PARAMETER, TIP_REACH_PARAMETER
from softform_ros.parameters import MODEL_PARAMETERS, Parameter

PARAMETERS = (
    *MODEL_PARAMETERS,
    REACH_PARAMETER,
    TIP_REACH_PARAMETER,
    Parameter("surface_points", 1000, "points of the surface whose distances to the target are minimised", 100, 10000),
    Parameter("tolerance", 1e-4, "mean error at which a solve may stop when the goal does not say, m", 0.0, 0.1),
    Parameter("max_time", 5.0, "time for solving when the goal does not say, s", 0.01, 600.0),
    Parameter("max_iterations", 200, "most iterations of a solve", 1, 10000),
    Parameter("starts", 1, "starts of a global search when the goal does not say; 1: the seed's alone", 1, 1000),
    Parameter(
        "preference",
        0.01,
        "squared error worth an actuator's whole range from the preferred values when the goal gives none, mm^2",
        0.0,
        1e4,
    ),
    Parameter("max_target_age", 60.0, "targets stamped longer ago than this are rejected, s", 0.1, 1e6),
    Parameter("command_rate", 10.0, "repetitions of the command while the robot holds a shape, Hz", 2.0, 50.0),
    Parameter(
        "hold_timeout",
        600.0,
        "a shape that neither goal nor stream renews is held for this long at most, then the robot is made safe, s",
        1.0,
        86400.0,
    ),
    Parameter("state_timeout", 1.0, "values measured longer ago than this count as lost, s", 0.1, 10.0),
    Parameter("settle_timeout", 30.0, "time for the robot to settle, s", 0.5, 600.0),
    Parameter("capture_timeout", 20.0, "time to wait for each captured cloud of the settled robot, s", 0.5, 600.0),
    Parameter(
        "captures",
        1,
        "clouds of the settled robot that make one measurement: a hole in one may be seen in another",
        1,
        20,
    ),
    Parameter("max_rounds", 5, "corrections of the closed loop when the goal does not say", 1, 100),
    Parameter("gain", 1.0, "share of each measured residual that the closed loop corrects", 0.1, 1.0),
    Parameter(
        "least_improvement",
        0.005,
        "share by which the closed loop must expect to lower the mean error to go on",
        0.0,
        0.5,
    ),
    Parameter("servo_rate", 50.0, "least commands a second while targets stream in, Hz", 5.0, 200.0),
    Parameter(
        "servo_points", 400, "points of the surface whose distances to a streamed target are minimised", 100, 10000
    ),
    Parameter(
        "realtime_priority",
        priority.STREAM,
        "SCHED_FIFO priority of the servo's threads, if the system grants it; 0 for none; keep it below the driver's",
        0,
        80,
    ),
    Parameter("stale_after", 0.5, "a target that came longer ago is not followed: the robot holds, s", 0.05, 10.0),
    Parameter(
        "smoothness",
        0.0,
        "squared error that one actuator's whole range between two answers to the stream is worth, mm^2",
        0.0,
        1e4,
    ),
    Parameter(
        "path_settle_time",
        1.0,
        "least time at each waypoint of a path without times: for the body to settle, s",
        0.0,
        60.0,
    ),
    Parameter(
        "path_smoothness",
        0.01,
        "squared error that one actuator's whole range between two waypoints is worth, mm^2",
        0.0,
        1e4,
    ),
    Parameter("feedback_rate", 20.0, "most feedback messages a second, Hz", 1.0, 20.0),
)
