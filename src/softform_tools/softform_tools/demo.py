"""The main job, once: launch the stack, reach a target in three ways through the action, verify by scans, report.

The simulation alone plans first, then the simulation with what was learned of the reality, then a closed loop corrects
by what the scanner saw: each plan is moved to and measured.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from softform_client.client import Code, GoalFailedError, Mode, ShapeClient
from softform_client.reach_messages import pose_from_message
from softform_core.errors import SoftformError
from softform_core.evaluation.look import look_at, moved
from softform_core.executors import make_executor
from softform_core.forward.robot_models import NONE
from softform_core.forward.sim_to_real_store import load_sim_to_real
from softform_core.networks.store import FORWARD_KINEMATICS, SIM_TO_REAL_FILES
from softform_core.paths import models_of
from softform_core.robots import Robot, load_robot
from softform_core.run_folder import new_run_folder
from softform_core.shapes.dem import dem_target
from softform_core.shapes.open_tube import check_goes_around
from softform_core.shapes.placing import placement
from softform_core.shapes.random import random_target
from softform_core.shapes.read import Unit, on_disk, read_shape
from softform_core.shapes.shape import Shape
from softform_core.shapes.validate import check_target
from softform_core.shapes.write import write_ply
from softform_core.units import MM_PER_M
from softform_interfaces.action import ReachShape
from softform_launch.launched_stack import LaunchedStack
from softform_launch.ros_domains import enter_domain_of_its_own
from softform_rig.best_fit import STARTS, BestFit, find_best_fit
from softform_rig.origin import origin
from softform_rig.reality import load_reality
from softform_ros.stack_state import wait_until_active
from softform_tools.demo_report import DemoResult, DemoRun, draw_run, summarise_run, table
from softform_tools.target_options import FIXED, FREE, POSE_ADVICE

START_TIMEOUT = 60.0
"""Longest start of the stack, s; it takes about ten seconds on two cores."""

_CAPTURES = 4
"""Scans that make one measurement. On `dem`, whose error is a few peaks, holes over these change the mean of a single
scan by 0.15 mm (one standard deviation), that of four by 0.01 mm; a further scan takes a second or two."""

_MAX_ROUNDS = 3
"""Most corrections of the closed loop; later ones gain little, and each takes some five seconds."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class DemoRequest:
    """Options of the demo.

    Attributes:
        target: `dem`, `random`, the path of a mesh or cloud, or None: the terrain model on a membrane, a random shape
            on other bodies.
        unit: Unit of the file, `m` or `mm`; None for the others.
        robot: Name or description of the robot.
        reality: Name or description of the virtual rig's reality.
        seed: Seed of a random target and of the scanner's noise.
        sim_to_real: Folder of a model, `none`, or None for the reality's own if there is one.
        pose: Pose of the target: one of `target_options.POSES`.
        best_fit: Whether to search for the closest shape that the robot can take, at the end.
    """

    target: str | None
    unit: Unit | None
    robot: str
    reality: str
    seed: int
    sim_to_real: str | None = None
    pose: str = FIXED
    best_fit: bool = True


def target_name(request: DemoRequest, robot: Robot) -> str:
    """Return the target that `request` names, or one that suits the robot: a landscape suits a sheet, and no tube."""
    is_sheet = bool(robot.body.patches) and not robot.body.goes_around
    return request.target or ("dem" if is_sheet else "random")


def choose_target(request: DemoRequest, robot: Robot) -> Shape:
    """Return the target that `request` names, checked against the robot.

    Raises:
        SoftformError: If it cannot be read, has no unit, or is not a shape for this robot.
    """
    name = target_name(request, robot)
    if name == "dem":
        target = dem_target(robot)
    elif name == "random":
        target = random_target(robot, request.seed)
    elif not on_disk(Path(name)).exists():
        raise SoftformError(f"There is no file {name}.", "Give the path of a shape, or dem, or random.")
    elif request.unit is None:
        raise SoftformError(
            f"The unit of {name} is not known: mesh files do not state one.", "Add --unit mm or --unit m."
        )
    else:
        target = read_shape(name, request.unit)
    check_target(target.points, robot)
    check_goes_around(target, robot)
    return target


def choose_sim_to_real(request: DemoRequest, robot: Robot) -> str:
    """Return the folder of the sim-to-real model to plan with, or `none`.

    A model belongs to one reality. The default reality's ships; another's has to be collected and trained first.

    Raises:
        SoftformError: If the folder that `request` names holds no model of this robot.
    """
    if request.sim_to_real == NONE:
        return NONE
    if request.sim_to_real is not None:
        load_sim_to_real(robot, Path(request.sim_to_real))
        return str(Path(request.sim_to_real).absolute())
    own = models_of(robot.name)
    if not robot.body.is_simulated and (own / SIM_TO_REAL_FILES[1]).is_file():
        return str(own)  # learned from the scans that the rig replays
    shipped = own / f"rig_{request.reality}"
    return str(shipped) if shipped.is_dir() else NONE


def run_demo(request: DemoRequest, say: Say, has_page: bool) -> Iterator[DemoResult]:
    """Launch the stack, reach the target in three ways, take the stack down, write the report; `say` takes progress.

    The operator's page is served and opened in the browser only if it `has_page`.

    Yields:
        The result, when the report is written; and again with the best fit, if that is asked for.

    Raises:
        SoftformError: If the target, a node or the motion fails; the folder of the run keeps the logs and the bag.
        KeyboardInterrupt: After Ctrl-C. What has been measured by then is yielded before, as it is before an error.
    """
    robot = load_robot(request.robot, "surface")
    reality = load_reality(request.reality, robot)
    FORWARD_KINEMATICS.read_card(models_of(robot.name), robot)
    target = choose_target(request, robot)
    model = choose_sim_to_real(request, robot)
    folder = new_run_folder("demo")
    bag = folder / "bag"
    started = time.monotonic()

    def tell(line: str) -> None:
        say(f"[{time.monotonic() - started:5.1f} s] {line}")

    enter_domain_of_its_own()
    arguments = {
        "robot": request.robot,
        "reality": request.reality,
        "sim_to_real": model,
        "seed": str(request.seed),
        "run_dir": str(folder),
        "captures": str(_CAPTURES),
        "record": "true",
        "bag": str(bag),
        **({"open_page": "true"} if has_page else {"console": "false"}),
    }
    if told := origin(robot, reality):
        tell(told)
    tell(f"launching the stack; its log is {folder / 'launch.log'}")
    with (folder / "launch.log").open("wb") as log, LaunchedStack("softform", arguments, output=log) as stack:
        try:
            wait_until_active("softform", START_TIMEOUT, lambda: stack.exit_code is not None, tell)
            tell(f"all nodes are active; the target is '{target_name(request, robot)}'")
            if has_page:
                tell("the robot can be watched in your browser; --headless opens nothing")
            with ShapeClient("/softform") as client:
                target, pose = _put_where_it_lies(client, target, robot, request.pose, tell)
                tell(look_at(target, robot).line())
                run = reach_in_three_ways(client, target, pose, model != NONE, tell)
        except GoalFailedError as error:
            advice = POSE_ADVICE[request.pose] if error.code == Code.UNREACHABLE else f"See {folder / 'launch.log'}."
            raise SoftformError(str(error), advice) from error
        except SoftformError as error:
            raise SoftformError(str(error), f"See {folder / 'launch.log'}.") from error
        tell("taking the stack down")
    write_ply(folder / "target.ply", run.target)
    name = NONE if model == NONE else Path(model).name
    shape = target_name(request, robot)

    def reported(best_fit: BestFit | None) -> DemoResult:
        figures = summarise_run(run, best_fit, shape, name, robot, folder / "report.png", bag)
        draw_run(run, figures, robot, request.reality)
        for line in [*table(figures), "", f"  report: {figures.report}", f"  bag:    {bag}"]:
            say(line)
        return figures

    yield reported(None)
    if isinstance(run.ended, SoftformError):
        raise SoftformError(str(run.ended), f"See {folder / 'launch.log'}.") from run.ended
    if run.ended is not None:
        raise run.ended
    if not request.best_fit:
        return
    tell("searching the rig's true physics for the closest shape that it can take; Ctrl-C leaves it at what is above")
    yield reported(
        find_best_fit(
            robot, reality, run.target, tried=run.tried(robot), on_start=_time_left(tell), executor=make_executor()
        )
    )


def _time_left(tell: Say) -> Callable[[int, float], None]:
    """Return a callback that reports each start of the best fit, and the time that the others will take."""
    begun, done = time.monotonic(), 0

    def note(number: int, mean_mm: float) -> None:
        nonlocal done
        done += 1
        left = (STARTS - done + 1) * (time.monotonic() - begun) / done  # the best is led on when all are there
        tell(f"  start {number} of {STARTS}: {mean_mm:.2f} mm; about {left:.0f} s left")

    return note


def _put_where_it_lies(client: ShapeClient, target: Shape, robot: Robot, pose: str, tell: Say) -> tuple[Shape, str]:
    """Return the target where it is to be reached, m, and how it came there; all ways have the same place."""
    if pose == FIXED:
        return target, pose
    if pose == FREE:
        tell("planning where the target fits best")
        motion = pose_from_message(client.reach(target, Mode.PLAN_ONLY, fix_pose=False).solve.target_pose)
    else:
        motion = placement(target, robot)
    target, description = moved(pose, motion, target)
    tell(f"the target's pose is {description}")
    return target, description


def reach_in_three_ways(client: ShapeClient, target: Shape, pose: str, has_model: bool, tell: Say) -> DemoRun:
    """Plan by the simulation alone, with sim-to-real if there is a model, and in a closed loop; move and measure each.

    Returns:
        The results. What ends a later way than the first one is kept in them, with those that were finished.

    Raises:
        SoftformError: If the first goal is rejected or fails.
        KeyboardInterrupt: After Ctrl-C before the first result.
    """

    def measured(how: str, mode: Mode, **options: Any) -> ReachShape.Result:
        tell(how)
        result = client.reach(target, mode, on_feedback=_moves(tell), **options)
        rounds = result.round_mean_errors or [result.measured.mean_error]
        tell(f"measured mean error {', then '.join(f'{error * MM_PER_M:.2f}' for error in rounds)} mm")
        return result

    verify = Mode.PLAN_MOVE_AND_VERIFY
    simulated, learned = measured("planning by the simulation alone", verify, without_sim_to_real=True), None
    try:
        if has_model:
            learned = measured("planning with sim-to-real", verify)
        start = np.asarray(DemoRun(simulated, learned, None, target, pose).best_plan.actuators.value)
        loop = measured("closing the loop: scan, correct, repeat", Mode.CLOSED_LOOP, seed=start, max_rounds=_MAX_ROUNDS)
    except (KeyboardInterrupt, SoftformError) as error:
        tell("ended early; here is what was measured")
        return DemoRun(simulated, learned, None, target, pose, error)
    return DemoRun(simulated, learned, loop, target, pose)


def _moves(tell: Say) -> Callable[[ReachShape.Feedback], None]:
    """Return a feedback callback that reports once a round that the robot moves."""
    told: set[int] = set()

    def note(feedback: ReachShape.Feedback) -> None:
        if feedback.stage == "moving" and feedback.round not in told:
            told.add(feedback.round)
            place = f"round {feedback.round}: " if feedback.round else ""
            tell(f"  {place}moving, predicted mean error {feedback.mean_error * MM_PER_M:.2f} mm")

    return note
