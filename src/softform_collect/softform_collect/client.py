"""`softform collect`: sends the goal of `collect_dataset` to a stack that it launches, or to one that runs.

There is one way to collect, the action: only the node `collector` moves the robot, so two programs cannot do it at the
same time, and a console or another planner collects just as this command does. A stack launched here dies with this
process; a stack that runs already misses it within seconds, since it attends to its goal. Either way the robot vents.
"""

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

from std_msgs.msg import Empty
from tqdm import tqdm

from softform_collect.by_hand import have_collector_wait, rejected_scans, value_of
from softform_collect.data_set import asked_actuations, default_output, free_bag, missing_frames, open_to_continue
from softform_collect.goal import OUTPUT_ROOT
from softform_core.errors import SoftformError
from softform_core.files import made_folder
from softform_core.frames.store import open_recording
from softform_core.paths import check_reality
from softform_core.robots import load_robot
from softform_core.run_folder import new_run_folder
from softform_interfaces.action import CollectDataset
from softform_launch.launched_stack import LaunchedStack
from softform_launch.ros_domains import enter_domain_of_its_own
from softform_ros.action_caller import ActionCaller
from softform_ros.background_node import BackgroundNode
from softform_ros.qos import ATTENDANCE
from softform_ros.stack_state import wait_until_active, wait_while_starting

START_TIMEOUT = 90.0
"""Longest start of a launched stack, s."""

ATTACH_TIMEOUT = 10.0
"""Longest time in which a running stack must answer, s."""

_POLL_SECONDS = 0.2

Say = Callable[[str], None]
Ask = Callable[[str], bool]


@dataclass(frozen=True)
class CollectRequest:
    """What to collect: the options of `./softform collect`.

    Attributes:
        robot: Name or description of the robot; a stack that runs already has its own.
        output: The store; None is `data/ROBOT/frames.zarr`.
        seed: Seed of the actuations and of the virtual rig's noise.
        attach: Whether to use a stack that runs already, instead of launching one on the virtual rig.
        by_hand: Whether a person scans, and says for each frame when the robot may move.
    """

    robot: str
    frames: int
    via: str
    output: Path | None
    seed: int
    attach: bool
    reality: str
    namespace: str
    reference_every: int
    record: bool
    by_hand: bool = False


class CaptureFailedError(SoftformError):
    """The robot was moved, and no capture of it came."""


class TerminatedError(KeyboardInterrupt):
    """SIGTERM came: no user is there to ask whether to go on."""


def terminate(number: int, frame: FrameType | None) -> None:
    """Handle SIGTERM as Ctrl-C, after which nobody is asked."""
    raise TerminatedError


def collect(request: CollectRequest, say: Say, ask: Ask) -> Path:
    """Collect what is missing of the asked frames; returns the store.

    Args:
        request: What to collect.
        say: Takes what happens, line by line.
        ask: Asks the user, who says yes by Enter, and no by Ctrl-C: after Ctrl-C, when the robot vents; and before the
            robot moves for a scan by hand.

    Raises:
        SoftformError: If the request does not fit the data set, or the stack, the robot, the capture or the disk
            fails; all frames up to then are kept.
        KeyboardInterrupt: After Ctrl-C (unless `ask`) or SIGTERM, when the goal has ended; the robot vents.
    """
    signal.signal(signal.SIGTERM, terminate)
    robot = load_robot(request.robot, "surface")
    asked_actuations(robot, request.frames, request.seed)
    if request.attach:
        wait_while_starting(request.namespace, START_TIMEOUT, say)
        output = "" if request.output is None else str(request.output.absolute())
        return _send_until_done(request, request.namespace, output, say, ask)
    check_reality(request.reality, robot.body.kind)
    path = store_of(request)
    source = f"virtual rig, reality {request.reality}"
    store = open_to_continue(path, robot, request.seed, source, request.via)
    if store is not None and len(store) >= request.frames and not len(missing_frames(store, request.frames)):
        return path
    with virtual_stack(request, path, 0 if store is None else len(store.sessions), say):
        return _send_until_done(request, "softform", str(path), say, ask)


def _send_until_done(request: CollectRequest, namespace: str, output: str, say: Say, ask: Ask) -> Path:
    """Send the goal, and again after each pause: it goes on where it was."""
    if request.by_hand:
        return _scan_by_hand(request, namespace, output, say, ask)
    while True:
        try:
            return _send(request, namespace, output, say)
        except TerminatedError:
            raise
        except KeyboardInterrupt:
            if not ask("paused; the robot vents. Enter goes on, Ctrl-C ends."):
                raise


def _scan_by_hand(request: CollectRequest, namespace: str, output: str, say: Say, ask: Ask) -> Path:
    """Send a goal for each frame: between them the robot is vented, and it moves when the user says so."""
    path = store_of(request)
    while (frame := _next_frame(path, request.frames)) is not None:
        if not ask(f"frame {frame} of {request.frames}: the robot is let go of. Enter moves it, Ctrl-C ends."):
            raise KeyboardInterrupt
        try:
            path = _send(replace(request, frames=frame + 1), namespace, output, say)
        except CaptureFailedError as error:
            say(f"{error} The robot vents.")
    return path


def store_of(request: CollectRequest) -> Path:
    """Return the path of the store for the frames; a running stack is asked for its robot.

    Raises:
        SoftformError: If it does not answer, or the robot's description is not on this machine.
    """
    if request.output is not None:
        return request.output.absolute()
    robot = request.robot
    if request.attach:
        with BackgroundNode(f"collect_{os.getpid()}", request.namespace) as node:
            robot = value_of(node, "collector", "robot")
    return default_output(load_robot(robot, "surface")).absolute()


def _next_frame(path: Path, frames: int) -> int | None:
    """Return the first of so many frames that is not captured yet."""
    store = open_recording(path) if path.exists() else None
    if store is None or len(store) == 0:
        return 0
    missing = missing_frames(store, frames)
    return int(missing[0]) if len(missing) else len(store) if len(store) < frames else None


@contextmanager
def virtual_stack(
    request: CollectRequest, path: Path, sessions: int, say: Say, solvers: bool = False
) -> Iterator[None]:
    """Run the stack on the virtual rig and record it beside the store; with its solvers, where they move the robot."""
    folder, bag = new_run_folder("collect"), free_bag(path)
    enter_domain_of_its_own()
    os.environ[OUTPUT_ROOT] = str(path.parent)  # what the user of this command may write to, its own stack may, too
    arguments = {
        "robot": request.robot,
        "reality": request.reality,
        "seed": str(request.seed + sessions + 1),  # a session that goes on must not repeat the noise of the last
        "motion_capture": str(request.via == "mocap").lower(),
        "solvers": str(solvers).lower(),
        "run_dir": str(folder),
        "record": str(request.record).lower(),
        "bag": str(bag) if request.record else "",
    }
    log_path = folder / "launch.log"
    say(f"launching the stack; its log is {log_path}")
    made_folder(bag.parent)
    with log_path.open("wb") as log, LaunchedStack("softform", arguments, output=log) as stack:
        try:
            wait_until_active("softform", START_TIMEOUT, lambda: stack.exit_code is not None, say)
            yield
        except SoftformError as error:
            raise SoftformError(str(error), f"See {log_path}.") from error


def _send(request: CollectRequest, namespace: str, output: str, say: Say) -> Path:
    """Send the goal, show its progress, and wait for its end; an interrupt cancels it."""
    goal = CollectDataset.Goal(
        via=request.via,
        frames=request.frames,
        seed=request.seed,
        output=output,
        reference_every=request.reference_every,
    )
    caller = ActionCaller(
        CollectDataset, "collect_dataset", "collector", f"collect_{os.getpid()}", namespace, ATTACH_TIMEOUT
    )
    bar: tqdm | None = None
    stage, patience = "", 0.0

    def show(feedback: CollectDataset.Feedback) -> None:
        nonlocal bar, stage
        if request.by_hand:
            if feedback.stage == "capturing" and feedback.stage != stage:
                say(f"frame {feedback.frame} is held: scan it now. It vents with the scan, or after {patience:.0f} s.")
            stage = feedback.stage
        elif bar is None:
            total, done = feedback.frames, feedback.done
            bar = bars.enter_context(tqdm(total=total, initial=done, unit="frame", desc="collect"))
        if bar is not None and feedback.stage == "storing":
            bar.set_postfix(coverage=f"{feedback.coverage:.0%}", refresh=False)
        if bar is not None:
            bar.update(feedback.done - bar.n)
        if feedback.note:
            say(feedback.note)

    with caller, ExitStack() as bars, ThreadPoolExecutor(max_workers=1) as waiting:
        if request.by_hand:
            patience = have_collector_wait(caller.node)
            bars.enter_context(rejected_scans(caller.node, say))
        caller.node.create_publisher(Empty, "collect_dataset/attendance", ATTENDANCE)
        ending = waiting.submit(caller.call, goal, show)
        try:
            while not ending.done():
                wait([ending], _POLL_SECONDS)
        except KeyboardInterrupt:
            while not ending.done():  # a goal that is not accepted yet cannot be cancelled
                caller.cancel()
                wait([ending], _POLL_SECONDS)
            raise
        result = ending.result()
    if result.error_code == CollectDataset.Result.CAPTURE_FAILED:
        raise CaptureFailedError(result.error_msg)
    if result.error_code != CollectDataset.Result.NONE:
        raise SoftformError(result.error_msg)
    return Path(result.store)
