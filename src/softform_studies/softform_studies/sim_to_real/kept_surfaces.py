"""True surfaces of a reality, which take seconds each to solve, kept for the studies that look at the same ones."""

from pathlib import Path

from softform_core.robots import Robot
from softform_rig.reality import Reality
from softform_studies.sim_to_real.kept_arrays import read_arrays, write_arrays
from softform_studies.sim_to_real.ledger import digest_of
from softform_studies.sim_to_real.make_frames import FRAMES_VERSION, TrueSurfaces, true_surfaces


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
