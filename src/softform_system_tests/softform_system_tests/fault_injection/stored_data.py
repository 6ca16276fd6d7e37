"""What was stored before a fault, collected frames and recorded messages: it is there afterwards."""

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from softform_core.errors import SoftformError
from softform_core.frames.marker_store import open_marker_frames
from softform_core.frames.recording import FrameStatus
from softform_interfaces.action import CollectDataset
from softform_recording.bag_reading import bag_parts
from softform_recording.replayed_topics import OpenRecording
from softform_recording.salvage import salvage_bag
from softform_ros.action_caller import ActionCaller
from softform_system_tests.fault_injection.fault_class import vents_unheard
from softform_system_tests.fault_injection.held_shape_faults import free_the_robot
from softform_system_tests.fault_injection.outcome import Outcome
from softform_system_tests.fault_injection.rig_stack import NAMESPACE, RigStack
from softform_system_tests.fault_injection.stack_watch import wait_for

FRAMES = 20
COLLECTED = "collected"
_STORED_FIRST = 2
_PATIENCE = 60.0
_ANSWER_SECONDS = 10.0
_REPEAT_PERIOD = 0.2
_LET_GO_SECONDS = 5.0
"""A killed recorder holds its bag until the last of its threads has ended."""


class Collecting:
    """Collects frames of markers into a store of its own while the `with` block lasts.

    Attributes:
        store: Path of the data set.
        stored: Number of frames that the node reports as stored.
        end: Result of the goal, once it has ended.
    """

    def __init__(self, stack: RigStack) -> None:
        number = sum(1 for _ in stack.folder.glob("frames-*.zarr"))
        self.store = stack.folder / f"frames-{number:03d}.zarr"
        self.stored, self.end = 0, ""
        self._stack = stack
        self._caller = ActionCaller(CollectDataset, "collect_dataset", "collector", "fault_collect", NAMESPACE)

    def __enter__(self) -> "Collecting":
        """Let go of the robot and send the goal; returns once some frames are stored."""
        free_the_robot(self._stack)  # what is asked for before its lease has ended is over then
        self._caller.connect()
        self._thread = threading.Thread(target=self._collect, daemon=True)
        self._thread.start()
        if not wait_for(lambda: self.stored >= _STORED_FIRST, _PATIENCE):
            self.__exit__(None, None, None)
            raise SoftformError(f"No frames were stored within {_PATIENCE:g} s.", "See the launch's log.")
        return self

    def __exit__(self, *error: object) -> None:
        """Close the connection; the goal has ended with the fault."""
        self._caller.close()
        self._thread.join(_ANSWER_SECONDS)

    @property
    def is_going_on(self) -> bool:
        """Whether the goal has not ended."""
        return self._thread.is_alive()

    def _collect(self) -> None:
        goal = CollectDataset.Goal(via="mocap", frames=FRAMES, seed=0, output=str(self.store))
        try:
            result = self._caller.call(goal, self._note)
            self.end = result.error_msg or COLLECTED
        except SoftformError as error:
            self.end = str(error)

    def _note(self, feedback: CollectDataset.Feedback) -> None:
        self.stored = max(self.stored, int(feedback.done))


def lost_frames(store: Path, stack: RigStack, stored: int) -> int:
    """How many of the frames that were stored cannot be read."""
    try:
        frames = open_marker_frames(store, stack.robot)
        captured = frames.captured
    except (SoftformError, OSError, ValueError, KeyError):
        return stored
    return max(0, stored - len(captured) - int((frames.status == FrameStatus.REJECTED).sum()))


def frames_lost_while_collecting(stack: RigStack, fault: Callable[[RigStack], tuple[float, bool]]) -> Outcome:
    """Collect, let the fault happen, which returns its moment and whether nothing hangs, and judge vent and store."""
    with Collecting(stack) as collecting:
        stored = collecting.stored
        moment, ended = fault(stack)
        outcome = vents_unheard(stack, moment, _REPEAT_PERIOD)
    lost = lost_frames(collecting.store, stack, stored)
    return replace(outcome, hung=not ended, lost_frames=lost)


def readable_messages(bag: Path) -> int | None:
    """Number of messages of a recording, all its parts, that are whole; of one that was not closed, once salvaged.

    A recorder that was stopped before its first message leaves a recording of none. None: it cannot be read.
    """
    counts: list[int] = []

    def is_read() -> bool:
        with suppress(SoftformError), OpenRecording(bag_parts(bag)) as recording:
            counts.append(sum(1 for _ in recording.messages(recording.topics([], with_commands=True))))
            return True
        with suppress(SoftformError), TemporaryDirectory() as folder:
            counts.append(salvage_bag(bag, Path(folder) / "whole")[0])
            return True
        return False

    return counts[-1] if wait_for(is_read, _LET_GO_SECONDS) else None


def lost_messages(bag: Path, written: int) -> int:
    """How many of the messages that were handed to the operating system before the fault are not in the bag."""
    return max(0, written - (readable_messages(bag) or 0))
