"""What a study is given, and what it gives."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from softform_core.robots import Robot
from softform_rig.reality import Reality
from softform_studies.studies.catalogue import Scale


@dataclass(frozen=True)
class Setting:
    """What a study is given.

    Attributes:
        robot: The robot; its N_fk must be trained.
        reality: Reality of the robot.
        scale: Full, or quick for a look at the form.
        seed: Seed of all that is drawn.
        folder: Folder of the study's files, and of what it goes on with.
        progress: Show progress on standard error.
    """

    robot: Robot
    reality: Reality
    scale: Scale
    seed: int
    folder: Path
    progress: bool


class Outcome(NamedTuple):
    """What a study gives.

    Attributes:
        entries: JSON-ready lines of the table, each with a `series` and its place `x` in it.
        figure: The picture, without its title.
        judged: By how much it is judged, for the caption.
    """

    entries: list[dict[str, Any]]
    figure: Figure
    judged: str
