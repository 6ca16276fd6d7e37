"""Collecting frames: actuate, settle, capture, check, store (paper 000, Sec. V-B2)."""

import os
import random
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from softform_bringup.launched_stack import LaunchedStack
from softform_bringup.robot_link import RobotLink
from softform_bringup.run_folder import new_run_folder
from softform_bringup.stack_state import wait_until_active
from softform_core.errors import SoftformError
from softform_core.files import only_writer
from softform_core.frames.quality import FrameQuality, assess_cloud
from softform_core.frames.store import FrameStore, create_frames, open_frames
from softform_core.halton import halton_actuations
from softform_core.paths import data_dir, reality_file
from softform_core.robots import Robot, load_robot
from softform_core.simulation.generate import git_revision
from softform_ik.goal_checks import GoalError
from softform_ros.conversions import points_from_cloud

START_TIMEOUT = 90.0
"""Seconds that a launched stack may take to come up."""

ATTACH_TIMEOUT = 10.0
"""Seconds within which a running stack must be heard."""

SETTLE_TOLERANCE = 250.0
"""Pa; settled pressures must be this near to the command."""

SETTLE_TIMEOUT = 30.0
"""Seconds for the robot to settle."""

CAPTURE_TIMEOUT = 20.0
"""Seconds to wait for a capture of the settled robot."""

CAPTURES_A_FRAME = 3
"""Captures of one actuation that are tried before its frame is rejected."""

_HIGHEST_ROS_DOMAIN = 101
_POLL_SECONDS = 0.1

Say = Callable[[str], None]


@dataclass(frozen=True)
class CollectRequest:
    """What to collect.

    Attributes:
        robot: Name or description of the robot.
        frames: Frames that the data set shall have in the end.
        via: What captures: `scanner`.
        output: The store; None is `data/ROBOT/frames.zarr`.
        seed: Of the actuations and of the virtual rig's noise.
        attach: Whether to use a stack that runs already, instead of launching one on the virtual rig.
        reality: Of the launched virtual rig.
        namespace: Of the stack that runs already.
    """

    robot: str
    frames: int
    via: str
    output: Path | None
    seed: int
    attach: bool
    reality: str
    namespace: str

    @property
    def source(self) -> str:
        """Whose frames these are; a data set has those of one source only."""
        return "attached" if self.attach else f"virtual rig, reality {self.reality}"


def collect(request: CollectRequest, say: Say) -> FrameStore:
    """Collect what is missing of the asked frames.

    Args:
        request: What to collect.
        say: Takes one line of progress at a time.

    Raises:
        SoftformError: If the request does not fit the data set, or the stack, the robot, the capture or the disk
            fails; all frames up to then are kept.
    """
    robot = load_robot(request.robot)
    actuations = halton_actuations(robot.pressure_min, robot.pressure_max, request.frames, request.seed)
    path = data_dir() / robot.name / "frames.zarr" if request.output is None else request.output
    if not request.attach:
        reality_file(request.reality)
    with only_writer(path, "collecting"):
        store = _open_or_create(request, robot, path, actuations)
        if not len(_asked(store, request)):
            return store
        bag = None if request.attach else _free_bag(path)
        store.begin_session(
            {
                "began": datetime.now(UTC).isoformat(timespec="seconds"),
                "command": shlex.join(["softform", "collect", *sys.argv[1:]]).replace("collect collect", "collect", 1),
                "git_revision": git_revision(),
                "bag": "" if bag is None else str(bag.relative_to(path.parent)),
            }
        )
        with _stack(request, bag, len(store.sessions), say), RobotLink(robot, _namespace(request)) as link:
            _wait_until_heard(link)
            _collect_frames(store, _asked(store, request), robot, link, say)
    return store


def _namespace(request: CollectRequest) -> str:
    return request.namespace if request.attach else "softform"


def _asked(store: FrameStore, request: CollectRequest) -> NDArray[np.int64]:
    return store.pending[store.pending < request.frames]


def _free_bag(path: Path) -> Path:
    """Return a folder for the raw recording beside the store, `NAME.bags/DATE-TIME`, which does not exist."""
    return path.with_name(f"{path.stem}.bags") / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"


def _open_or_create(request: CollectRequest, robot: Robot, path: Path, actuations: NDArray[np.float64]) -> FrameStore:
    if not path.exists():
        provenance: dict[str, object] = {
            "seed": request.seed,
            "source": request.source,
            "via": request.via,
            "git_revision": git_revision(),
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        return create_frames(path, robot, actuations, provenance)
    store = open_frames(path, robot, writable=True)
    for name, asked in (("seed", request.seed), ("source", request.source), ("via", request.via)):
        if store.attributes[name] != asked:
            raise SoftformError(
                f"The frames {path} were begun with {name} '{store.attributes[name]}', not '{asked}'.",
                "Ask for that to continue them, or give another --output.",
            )
    store.extend(actuations)
    return store


@contextmanager
def _stack(request: CollectRequest, bag: Path | None, session: int, say: Say) -> Iterator[None]:
    """Run the stack on the virtual rig and record it, unless one runs already."""
    if bag is None:
        yield
        return
    folder = new_run_folder("collect")
    # A domain of its own: this stack must not reach, or be reached by, another one on this machine.
    os.environ["ROS_DOMAIN_ID"] = str(random.SystemRandom().randint(1, _HIGHEST_ROS_DOMAIN))
    arguments = {
        "robot": request.robot,
        "reality": request.reality,
        "seed": str(request.seed + session),  # a session that goes on must not repeat the noise of the last
        "run_dir": str(folder),
        "record": "true",
        "bag": str(bag.resolve()),
    }
    log_path = folder / "launch.log"
    say(f"launching the stack; its log is {log_path}")
    bag.parent.mkdir(parents=True, exist_ok=True)
    with log_path.open("wb") as log, LaunchedStack("softform", arguments, output=log) as stack:
        try:
            wait_until_active("softform", START_TIMEOUT, lambda: stack.exit_code is not None)
            yield
        except SoftformError as error:
            raise SoftformError(str(error), f"See {log_path}.") from error


def _wait_until_heard(link: RobotLink) -> None:
    deadline = time.monotonic() + ATTACH_TIMEOUT
    while True:
        try:
            link.driver.refuse_unless_ready()
            return
        except SoftformError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_POLL_SECONDS)


def _collect_frames(store: FrameStore, numbers: NDArray[np.int64], robot: Robot, link: RobotLink, say: Say) -> None:
    done = len(store) - len(store.pending)
    with tqdm(total=done + len(numbers), initial=done, unit="frame", desc="collect") as bar:
        for number in (int(number) for number in numbers):
            try:
                quality = _collect_frame(store, number, robot, link)
            except GoalError as error:  # the driver's word, which knows of no frames
                raise SoftformError(
                    f"Frame {number} was not captured. {error.message}",
                    f"{error.next_step} Then run the same command again; it continues.",
                ) from error
            if quality.fault:
                say(f"frame {number} is rejected: {quality.fault}")
            bar.set_postfix(coverage=f"{quality.coverage:.0%}", refresh=False)
            bar.update()


def _collect_frame(store: FrameStore, number: int, robot: Robot, link: RobotLink) -> FrameQuality:
    """Actuate, settle, capture, check and store one frame; an unfit capture is taken again."""
    command = store.actuation[number]
    commanded_at = time.time()
    link.command.hold(command)

    def stopped() -> bool:
        return link.stop_reason is not None

    def settle(since: float) -> tuple[NDArray[np.float64], float]:
        settled = link.driver.wait_until_settled(command, SETTLE_TOLERANCE, SETTLE_TIMEOUT, since, stopped)
        if settled is None:
            raise SoftformError(
                f"The driver stopped following commands before frame {number} was captured: {link.stop_reason}",
                "Remove the cause, then run the same command again; it continues.",
            )
        return settled.pressures, settled.stamp

    _, moment = settle(commanded_at)
    for _ in range(CAPTURES_A_FRAME):
        capture = link.captures.wait_for_one_after(moment, CAPTURE_TIMEOUT, stopped)
        # The pressures of the capture are those of a robot that is still settled after it.
        measured, _ = settle(moment if capture is None else capture.stamp)
        if capture is None:
            raise SoftformError(
                f"No captured_cloud of the settled robot came within {CAPTURE_TIMEOUT:g} s for frame {number}.",
                "Check the scanner (its diagnostics say what it rejected), then run the same command again.",
            )
        points = points_from_cloud(capture.cloud)
        points = points[np.isfinite(points).all(axis=1)]
        quality = _assess(store, points, robot)
        if not quality.fault:
            break
        moment = capture.stamp
    store.write_captured(number, points, measured, capture.stamp, quality)
    return quality


def _assess(store: FrameStore, points: NDArray[np.float64], robot: Robot) -> FrameQuality:
    quality = assess_cloud(points, robot)
    twin = store.same_cloud(points) if not quality.fault else None
    if twin is None:
        return quality
    fault = f"it is the same cloud as frame {twin}: does the scanner send an old export?"
    return FrameQuality(quality.coverage, quality.covered, quality.outliers, fault)
