"""Records shapes with their histories into one store, share by share: what is interrupted goes on where it stopped.

Until all are there, the shapes of each share of robots lie in a store of their own, in a folder beside the one to be,
named by the digest of all that decides them: another reality, seed or configuration has another name.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from softform_core.errors import SoftformError
from softform_core.executors import Executor
from softform_core.files import only_writer
from softform_core.kept import digest_of
from softform_core.provenance import made_now
from softform_core.robots import Robot
from softform_core.stores.zarr_stores import disk_errors
from softform_rig.reality import Reality
from softform_studies.tendon_robot.configurations import Run
from softform_studies.tendon_robot.execution import Share, execute, shares_of
from softform_studies.tendon_robot.shapes import SHAPES, RecordedShapes, joined, read_shapes, write_shapes


def record(
    path: Path, robot: Robot, reality: Reality, runs: list[Run], seed: int, executor: Executor,
    progress: Callable[[int], object],
) -> RecordedShapes:  # fmt: skip
    """Return the recorded shapes of all runs, written to a new store at `path`; shares that are kept are not led again.

    Args:
        path: Of the store.
        robot: The robot.
        reality: Whose shape depends on its path.
        runs: What its robots execute.
        seed: Of the cameras.
        executor: Leads the robots.
        progress: Takes how many shapes are new, share by share; kept ones first.

    Raises:
        SoftformError: If there is a store already, another process writes it, or the disk fails.
    """
    folder = path.with_name(path.name + ".parts")
    provenance = made_now() | {"reality": reality.name, "seed": seed}
    with only_writer(path, "recording shapes"):
        if path.exists():
            raise SoftformError(f"{path} is there already.", "Give another --output, or delete it.")
        shares = shares_of(runs)
        places = {share.first: folder / f"{_digest(robot, reality, share, seed)}.zarr" for share in shares}
        missing = [share for share in shares if not places[share.first].exists()]
        progress(sum(share.recorded for share in shares if share not in missing))
        for first, shapes in execute(robot, reality, missing, seed, executor):
            write_shapes(places[first], robot, shapes, provenance)
            progress(len(shapes))
        found = joined([read_shapes(place, robot) for place in places.values()])
        write_shapes(path, robot, found, provenance)
        with disk_errors(path, SHAPES):
            shutil.rmtree(folder)
    return found


def _digest(robot: Robot, reality: Reality, share: Share, seed: int) -> str:
    settings: dict[str, Any] = {
        "version": SHAPES.version,
        "robot": robot.fingerprint(),
        "reality": reality.model_dump(mode="json"),
        "seed": seed,
        "first": share.first,
        "part": share.run.part,
        "configurations": share.run.configurations.tolist(),
        "is_recorded": share.run.is_recorded.tolist(),
    }
    return digest_of(settings)
