"""Whether a bag still holds what its recorder said that it had written."""

from pathlib import Path

from rosbags.rosbag2 import Reader
from rosbags.rosbag2.errors import ReaderError

from softform_core.errors import SoftformError
from softform_recording.parts import part_folders
from softform_recording.salvage import salvage_bag
from softform_system_tests.fault_injection.stack_watch import wait_for

_LET_GO_SECONDS = 5.0
"""A killed recorder holds its bag until the last of its threads has ended."""


def readable_messages(bag: Path) -> int:
    """Number of messages of a recording, all its parts, that can be read; what was not closed is salvaged."""
    return sum(map(_readable_of_part, part_folders(bag)))


def _readable_of_part(bag: Path) -> int:
    if not wait_for(lambda: _is_salvaged(bag), _LET_GO_SECONDS):
        return 0
    try:
        with Reader(bag) as reader:
            return sum(1 for _ in reader.messages())
    except (ReaderError, OSError, ValueError, AssertionError):
        return 0


def _is_salvaged(bag: Path) -> bool:
    try:
        salvage_bag(bag)
    except (SoftformError, ReaderError, OSError, ValueError):
        return False
    return True


def lost_messages(bag: Path, written: int) -> int:
    """How many of the messages that were handed to the operating system before the fault are not in the bag."""
    return max(0, written - readable_messages(bag))
