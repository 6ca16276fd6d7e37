"""Parameters of the node `motion_planner`."""

from softform_core.planning.planner_settings import ALGORITHMS
from softform_ik.goals.reach_limit import REACH_PARAMETER
from softform_ros.parameters import MODEL_PARAMETERS, Parameter

PARAMETERS = (
    *MODEL_PARAMETERS,
    REACH_PARAMETER,
    Parameter(
        "surface_points", 1681, "points of the surface; what the triangles between them cut off is kept", 400, 10000
    ),
    Parameter("planner", "rrt_connect", "algorithm: the first path, smoothed, or RRT*", choices=ALGORITHMS),
    Parameter("seed", 1, "of the planner's samples", 1, 2_000_000_000),
    Parameter("max_time", 30.0, "time for planning when the goal does not say, s", 0.1, 600.0),
    Parameter("improve_time", 5.0, "time in which RRT* goes on improving its first path, s", 0.0, 600.0),
    Parameter("goal_starts", 6, "starts from which solutions of a target shape are looked for", 1, 1000),
    Parameter("goal_time", 2.0, "time for each of them, s", 0.01, 60.0),
    Parameter("waypoint_spacing", 0.001, "furthest way of any surface point between waypoints, m", 0.0001, 0.05),
    Parameter("max_target_age", 60.0, "targets and obstacles stamped longer ago than this are rejected, s", 0.1, 1e6),
    Parameter("state_timeout", 1.0, "values measured longer ago than this are not taken as start, s", 0.1, 10.0),
    Parameter("feedback_rate", 10.0, "most feedback messages a second, Hz", 1.0, 20.0),
)
