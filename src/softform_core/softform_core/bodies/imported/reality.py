"""How an imported body on the virtual rig differs from its imported shapes: it moves as scans of the true one show."""

from typing import NoReturn

import numpy as np

from softform_core.bodies.imported.description import ImportedBody
from softform_core.bodies.imported.interpolation import InterpolatedBody
from softform_core.bodies.imported.simulator import between_shapes
from softform_core.errors import SoftformError
from softform_core.paths import data_dir
from softform_core.robots.description import Description


class Reality(Description):
    """How the imported body on the virtual rig differs from the imported shapes.

    Attributes:
        scans: Whether it moves as the robot's scans show, `data/ROBOT/frames.zarr`, where there are any.
    """

    scans: bool = True


def real_simulator(body: ImportedBody, reality: Reality) -> InterpolatedBody:
    """As `simulator`, moved as the scans of the true robot show it if there are any.

    Raises:
        SoftformError: For the reasons of `simulator`, or if the scans cannot be read.
    """
    frames = data_dir() / body.owner.name / "frames.zarr"
    return between_shapes(body, frames if reality.scans and body.patches and frames.exists() else None)


def drawn_reality(body: ImportedBody, draw: np.random.Generator) -> NoReturn:
    """Rejected.

    Raises:
        SoftformError: Always: nothing is known of how such bodies differ.
    """
    raise SoftformError(
        "Realities of an imported body cannot be drawn: only data of it are known.",
        "Use the reality default, which replays its scans, or leave out the prior.",
    )
