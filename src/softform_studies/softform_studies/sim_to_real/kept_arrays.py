"""Arrays that a long study goes on with, each result a file of its own; true surfaces, which take seconds each."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from softform_core.files import write_atomically
from softform_core.robots import Robot
from softform_rig.reality import Reality
from softform_studies.sim_to_real.ledger import digest_of
from softform_studies.sim_to_real.make_frames import FRAMES_VERSION, TrueSurfaces, true_surfaces


def write_arrays(path: Path, values: Mapping[str, Any]) -> None:
    """Write arrays, numbers and texts by their names as an .npz file.

    Raises:
        SoftformError: If it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    content = io.BytesIO()
    np.savez_compressed(content, **dict(values))
    write_atomically(path, content.getvalue())


def read_arrays(path: Path) -> dict[str, Any]:
    """Read what `write_arrays` has written; numbers and texts are arrays of no dimension."""
    with np.load(path, allow_pickle=False) as content:
        return {name: content[name] for name in content.files}


def kept_true_surfaces(robot: Robot, reality: Reality, count: int, seed: int, folder: Path) -> TrueSurfaces:
    """`true_surfaces`: from a file in the folder, or solved now and written there.

    Raises:
        SoftformError: If an actuation has no equilibrium in this reality, or the file cannot be written.
    """
    body = reality.model_dump(mode="json", exclude={"scanner", "motion_capture"})
    settings = {"robot": robot.fingerprint(), "reality": body, "count": count, "seed": seed, "version": FRAMES_VERSION}
    path = folder / f"{digest_of(settings)}.npz"
    if not path.is_file():
        write_arrays(path, vars(true_surfaces(robot, reality, count, seed)))
    return TrueSurfaces(**read_arrays(path))
