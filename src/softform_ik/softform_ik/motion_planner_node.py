"""Node `motion_planner`: parameters, models, the action `plan_to_shape`, life cycle. It commands nothing."""

from softform_client.driver_watch import DriverWatch
from softform_core.forward.robot_models import open_surface_models
from softform_core.inverse.out_of_reach import largest_deformation
from softform_core.planning.motion_plan import ALGORITHMS, MotionSettings, PlannerSettings
from softform_core.robots import load_robot
from softform_ik.goals.goal_server import unknown_past
from softform_ik.goals.reach_limit import REACH_PARAMETER
from softform_ik.plan.plan import Plan, PlanServer
from softform_ik.warm_up import warm_up
from softform_ros.action_goals import GoalLedger
from softform_ros.diagnostics import WARN, Health
from softform_ros.lifecycle import SoftformLifecycleNode, run_node
from softform_ros.node_models import open_node_models
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


class MotionPlannerNode(SoftformLifecycleNode):
    """A node of its own, so that planning takes nothing from the process that commands the robot."""

    may_use_sim_time = True

    def __init__(self) -> None:
        super().__init__("motion_planner", PARAMETERS, hardware_id="motion_planner")
        self._server: PlanServer | None = None
        self._ledger = GoalLedger(self)
        self.frames.listen()

    def configure(self) -> None:
        """Load robot and models, and open topic and action."""
        values = self.parameters
        robot = load_robot(values["robot"], "surface").in_namespace(self.get_namespace())
        robot.body.prepare()
        self.diagnostics.hardware_id = robot.name
        models = self._models = open_node_models(self, robot, open_surface_models, lambda other: warm_up(other, robot))
        warm_up(models, robot)
        self._driver = DriverWatch(robot, values["state_timeout"])
        self._driver.listen(self, self.opened)
        simulated, limits = models.simulated, (robot.actuation_min, robot.actuation_max)
        settings = MotionSettings(
            PlannerSettings(values["planner"], values["seed"], values["max_time"], values["improve_time"]),
            values["goal_starts"],
            values["goal_time"],
            values["waypoint_spacing"],
            values["max_relative_error"] * largest_deformation(simulated.points, *limits, simulated.is_solved),
        )
        plan = Plan(robot, models, settings, self._driver)
        self._server = PlanServer(self, robot, plan.run, self._ledger, unknown_past(self._driver, models))
        model_in_use = models.description()["sim-to-real"]
        self.get_logger().info(
            f"ready to plan motions of '{robot.name}' over {len(models.current.uv)} points, sim-to-real: {model_in_use}"
        )

    def deactivate(self) -> None:
        """End the goal."""
        if self._server is not None:
            self._server.end_goals()

    def cleanup(self) -> None:
        """Close topic and action."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def health(self) -> Health:
        """Return the outcome of the last goal, and reason of the last rejection."""
        values = {"active": self.is_active, **self._ledger.values(), **self._models.description()}
        if self._models.fault:
            return Health(WARN, f"sim-to-real model not in use: {self._models.fault}", values)
        return self._ledger.health(values)


def main() -> None:
    """Run the node until SIGINT or SIGTERM."""
    run_node(MotionPlannerNode)


if __name__ == "__main__":
    main()
