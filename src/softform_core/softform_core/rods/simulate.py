"""A data set of simulated tips and their Jacobians by numerical difference (paper 001, Sec. III-B and Eq. 3)."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from softform_core.bodies.rod.equilibrium import solve_equilibria
from softform_core.bodies.rod.model import Rod
from softform_core.errors import SoftformError
from softform_core.files import only_writer
from softform_core.processes import default_jobs
from softform_core.robots import Robot
from softform_core.rods.store import TipStore, create_tips, open_tips
from softform_core.simulation.generate import command_line, git_revision

Array = NDArray[np.float64]

_Solved = tuple[slice, Array, Array]


def grid_actuations(robot: Robot, segments: int) -> Array:
    """The uniform grid of N values of each actuation, (N^m, m) Pa.

    Raises:
        SoftformError: If there are fewer than two.
    """
    if segments < 2:
        raise SoftformError(f"{segments} values of an actuation span no range.", "Give two at least.")
    axes = [np.linspace(*ends, segments) for ends in zip(robot.actuation_min, robot.actuation_max, strict=True)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, robot.degrees_of_freedom)


def difference_step(robot: Robot, segments: int) -> Array:
    """Delta c of Eq. 3, (m,) Pa: one part in 10 N of the range."""
    return (robot.actuation_max - robot.actuation_min) / (10.0 * segments)


def simulate_tips(rod: Rod, robot: Robot, actuations: Array) -> Array:
    """Tips (n, d) m at actuations (n, m) Pa; NaN where the rod has no equilibrium."""
    found = solve_equilibria(rod, robot.actuators_of(actuations))
    return found.tips[:, : robot.tip_dimensions]


def simulate_tips_and_jacobians(rod: Rod, robot: Robot, actuations: Array, step: Array) -> tuple[Array, Array]:
    """Tips (n, d) m, and Jacobians (n, d, m) m/Pa by central differences of `step` (m,) Pa (Eq. 3)."""
    centre = solve_equilibria(rod, robot.actuators_of(actuations))
    starts = np.nan_to_num(centre.strains)
    jacobians = np.empty((len(actuations), robot.tip_dimensions, robot.degrees_of_freedom))
    for k, change in enumerate(np.diag(step)):
        ahead, behind = (
            solve_equilibria(rod, robot.actuators_of(moved), starts).tips[:, : robot.tip_dimensions]
            for moved in (actuations + change, actuations - change)
        )
        jacobians[:, :, k] = (ahead - behind) / (2.0 * step[k])
    return centre.tips[:, : robot.tip_dimensions], jacobians


def generate_tips(
    robot: Robot, output: Path, *, segments: int | None = None, jobs: int | None = None, progress: bool = True
) -> TipStore:
    """Simulate a robot's tips on the grid of actuations into the store at `output`, or continue it.

    Args:
        robot: From `load_robot`.
        output: Directory of the Zarr store.
        segments: N, values of each actuation; by default the robot's.
        jobs: Threads to share the work; one for each core by default.
        progress: Whether to show a progress bar on stderr.

    Raises:
        SoftformError: If the arguments do not fit the store, another run writes it, or the disk is full.
    """
    segments = robot.tip.segments if segments is None else segments
    with only_writer(output, "simulating"):
        store = _open_or_create(robot, output, segments)
        blocks = store.pending_blocks
        rows = sum(block.stop - block.start for block in blocks)
        bar = tqdm(total=len(store), initial=len(store) - rows, desc=robot.name, unit="tip", disable=not progress)
        with bar:
            for block, tips, jacobians in _solved(robot, store, blocks, segments, jobs or default_jobs()):
                store.write(block, tips, jacobians)
                bar.update(block.stop - block.start)
    return store


def _open_or_create(robot: Robot, output: Path, segments: int) -> TipStore:
    actuations = grid_actuations(robot, segments)
    if output.exists():
        store = open_tips(output, robot, writable=True)
        if store.attributes["segments"] != segments:
            raise SoftformError(
                f"The tip simulation {output} has {store.attributes['segments']} values of each actuation, "
                f"not {segments}.",
                "Give that number of --segments to continue it, or another --output.",
            )
        return store
    provenance: dict[str, object] = {
        "segments": segments,
        "difference_pa": difference_step(robot, segments).tolist(),
        "command": command_line(),
        "git_revision": git_revision(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return create_tips(output, robot, actuations, provenance)


def _solved(robot: Robot, store: TipStore, blocks: list[slice], segments: int, jobs: int) -> Iterator[_Solved]:
    rod, actuations, step = robot.body.simulator(), store.actuation, difference_step(robot, segments)

    def solve(block: slice) -> _Solved:
        return block, *simulate_tips_and_jacobians(rod, robot, actuations[block], step)

    pool = ThreadPoolExecutor(jobs)  # the kernels let go of the interpreter
    try:
        tasks: list[Future[_Solved]] = [pool.submit(solve, block) for block in blocks]
        for task in as_completed(tasks):
            yield task.result()
    finally:
        pool.shutdown(cancel_futures=True)
