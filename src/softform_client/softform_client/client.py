"""A plain Python object that commands the robot, for planners and notebooks that need not know ROS.

from softform_core.shapes.read import read_shape
from softform_client.client import Mode, ShapeClient

with ShapeClient() as robot:
    result = robot.reach(read_shape("target.ply", unit="mm"), Mode.PLAN_MOVE_AND_VERIFY, on_feedback=print)
    print(result.actuators.value, result.measured.mean_error)

docs/client.md has an example of everything that it can do.
"""

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Self, TypeAlias

from builtin_interfaces.msg import Time

from softform_client.client_inputs import as_mode, as_path, as_shape, as_shape_or_values, as_values
from softform_client.client_stream import Target, streamed
from softform_client.follow_messages import ActuatorPath, FollowGoal, Path, PointPath, ShapePath
from softform_client.follow_messages import goal_to_message as follow_message
from softform_client.holding_arms import HoldingArms
from softform_client.reach_goal import Mode, ReachGoal
from softform_client.reach_messages import goal_to_message as reach_message
from softform_client.reach_messages import target_to_message
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.robots import Robot, load_robot
from softform_core.shapes.features import FeaturePoints
from softform_core.shapes.shape import Shape
from softform_interfaces.action import CaptureShape, FollowWaypoints, PlanToShape, ReachShape
from softform_interfaces.msg import ServoState
from softform_ros.action_caller import ActionCaller, NotConnectedError
from softform_ros.action_goals import NO_ERROR
from softform_ros.asked import asked_now
from softform_ros.service_calls import asked_parameters

# The constants of a result are the error codes of its action.
Code = ReachShape.Result
FollowCode = FollowWaypoints.Result
CaptureCode = CaptureShape.Result
PlanCode = PlanToShape.Result

ShapeLike: TypeAlias = Shape | Array | Any
"""A shape, points (N, 3) m, or a mesh with `vertices` and `faces` in m."""

_NUMBERS = itertools.count(1)

__all__ = [
    "CaptureCode",
    "Code",
    "FollowCode",
    "GoalFailedError",
    "Mode",
    "NotConnectedError",
    "PlanCode",
    "PointPath",
    "ActuatorPath",
    "ShapeClient",
    "ShapePath",
]


class GoalFailedError(SoftformError):
    """The goal was rejected or not reached; the message says why and what to do.

    Attributes:
        code: One of the action's error codes: what went wrong, e.g. `Code.INVALID_TARGET` or `Code.CANCELLED`.
        result: The result message, with what was found until then.
    """

    def __init__(self, message: str, code: int, result: Any) -> None:
        super().__init__(message)
        self.code, self.result = code, result


class ShapeClient:
    """Commands one robot; usable from any thread, one goal at a time.

    Its connections to the actions are opened when they are wanted first; that of `reach_shape` is open from `connect`.

    Args:
        namespace: ROS namespace of the stack.
        frame: Frame of targets and paths, any that TF knows; empty for that of the robot.
        timeout: Time to wait for a node, s.
        permit: Called right before each goal is sent, which is not sent if this raises: of a goal that is cancelled
            while the connection that it needs is opened.
    """

    def __init__(
        self,
        namespace: str = "/softform",
        frame: str = "",
        timeout: float = 10.0,
        permit: Callable[[], None] = lambda: None,
    ) -> None:
        self._frame, self._timeout, self._permit = frame, timeout, permit
        number = next(_NUMBERS)

        def caller(action: Any, name: str, server: str) -> ActionCaller:
            # a goal ends with its client, which is known by the name of its node
            own = f"{name}_client_{os.getpid()}_{number}"
            return ActionCaller(action, name, server, own, namespace, timeout)

        self._reaching = caller(ReachShape, "reach_shape", "inverse_kinematics")
        self._following = caller(FollowWaypoints, "follow_waypoints", "inverse_kinematics")
        self._capturing = caller(CaptureShape, "capture_shape", "inverse_kinematics")
        self._planning = caller(PlanToShape, "plan_to_shape", "motion_planner")
        self._callers = self._reaching, self._following, self._capturing, self._planning

    def connect(self) -> Self:
        """Open the connection and wait for the node `inverse_kinematics`.

        Raises:
            NotConnectedError: If it does not answer in time.
            SoftformError: If its robot's description is not on this machine; then name the frame.
        """
        self._reaching.connect()
        if not self._frame:
            self._frame = self.robot().base_frame
        return self

    def connect_moving(self) -> Self:
        """Open the connections of all that moves the robot, as `connect` does, so that no goal waits for its own."""
        self.connect()
        self._following.connect()
        return self

    def robot(self) -> Robot:
        """Return the robot that is served.

        Raises:
            NotConnectedError: If `connect` was not called, or the node does not answer.
            SoftformError: If its description is not on this machine.
        """
        node, server = self._reaching.node, "inverse_kinematics"
        values = asked_parameters(node, server, ["robot"], self._timeout)
        if values is None:
            raise NotConnectedError(f"The {server} node does not say which robot it serves.", "Name the frame.")
        return load_robot(values["robot"]).in_namespace(node.get_namespace())

    @property
    def epoch(self) -> int:
        """The driver's epoch now; it ends when the robot is made safe, at fault or reset. 0 if no driver says it."""
        return self._reaching.asked().epoch

    @property
    def is_served(self) -> bool:
        """Whether the node is there."""
        return self._reaching.is_served

    def close(self) -> None:
        """Close the connection; a goal that moves the robot ends within seconds, where nobody else listens to it."""
        for caller in self._callers:
            caller.close()

    def __enter__(self) -> Self:
        return self.connect()

    def __exit__(self, *error: object) -> None:
        self.close()

    def cancel(self) -> bool:
        """Cancel the goal that is waited for, which then raises `GoalFailedError` with the best so far.

        Returns:
            Whether there was one.
        """
        cancelled = [caller.cancel() for caller in self._callers]
        return any(cancelled)

    def reach(
        self,
        target: ShapeLike | None = None,
        mode: Mode | str = Mode.PLAN_ONLY,
        *,
        features: FeaturePoints | None = None,
        partial: bool = False,
        fix_pose: bool = True,
        seed: Array | None = None,
        starts: int = 0,
        preferred: Array | None = None,
        preference: float = 0.0,
        tolerance: float = 0.0,
        max_time: float = 0.0,
        max_rounds: int = 0,
        model: str = "",
        without_sim_to_real: bool = False,
        accept_unreachable: bool = False,
        epoch: int = 0,
        held_by: HoldingArms | None = None,
        on_feedback: Callable[[ReachShape.Feedback], None] | None = None,
    ) -> ReachShape.Result:
        """Bring the robot to a target shape and wait until it is there.

        Args:
            target: m, in the robot's frame: a shape, points (N, 3), or a mesh with vertices and faces; None: feature
                points alone.
            mode: Plan only, move too, verify by a capture as well, or correct by captures until it fits; or its name,
                such as 'closed-loop'.
            features: Feature points wanted beside the target, or instead of it.
            partial: The target shows only a part of the shape: distances to what it lacks do not count.
            fix_pose: False: the target may be re-posed to fit the robot (R, t of Eq. 15).
            seed: (k,) actuator values where the solver starts; a closed loop brings the robot there first.
            starts: Number of starts of a global search; 0: the node's default.
            preferred: (k,) actuator values; of all solutions the nearest is taken.
            preference: mm^2 of squared error worth the whole range of an actuation; 0: the node's default.
            tolerance: m, mean error at which the solver may stop; 0: the node's default.
            max_time: s for each solve; 0: the node's default.
            max_rounds: Closed loop: corrections after the open-loop round at most; 0: the node's default.
            model: Kind of model to plan with, such as `learned` or `fem`; empty: the one in use.
            without_sim_to_real: Plan with the simulated shape alone, to compare.
            accept_unreachable: Take the nearest shape even if it misses the target widely.
            epoch: `epoch` of the time at which this was meant: it is rejected if that is over; 0: now.
            held_by: Arms that hold the robot's base: target and feature points are in their frame then, and the goal
                is sent, and goes on, only while they hold still with brakes.
            on_feedback: Called with each feedback message, from the client's thread.

        Returns:
            The result message: actuator values, pose, predicted and measured errors (SI units).

        Raises:
            NotConnectedError: If `connect` was not called, or the node disappears.
            GoalFailedError: If the goal ended with an error code: bad target, cancelled, preempted, driver fault ...
            SoftformError: If what is given cannot be meant, as a path instead of a shape; or if the arms that hold the
                robot do not, or did not until its end: it was cancelled then, and stays where it is.
        """
        shape = None if target is None else as_shape(target)
        held = None
        if held_by is not None:
            self._require_own_frame()
            held, shape, features = held_by.handed_over(shape, features)
        goal = ReachGoal(
            shape,
            as_mode(mode),
            fix_pose,
            max_rounds,
            features,
            partial,
            seed=as_values(seed, "seed"),
            tolerance=tolerance,
            max_time=max_time,
            starts=starts,
            preferred=as_values(preferred, "preferred"),
            preference=preference,
            model=model,
            without_sim_to_real=without_sim_to_real,
            accept_unreachable=accept_unreachable,
        )

        def pack(stamp: Time) -> ReachShape.Goal:
            return reach_message(goal, self._frame, stamp)

        if held_by is None or held is None or not goal.mode.moves:
            return self._call(self._reaching, pack, on_feedback, epoch)
        with held_by.holding(held, self._reaching.node, self._reaching.cancel) as hold:
            try:
                result, code = self._call(self._reaching, pack, on_feedback, epoch, hold.require), Code.CANCELLED
            except GoalFailedError as failure:
                if not hold.reason:
                    raise
                result, code = failure.result, failure.code
            if reason := hold.look():
                raise GoalFailedError(reason, code, result)
            return result

    def capture(
        self,
        target: ShapeLike | None = None,
        *,
        via: str = "",
        captures: int = 0,
        on_feedback: Callable[[CaptureShape.Feedback], None] | None = None,
    ) -> CaptureShape.Result:
        """Capture the robot as it stands, once it stands still; moves nothing.

        Args:
            target: Shape to compare with the capture, m; None: the shape or tip predicted for the measured values.
            via: `scanner` or `mocap`; empty: the scanner for a robot with a surface, motion capture for one with a tip.
            captures: Clouds, or frames of markers, that make one capture; 0: the node's default.
            on_feedback: Called with each feedback message, from the client's thread.

        Returns:
            The result message: cloud or markers in the robot's frame, measured values, how they fit (SI units).

        Raises:
            As `reach` does; the codes are those of `CaptureCode`.
        """
        shape = None if target is None else as_shape(target)

        def pack(stamp: Time) -> CaptureShape.Goal:
            cloud, triangles = target_to_message(shape, self._frame, stamp)
            return CaptureShape.Goal(target=cloud, triangles=triangles, via=via, captures=captures)

        return self._call(self._capturing, pack, on_feedback)

    def follow(
        self,
        path: Path | Sequence[Shape],
        *,
        times: Sequence[float] | Array | None = None,
        plan_only: bool = False,
        seed: Array | None = None,
        model: str = "",
        without_sim_to_real: bool = False,
        accept_unreachable: bool = False,
        epoch: int = 0,
        on_feedback: Callable[[FollowWaypoints.Feedback], None] | None = None,
    ) -> FollowWaypoints.Result:
        """Lead the robot along a path and wait until it is at its end.

        Args:
            path: Points of a frame or of a surface point, shapes (m, robot's frame), or actuator values (robot's unit);
                a list of shapes is a path, too.
            times: (m,) s after the start at which each waypoint is due; None: as fast as the robot settles.
            plan_only: Solve, and move nothing.
            seed: (k,) actuator values where the first solve starts; None: the present ones.
            model: Kind of model to plan with, such as `learned` or `fem`; empty: the one in use.
            without_sim_to_real: Plan with the simulated robot alone, to compare.
            accept_unreachable: Take the nearest place even where it misses a waypoint widely.
            epoch: As of `reach`.
            on_feedback: Called with each feedback message, from the client's thread.

        Returns:
            The result message: actuator values, times and errors of the waypoints (SI units).

        Raises:
            As `reach` does; the codes are those of `FollowCode`.
        """
        goal = FollowGoal(
            as_path(path),
            as_values(times, "times", "waypoint"),
            plan_only,
            seed=as_values(seed, "seed"),
            model=model,
            without_sim_to_real=without_sim_to_real,
            accept_unreachable=accept_unreachable,
        )
        return self._call(self._following, lambda stamp: follow_message(goal, self._frame, stamp), on_feedback, epoch)

    def home(
        self, *, epoch: int = 0, on_feedback: Callable[[FollowWaypoints.Feedback], None] | None = None
    ) -> FollowWaypoints.Result:
        """Lead the robot there and back until what it did before cannot matter, and wait until it is at rest.

        Each degree of freedom goes alone.

        Args:
            epoch: As of `reach`.
            on_feedback: Called with each feedback message, from the client's thread.

        Returns:
            The result message, with the actuator values of the way.

        Raises:
            As `follow` does, also if no way makes the robot's past known.
        """
        goal = FollowWaypoints.Goal(kind=FollowWaypoints.Goal.HOME)
        return self._call(self._following, lambda stamp: goal, on_feedback, epoch)

    def plan(
        self,
        target: ShapeLike,
        obstacle: ShapeLike,
        *,
        clearance: float = 0.0,
        start: Array | None = None,
        max_time: float = 0.0,
        model: str = "",
        without_sim_to_real: bool = False,
        accept_unreachable: bool = False,
        on_feedback: Callable[[PlanToShape.Feedback], None] | None = None,
    ) -> PlanToShape.Result:
        """Plan a motion along which the whole surface keeps clear of an obstacle; moves nothing, see `follow`.

        Args:
            target: A shape, m, as `reach` takes it, or actuator values (k,).
            obstacle: Obstacle to keep clear of, m, as `reach` takes a shape.
            clearance: m that must stay between surface and obstacle, beside the model's uncertainty.
            start: (k,) actuator values; None: the present ones.
            max_time: s; 0: the node's default.
            model: Kind of model to plan with, such as `learned` or `fem`; empty: the one in use.
            without_sim_to_real: Plan with the simulated shape alone, to compare.
            accept_unreachable: Take the nearest shape even if it misses the target widely.
            on_feedback: Called with each feedback message, from the client's thread.

        Returns:
            The result message: actuator values and times of the motion, clearances along it (SI units).

        Raises:
            As `reach` does; the codes are those of `PlanCode`.
        """
        # Imported here: it loads the planner's libraries, which nothing else needs.
        from softform_client.plan_messages import PlanGoal
        from softform_client.plan_messages import goal_to_message as plan_message

        goal = PlanGoal(
            as_shape_or_values(target),
            as_shape(obstacle, "obstacle"),
            as_values(start, "start"),
            clearance,
            max_time=max_time,
            model=model,
            without_sim_to_real=without_sim_to_real,
            accept_unreachable=accept_unreachable,
        )
        return self._call(self._planning, lambda stamp: plan_message(goal, self._frame, stamp), on_feedback)

    def stream(self, targets: Iterable[Target], rate: float = 50.0) -> Iterator[ServoState]:
        """Let the robot follow targets while they come; it holds when they end.

        A program that is killed or frozen meanwhile is noticed after 2 s, and the robot made safe.

        Args:
            targets: Shapes (m) or feature points, or places (3,) m of a tip, in the robot's frame; each is taken when
                it is due.
            rate: Targets a second, Hz.

        Yields:
            The last state of the servo, after each target; off before it has sent one.

        Raises:
            NotConnectedError: If `connect` was not called, or no servo listens.
            SoftformError: If somebody else steers the robot, or this process stood still for longer than 2 s.
        """
        return streamed(self._reaching, targets, rate, self._frame)

    def _require_own_frame(self) -> None:
        if self._frame != (own := self.robot().base_frame):
            raise SoftformError(
                f"What is handed over comes in the robot's frame '{own}', and this client names '{self._frame}'.",
                "Name the frame of the target to HoldingArms.",
            )

    def _call(
        self,
        caller: ActionCaller,
        pack: Callable[[Any], Any],
        on_feedback: Callable[[Any], None] | None,
        epoch: int = 0,
        require: Callable[[], None] = lambda: None,
    ) -> Any:
        """Send a goal, packed with its stamp and asked for in an epoch, and wait for its end.

        Right before it is sent `require` is called; it is not, if that raises.

        Raises:
            NotConnectedError: If `connect` was not called, or the node is not there.
            GoalFailedError: If it is rejected, or was not reached.
        """
        if self._reaching.is_connected and not caller.is_connected:
            caller.connect()
        goal = pack(caller.now())
        if epoch:
            goal.asked = asked_now(caller.node, epoch)

        def permit() -> None:
            self._permit()
            require()

        result = caller.call(goal, on_feedback, permit)
        if result.error_code != NO_ERROR:
            raise GoalFailedError(result.error_msg, result.error_code, result)
        return result
