"""A data set of simulated samples: many equilibria over all cores, into one store that can always be continued."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.executors import InProcess, make_executor
from softform_core.files import only_writer
from softform_core.provenance import made_now
from softform_core.robots import Robot
from softform_core.robots.body import Body
from softform_core.simulation.sampled_body import SampledBody, Solved
from softform_core.simulation.sampling import Sampling
from softform_core.simulation.store import SINGLE_SOLVER, SimulationStore, create_simulation, open_simulation

__all__ = ["generate"]

_MAP_STEP = 1e-6  # of the range: actuation maps are linear, or piecewise so


class _Block(NamedTuple):
    """Samples that are solved together: numbers (b,), commands (b, k), and their derivative (b, k, m)."""

    samples: NDArray[np.int64]
    actuators: Array
    by_actuation: Array


_Done = tuple[NDArray[np.int64], Solved, float]


def generate(
    robot: Robot,
    sampling: Sampling,
    output: Path,
    *,
    jobs: int | None = None,
    cluster: str | None = None,
    device: str | None = None,
    progress: bool = True,
) -> SimulationStore:
    """Simulate a robot's samples into the store at `output`, or continue it.

    Samples that the store holds already are not simulated again; a larger sampling of the same settings adds to it.

    Args:
        robot: The robot to simulate.
        sampling: Sampled actuations (see `simulation.sampling`).
        output: Directory of the Zarr store.
        jobs: Processes to share the work; one for each core by default.
        cluster: Address of a Ray cluster that does it instead; the same sampling gives the same store.
        device: Device on which many are solved at once instead, such as `cuda:0`; the same sampling gives the same
            store to rounding.
        progress: Whether to show a progress bar on stderr.

    Raises:
        SoftformError: If the arguments do not fit the store, another run writes it, the disk is full, or a
            worker is lost.
    """
    if device is not None and (jobs is not None or cluster is not None):
        raise SoftformError("--device excludes --jobs and --cluster.", "One process works with the device.")
    executor = make_executor(jobs, cluster) if device is None else InProcess()
    with only_writer(output, "simulating"):
        body = _sampled(robot.body, device)
        store = _open_or_create(robot, body, sampling, output)
        blocks = _blocks(robot, store.actuation, store.pending, body.block)
        if blocks:
            store.note_solver(SINGLE_SOLVER if device is None else f"many at once, {device}")
        bar = tqdm(
            total=len(store), initial=len(store) - len(store.pending), desc=robot.name, unit="sample", smoothing=0.05,
            disable=not progress,
        )  # fmt: skip
        with bar:
            for samples, solved, seconds in executor.run(partial(_solver, robot.body, device), blocks):
                store.write(samples, solved, seconds)
                bar.update(len(samples))
    return store


def _open_or_create(robot: Robot, body: SampledBody, sampling: Sampling, output: Path) -> SimulationStore:
    if output.exists():
        store = open_simulation(output, robot, writable=True)
        for name, value in sampling.settings.items():
            if store.attributes.get(name) != value:
                raise SoftformError(
                    f"The simulation {output} was begun with {name} {store.attributes.get(name)}, not {value}.",
                    f"Give that {name} to continue it, or another --output.",
                )
        store.add(sampling.actuations)
        return store
    provenance = made_now() | sampling.attributes
    shapes, constants = body.output_shapes(robot.degrees_of_freedom), dict(body.constants)
    if not robot.learns_line:  # which it would be stored for
        shapes.pop("centre_line", None)
        constants.pop("along", None)
    return create_simulation(output, robot, sampling.actuations, shapes, constants, body.block, provenance)


def _blocks(robot: Robot, actuations: Array, pending: NDArray[np.int64], size: int) -> list[_Block]:
    """The pending samples in blocks that lie in one chunk of the store each."""
    step = _MAP_STEP * (robot.actuation_max - robot.actuation_min)
    blocks = []
    for samples in np.split(pending, np.flatnonzero(np.diff(pending // size)) + 1) if len(pending) else []:
        actuation = actuations[samples]
        # A central difference; at the kink of an antagonistic pair it is the mean of both sides.
        columns = [
            (robot.actuators_of(actuation + change) - robot.actuators_of(actuation - change)) / (2.0 * change[place])
            for place, change in enumerate(np.diag(step))
        ]
        blocks.append(_Block(samples, robot.actuators_of(actuation), np.stack(columns, axis=2)))
    return blocks


def _sampled(body: Body, device: str | None) -> SampledBody:
    sampled: SampledBody = body.sampled() if device is None else body.batched(device)
    return sampled


def _solver(body: Body, device: str | None) -> Callable[[_Block], _Done]:
    """What solves a block, its kernels compiled, so that the first sample's time is its own."""
    sampled, idle = _sampled(body, device), np.zeros((1, len(body.inputs)))
    sampled.solve(idle, idle[:, :, None])

    def solve(block: _Block) -> _Done:
        begin = time.perf_counter()
        solved = sampled.solve(block.actuators, block.by_actuation)
        return block.samples, solved, (time.perf_counter() - begin) / len(block.samples)

    return solve
