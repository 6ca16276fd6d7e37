"""Whether a bag still holds what its recorder said that it had written."""

from pathlib import Path

from rosbags.rosbag2 import Reader
from rosbags.rosbag2.errors import ReaderError

from softform_bringup.recording.salvage import salvage_bag
from softform_core.errors import SoftformError


def readable_messages(bag: Path) -> int:
    """Number of messages of a bag that can be read from end to end; it is salvaged if it was not closed."""
    try:
        salvage_bag(bag)
        with Reader(bag) as reader:
            return sum(1 for _ in reader.messages())
    except (SoftformError, ReaderError, OSError, ValueError, AssertionError):
        return 0


def lost_messages(bag: Path, written: int) -> int:
    """How many of the messages that were written are not there any more.

    Args:
        bag: Its folder; its recorder has ended.
        written: What the recorder had handed to the operating system before the fault.
    """
    return max(0, written - readable_messages(bag))
