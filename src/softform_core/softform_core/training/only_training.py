"""One training of a robot at a time: all of them read and write the same checkpoints and model files."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from softform_core.files import only_writer
from softform_core.paths import runs_dir
from softform_core.robots import Robot

_NEXT_STEP = "Wait until it is done, or end it with Ctrl-C: the same command goes on where it stopped."


@contextmanager
def only_training(robot: Robot, folder: Path) -> Iterator[None]:
    """Let no other process train models of a robot, or into a folder of models, meanwhile.

    Raises:
        SoftformError: If one does, which is named, or folders cannot be written.
    """
    activity = f"training '{robot.name}'"
    with (
        only_writer(runs_dir() / "train" / robot.name, activity, _NEXT_STEP),
        only_writer(folder.resolve(), activity, _NEXT_STEP),
    ):
        yield
