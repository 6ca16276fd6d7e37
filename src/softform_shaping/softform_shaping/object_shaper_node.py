"""Node `object_shaper`: parameters, the `shape_object` action, life cycle; `RemoteRig` and the loop do the work."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Event

import numpy as np
from rclpy.action.server import ServerGoalHandle
from sensor_msgs.msg import CameraInfo, Image, PointCloud2
from std_srvs.srv import Trigger

from softform_client.capture_watch import CaptureWatch
from softform_client.driver_watch import DriverWatch
from softform_client.robot_link import RobotLink
from softform_client.steering_watch import LOOK_SECONDS, SteeringWatch
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform
from softform_core.robots import Robot
from softform_core.threads import one_thread
from softform_core.units import MM_PER_M
from softform_interfaces.action import ShapeObject
from softform_interfaces.msg import DriverState, SteeringBeat
from softform_interfaces.srv import PredictObject
from softform_ros import qos
from softform_ros.action_goals import GoalLedger
from softform_ros.asked import require_just_asked
from softform_ros.checked_action import CheckedAction, in_worker
from softform_ros.conversions import points_from_cloud, seconds_from_stamp
from softform_ros.diagnostics import Health
from softform_ros.goal_client import GoalClient
from softform_ros.goal_error import GoalCode, GoalError, Outcome, in_code
from softform_ros.lifecycle import SoftformLifecycleNode, run_node
from softform_ros.parameters import Parameter, settings_from
from softform_ros.timers import create_steady_timer
from softform_shaping.arms_of import arms_of, object_of
from softform_shaping.controllers import Task
from softform_shaping.guard import StressGuard
from softform_shaping.object_topics import ObjectTopics
from softform_shaping.pictures import Pair, PictureWatch
from softform_shaping.predictions import ObjectPredictions
from softform_shaping.preparation import CONTROLLERS, prepared
from softform_shaping.remote_rig import RemoteRig, RemoteSettings, Topics
from softform_shaping.session import Iteration, Shaped, shape_object
from softform_shaping.shape_goal import ShapeGoal, goal_from_message, result_of

PARAMETERS = (
    Parameter("robot", "", "Arms, and the object that they hold: the path of a description, as `config/arms` has."),
    Parameter("iterations", 20, "Looks at the object, at most, if a goal says nothing.", 1, 1000),
    Parameter("stress_limit", 0.0,
        "Von Mises stress that the guard allows if a goal says nothing, Pa; 0: the object's `yield_stress`, if any.",
        0.0, 1e12),
    Parameter("settle_timeout", 10.0, "Time for the arms to settle, s.", 0.1, 600.0),
    Parameter("capture_timeout", 10.0, "Time to wait for a picture of the resting object, s.", 0.1, 600.0),
    Parameter("ready_timeout", 10.0, "Time within which the driver must be heard, s.", 0.1, 600.0),
    Parameter("truth_timeout", 3.0, "Time to wait for the truth where a rig tells it, s.", 0.0, 600.0),
)  # fmt: skip

_FEEDBACK = 0.05
"""Least time between two messages of feedback, s."""
_STOP_SECONDS = 5.0
_GRIPPERS_SECONDS = 0.1
"""Period of telling where the grippers are, s."""
_STATE_TIMEOUT = 1.0


class ObjectShaperNode(SoftformLifecycleNode):
    """Serves `shape_object`, one goal at a time, in a worker thread; the arms are held with brakes at every end."""

    def __init__(self) -> None:
        super().__init__("object_shaper", PARAMETERS, hardware_id="object shaper")
        self._server: CheckedAction[ShapeGoal] | None = None
        self._workers: ThreadPoolExecutor | None = None
        self._accepted: ShapeGoal | None = None
        self._goal_client: GoalClient | None = None
        self._stop_code = GoalCode.NONE
        self._ledger = GoalLedger(self)
        self.frames.listen()

    def configure(self) -> None:
        """Load arms and object, and open the action."""
        robot, name = object_of(self.parameters["robot"])
        self._robot: Robot = robot.in_namespace(self.get_namespace())
        self._described, self._model, self._visual = prepared(name)
        self._arms = arms_of(self._robot, self._described)
        self._accepted = None
        self.diagnostics.hardware_id = self._robot.name
        self._workers = ThreadPoolExecutor(max_workers=1, thread_name_prefix="shape")
        self._stopping = self.create_client(Trigger, "stop")
        self.opened.callback(self.destroy_client, self._stopping)
        self._predictions = ObjectPredictions(self._model, self._robot.base_frame, self._usual_limit)
        self.opened.callback(self.destroy_service, self.create_service(PredictObject, "predict_object", self._predict))
        self._topics = ObjectTopics(self, self._robot, self._model, self._arms)
        self.opened.callback(self._topics.close)
        self._driver = DriverWatch(self._robot, _STATE_TIMEOUT)
        self._driver.listen(self, self.opened)
        self.subscribe(DriverState, "driver_state", self._note_driver, qos.LATCHED_STATE)
        self._watch = SteeringWatch(self._end_unsteered, lambda: self._accepted is not None, lambda: True)
        self.subscribe(SteeringBeat, "steering_beat", self._on_beat, qos.STEERING_BEAT)
        for period, look in ((LOOK_SECONDS, self._look_for_client), (_GRIPPERS_SECONDS, self._show_grippers)):
            self.opened.callback(self.destroy_timer, create_steady_timer(self, period, look))
        self._server = CheckedAction(
            self, ShapeObject, "shape_object", self._ledger, self._check, self._begin, self._carry_out, self._cancel
        )

    def deactivate(self) -> None:
        """End the goal: the arms hold."""
        self._request_stop(GoalCode.NODE_DEACTIVATED)

    def cleanup(self) -> None:
        """Close the action."""
        self._request_stop(GoalCode.NODE_DEACTIVATED)
        if self._workers is not None:
            self._workers.shutdown(wait=True)
            self._workers = None
        if self._server is not None:
            self._server.close()
            self._server = None

    def health(self) -> Health:
        """Return the outcome of the last goal, and reason of the last rejection."""
        values = {"active": self.is_active, "shaping": self._accepted is not None, **self._ledger.values()}
        return self._ledger.health(values)

    @property
    def _usual_limit(self) -> float:
        """Von Mises stress that the guard allows if a goal says nothing, Pa; infinite for none."""
        return float(self.parameters["stress_limit"] or self._described.yield_stress or np.inf)

    def _request_stop(self, code: GoalCode) -> None:
        if self._accepted is not None and self._stop_code is GoalCode.NONE:
            self._stop_code = code

    def _check(self, message: ShapeObject.Goal) -> ShapeGoal:
        if self._accepted is not None:
            raise GoalError(
                GoalCode.INVALID_GOAL, "The arms shape the object already.", "Wait until that is done, or cancel it."
            )
        with in_code(GoalCode.DRIVER_NOT_READY):
            require_just_asked(message.asked, self, "The goal")
        nodes = len(self._model.rest_nodes)
        return goal_from_message(message, nodes, self.parameters["iterations"], self._usual_limit)

    def _begin(self, goal: ShapeGoal, handle: ServerGoalHandle) -> None:
        client = handle.request.asked.client
        self._accepted, self._stop_code = goal, GoalCode.NONE
        self._goal_client = GoalClient(self, "shape_object", client)

    def _predict(self, request: PredictObject.Request, response: PredictObject.Response) -> PredictObject.Response:
        """Predict a target in the executor's thread; the model is that of the goals, whose worker rests meanwhile."""
        if self._accepted is not None:
            response.message = "The arms shape the object. Wait until that is done, or cancel it."
            return response
        try:
            with one_thread():
                return self._predictions.predict(request, response)
        except SoftformError as error:
            response.message = str(error)
            return response

    def _note_driver(self, message: DriverState) -> None:
        self._driver.note_driver(message)

    def _show_grippers(self) -> None:
        self._topics.show_grippers(self._driver.values)

    def _on_beat(self, message: SteeringBeat) -> None:
        try:
            self._watch.note(message.sender, message.dead_man, message.of_goal)
        except SoftformError as error:
            self.get_logger().warning(f"a beat was rejected: {error}", throttle_duration_sec=5.0)

    def _end_unsteered(self, reason: str) -> bool:
        """End a goal of somebody who said by beats that they are there, and is not any more."""
        is_shaping = self._accepted is not None
        if is_shaping:
            self.get_logger().warning(f"{reason} Shaping ends")
        self._request_stop(GoalCode.CANCELLED)
        return is_shaping

    def _look_for_client(self) -> None:
        """End a goal whose client is gone, or silent where it promised beats."""
        self._watch.look()
        if self._accepted is not None and self._goal_client is not None and self._goal_client.is_gone():
            self.get_logger().warning("the client of the goal is gone: shaping ends")
            self._request_stop(GoalCode.CANCELLED)

    def _cancel(self, handle: ServerGoalHandle) -> None:
        self._request_stop(GoalCode.CANCELLED)

    async def _carry_out(self, goal: ShapeGoal, handle: ServerGoalHandle) -> tuple[Outcome, str, ShapeObject.Result]:
        assert self._workers is not None
        self.get_logger().info(f"shaping '{self._described.name}' by '{goal.controller}'")
        try:
            shaped = await in_worker(self._workers, lambda: self._shape(goal, handle))
        finally:
            self._accepted = None
        outcome, result = result_of(shaped)
        summary = f"{result.ended} after {result.iterations} looks"
        return outcome, f"{summary}; {MM_PER_M * result.reported_rms:.2f} mm reported", result

    def _shape(self, goal: ShapeGoal, handle: ServerGoalHandle) -> Shaped:
        """Do what a goal asks, in the worker's thread.

        Raises:
            GoalError: If it cannot be begun.
        """
        assert self._goal_client is not None
        self._goal_client.require(lambda: self._stop_code is not GoalCode.NONE)
        with one_thread(), ExitStack() as opened:
            task = Task(self._model, self._visual, self._target(goal))
            controller = CONTROLLERS[goal.controller](task, 0)
            link = opened.enter_context(RobotLink(self._robot, self, self.frames, handle.request.asked.epoch))
            feedback = _Feedback(handle)
            self._topics.show_target(task.target)

            def note(iteration: Iteration) -> None:
                feedback.note(iteration)
                self._topics.show(iteration.estimate.nodes, iteration.estimate.shape)

            rig = RemoteRig(
                self._robot, self._arms, link, self._listen(opened), StressGuard(self._model, goal.stress_limit),
                lambda: self._stop_driver(link), lambda: self._stop_code, self._settings(), feedback.say,
            )  # fmt: skip
            with in_code(GoalCode.CAPTURE_INVALID):  # the first look; later ones end the loop in order
                return shape_object(controller, rig, goal.iterations, goal.stress_limit, note)

    def _target(self, goal: ShapeGoal) -> Array:
        if goal.nodes is not None:
            return goal.nodes
        assert goal.poses is not None
        with in_code(GoalCode.INVALID_TARGET):
            return self._model.shape(goal.poses).nodes

    def _settings(self) -> RemoteSettings:
        return settings_from(RemoteSettings, self.parameters, tolerance=self._robot.actuator_tolerances.arrive)

    def _listen(self, opened: ExitStack) -> Topics:
        """Hear the camera, and the truth where there is one, until `opened` is closed."""
        pictures = PictureWatch()
        truth: CaptureWatch[Array] = CaptureWatch()

        def take_truth(message: PointCloud2) -> None:
            truth.note(points_from_cloud(message), seconds_from_stamp(message.header.stamp))

        for subscription in (
            self.create_subscription(CameraInfo, "camera/color/camera_info", pictures.take_info, qos.CAMERA_INPUT),
            self.create_subscription(Image, "camera/color/image_raw", pictures.taker("colour"), qos.CAMERA_INPUT),
            self.create_subscription(
                Image, "camera/aligned_depth_to_color/image_raw", pictures.taker("depth"), qos.CAMERA_INPUT
            ),
            self.create_subscription(PointCloud2, "rig/true_object", take_truth, qos.TRUE_SURFACE),
        ):
            opened.callback(self.destroy_subscription, subscription)
        return Topics(pictures, self._place, truth, lambda: self.count_publishers("rig/true_object") > 0)

    def _place(self, pair: Pair) -> RigidTransform:
        header = pair.colour.header
        return self.frames.listen().lookup(self._robot.base_frame, header.frame_id, seconds_from_stamp(header.stamp))

    def _stop_driver(self, link: RobotLink) -> None:
        """Have the arms brake at once, and the driver latched until somebody has looked."""
        link.let_go()
        answered = Event()
        future = self._stopping.call_async(Trigger.Request())
        future.add_done_callback(lambda done: answered.set())
        is_answered = answered.wait(_STOP_SECONDS)
        said = str(future.result().message) if is_answered and future.exception() is None else "no answer"
        self.get_logger().error(f"the stress guard stopped the driver: {said}")


class _Feedback:
    """Feedback of a goal, at most one message each `_FEEDBACK` s."""

    def __init__(self, handle: ServerGoalHandle) -> None:
        self._handle, self._told_at, self._iteration = handle, -np.inf, 1
        self._last: Iteration | None = None

    def note(self, iteration: Iteration) -> None:
        """Take a look at the object."""
        self._last = iteration
        self._iteration += 1

    def say(self, stage: str, poses: Array) -> None:
        """Tell what is done now, and what the last look found."""
        if time.monotonic() - self._told_at < _FEEDBACK:
            return
        self._told_at, last = time.monotonic(), self._last
        known = (np.nan, np.nan, np.nan) if last is None else (last.estimate.rms, last.true_rms, last.stress)
        self._handle.publish_feedback(
            ShapeObject.Feedback(
                stage=stage,
                iteration=self._iteration,
                reported_rms=float(known[0] / MM_PER_M),
                true_rms=float(known[1] / MM_PER_M),
                stress=float(known[2]),
                gripper_poses=poses.tolist(),
            )
        )


def main() -> None:
    """Run the node until SIGINT or SIGTERM."""
    run_node(ObjectShaperNode)


if __name__ == "__main__":
    main()
