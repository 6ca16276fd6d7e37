"""Carries out what pages ask of a robot, and says how it is."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from softform_console import protocol
from softform_console.goal_runner import GoalRunner
from softform_console.model_choice import ModelChoice
from softform_console.motions import Motions
from softform_console.object_goals import ObjectGoals
from softform_console.program_runs import ProgramRuns
from softform_console.reach_goals import begin_reaching
from softform_console.robot_info import info_of
from softform_console.robot_link import RobotLink
from softform_console.robot_view import RobotView
from softform_console.scene_frames import PREVIEW, Kind, SceneItem
from softform_console.scene_store import PREVIEWS, SceneStore
from softform_console.steering import Steering
from softform_console.target_files import TargetFiles, scene_item
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_core.shapes.shape import Shape
from softform_core.shapes.validate import check_scale

_END_SECONDS = 2.0
"""Time within which a motion ends that an obstacle was placed in the way of; then the robot is stopped, s."""

_POLL_SECONDS = 0.05

_OF_ANY = protocol.Cancel | protocol.Release | protocol.Reset
"""What is asked of arms that hold an object, too: how else they are moved nobody would look at its stress."""


class RobotDesk:
    """What pages ask of one robot.

    Args:
        robot: The robot.
        index: Its number for pages.
        view: What the stack says of it.
        steering: Moves it.
        link: The robot itself.
        goals: Carries out its goals.
        motions: Its motions.
        foresee: Shows the shape that is predicted at values (k,), or None any more.
        programs: Its programs.
        models: Its models.
        targets: Target files.
        store: What is shown.
        tell: Takes messages for all pages.
        objects: Targets of the object that it holds; None if it holds none.

    Attributes:
        info: What pages are told of it.
    """

    def __init__(
        self,
        robot: Robot,
        index: int,
        view: RobotView,
        steering: Steering,
        link: RobotLink,
        goals: GoalRunner,
        motions: Motions,
        foresee: Callable[[Array | None], None],
        programs: ProgramRuns,
        models: ModelChoice,
        targets: TargetFiles,
        store: SceneStore,
        tell: Callable[[protocol.FromServer], None],
        objects: ObjectGoals | None = None,
    ) -> None:
        self._objects = objects
        self._robot, self._index, self._view, self._steering, self._link = robot, index, view, steering, link
        self._goals, self._motions, self._foresee = goals, motions, foresee
        self._programs, self._models, self._targets = programs, models, targets
        self._store, self._tell = store, tell
        self.info = info_of(robot, index)
        self._outputs = {output.name for output in self.info.outputs}
        self._size = float(np.linalg.norm(robot.extent)) if robot.surfaces else robot.body.size
        self._ending = threading.Thread()
        self._workers = ThreadPoolExecutor(1, thread_name_prefix="preview")

    def close(self) -> None:
        """End what is at work."""
        self._workers.shutdown(wait=False, cancel_futures=True)

    def state(self) -> protocol.RobotState:
        """Return the robot's state."""
        steering, models = self._steering, self._models
        obstacles = self._motions.obstacles
        return self._view.state(self._index, steering.mode, steering.points, obstacles, models.kind, models.kinds)

    def page_lost(self) -> None:
        """End what the operator's page moved."""
        if self._steering.end():
            text = "The operator's page is gone: its motion was ended."
            self._tell(protocol.Notice(level="warning", about="", text=text))

    def handle(self, message: protocol.ToServer) -> None:
        """Do what a page asks.

        Raises:
            SoftformError: If it cannot be done.
        """
        moves = protocol.Points | protocol.Actuators | protocol.Reach | protocol.RunMotion | protocol.GoHome
        moves |= protocol.ShapeObject
        is_of_object = isinstance(message, protocol.PreviewObject | protocol.ShapeObject)
        if not isinstance(message, _OF_ANY) and is_of_object == (self._objects is None):
            raise SoftformError(
                "This robot holds no object."
                if is_of_object
                else "These arms hold an object, whose shape is asked for.",
                "Look at another robot." if is_of_object else "Lead points of it, or set poses of the grippers.",
            )
        if isinstance(message, moves) or (isinstance(message, protocol.Program) and message.run):
            self._link.check_epoch(int(message.epoch))
            if self._steering.mode == "none":
                self._link.check_alone()
        if isinstance(message, protocol.Points):
            self._steer(message)
        elif isinstance(message, protocol.Actuators):
            self._steering.set_values(self._robot.check_commands(np.asarray(message.values)))
        elif isinstance(message, protocol.Release):
            if not self._steering.end():
                self._link.let_go()
        elif isinstance(message, protocol.Preview):
            self._targets.file(message.target)
            self._workers.submit(self._preview, message)
        elif isinstance(message, protocol.Reach):
            self._reach(message)
        elif isinstance(message, protocol.Obstacles):
            if self._steering.mode == "goal" and self._motions.adds(message.obstacles):
                self._end_in_the_way()
            self._motions.place(message.obstacles)
        elif isinstance(message, protocol.PlanMotion):
            self._check_free()
            self._motions.plan(message, self._goal_of(message))
        elif isinstance(message, protocol.PlanPath):
            self._check_free()
            self._check_outputs({message.output})
            self._motions.plan_path(message)
        elif isinstance(message, protocol.RunMotion):
            self._as_goal(lambda: self._motions.run(message))
        elif isinstance(message, protocol.GoHome):
            self._as_goal(lambda: self._motions.go_home(message))
        elif isinstance(message, protocol.Foresee):
            self._foresee(None if message.values is None else self._robot.check_commands(np.asarray(message.values)))
        elif isinstance(message, protocol.PreviewObject):
            self._check_free()
            self._of_object.preview(message)
        elif isinstance(message, protocol.ShapeObject):
            self._as_goal(lambda: self._of_object.begin(message))
        elif isinstance(message, protocol.Program):
            self._program(message)
        elif isinstance(message, protocol.UseModel):
            if self._steering.mode == "none":
                self._link.check_alone()  # another model moves what somebody else steers
            self._models.choose(message.model)
            self._motions.outdate("Another model is used")
        elif isinstance(message, protocol.Cancel):
            self._link.cancel_goal()
        elif isinstance(message, protocol.Reset):
            self._link.reset(int(message.epoch))

    @property
    def _of_object(self) -> ObjectGoals:
        assert self._objects is not None
        return self._objects

    def _steer(self, message: protocol.Points) -> None:
        self._check_outputs({point.output for point in message.points})
        if message.points:
            check_scale(np.array([point.target for point in message.points]), "Point", self._robot.name, self._size)
        self._steering.set_points(message.points, message.optimise)

    def _check_outputs(self, names: set[str]) -> None:
        if unknown := names - self._outputs:
            known = ", ".join(sorted(self._outputs))
            raise SoftformError(f"The robot has no '{min(unknown)}'.", f"It has {known}.")

    def _end_in_the_way(self) -> None:
        """End the goal or program that moves the robot: nobody has looked whether it keeps clear of what was placed."""
        if self._ending.is_alive():
            return  # it is being dragged
        moving = [one for one in (self._goals.thread, self._programs.thread) if one is not None]
        self._link.cancel_goal()
        text = "An obstacle was placed while the robot moved: the motion was ended, and the robot holds where it is."
        self._tell(protocol.Notice(level="warning", about="obstacles", text=text))
        self._ending = threading.Thread(target=self._see_it_end, args=(moving,), name="obstacle", daemon=True)
        self._ending.start()

    def _see_it_end(self, moving: Sequence[threading.Thread]) -> None:
        """Stop the robot if what was cancelled goes on, as where the node that moves it does not answer."""
        until = time.monotonic() + _END_SECONDS
        while any(one.is_alive() for one in moving):
            if time.monotonic() > until:
                text = f"The motion did not end within {_END_SECONDS:g} s: the robot is stopped."
                self._tell(protocol.Notice(level="error", about="obstacles", text=text))
                self._link.call_stop()
                until = time.monotonic() + _END_SECONDS
            time.sleep(_POLL_SECONDS)

    def _goal_of(self, message: protocol.PlanMotion) -> Callable[[], Shape | Array]:
        """Return what makes the goal of a motion, outside the server's thread."""
        target, pose = message.target, message.pose
        if message.values is not None and target is None:
            values = self._robot.check_commands(np.asarray(message.values))
            return lambda: values
        if target is not None and message.values is None:
            self._targets.file(target)
            return lambda: self._targets.posed(target, pose)
        raise SoftformError("A motion has one goal.", "Give a target or values.")

    def _preview(self, message: protocol.Preview) -> None:
        try:
            shape = self._targets.posed(message.target, message.pose)
            beside, text = self._targets.look(message.target, shape, message.pose)
            self._store.put(scene_item(shape, message.robot, time.time(), is_preview=True), PREVIEWS)
            told = protocol.Previewed(
                robot=message.robot, target=message.target, pose=message.pose, beside=beside, text=text
            )
            self._tell(told)
        except Exception as error:
            self._tell(protocol.Notice(level="error", about="preview", text=str(error)))

    def _program(self, message: protocol.Program) -> None:
        if not message.run:
            self._workers.submit(self._programs.read, message)
            return
        self._as_goal(lambda: self._programs.begin(message))

    def _as_goal(self, begin: Callable[[], None]) -> None:
        """Leave the robot to a goal that begins.

        Raises:
            SoftformError: If another one moves it, or this one cannot begin.
        """
        self._check_free()
        self._steering.begin_goal()
        try:
            begin()
        except SoftformError:
            self._steering.end_goal()
            raise
        if self._steering.mode != "goal":  # its page fell silent meanwhile, or it has ended
            self._link.cancel_goal()

    def _check_free(self) -> None:
        if self._goals.is_running or self._programs.is_running:
            raise SoftformError("A goal or program is under way.", "Wait for its end, or cancel it.")

    def _reach(self, message: protocol.Reach) -> None:
        self._targets.file(message.target)

        def target() -> Shape:
            shape = self._targets.posed(message.target, message.pose)
            self._workers.submit(self._show_target, message.robot, shape)
            return shape

        if message.mode == "plan":
            self._check_free()
            begin_reaching(message, target, self._goals)
        else:
            self._as_goal(lambda: begin_reaching(message, target, self._goals))

    def _show_target(self, robot: int, shape: Shape) -> None:
        self._store.put(SceneItem(Kind.GONE, robot, time.time(), flags=PREVIEW, gone=Kind.TARGET), PREVIEWS)
        self._store.put(scene_item(shape, robot, time.time(), is_preview=False))
