"""A data set of simulated shapes: many equilibria over all cores, into one store that can always be continued."""

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from softform_core.bodies.membrane.equilibrium import solve_equilibrium
from softform_core.bodies.membrane.model import Membrane
from softform_core.bodies.membrane.potential import gradient_and_hessian, total_potential
from softform_core.errors import SoftformError
from softform_core.files import only_writer
from softform_core.paths import home
from softform_core.processes import default_jobs, end_with_parent
from softform_core.robots import Robot
from softform_core.robots.body import Body
from softform_core.simulation.newton import NoEquilibriumError
from softform_core.simulation.sampling import corner_actuations, sample_actuations
from softform_core.simulation.store import SimulationStore, create_simulation, open_simulation

_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class _Solved(NamedTuple):
    """What a worker sends back: vertices (V, 3) m, or the reason why there are none."""

    sample: int
    vertices: NDArray[np.float64] | None
    reason: str
    iterations: int
    seconds: float


def generate_simulation(
    robot: Robot, samples: int, output: Path, *, jobs: int | None = None, seed: int = 0, progress: bool = True
) -> SimulationStore:
    """Simulate a robot's shapes into the store at `output`, or continue it.

    Samples that the store holds already are not simulated again; a larger `samples` adds to it.

    Args:
        robot: From `load_robot`.
        samples: Number of actuations (see `simulation.sampling`).
        output: Directory of the Zarr store.
        jobs: Processes to share the work; one for each core by default.
        seed: Of the samples.
        progress: Whether to show a progress bar on stderr.

    Raises:
        SoftformError: If the arguments do not fit the store, another run writes it, or the disk is full.
    """
    jobs = default_jobs() if jobs is None else jobs
    if jobs < 1:
        raise SoftformError(f"{jobs} jobs cannot work.", "Give one at least.")
    actuations = sample_actuations(robot.actuation_min, robot.actuation_max, samples, seed)
    with only_writer(output, "simulating"):
        store = _open_or_create(robot, actuations, output, seed)
        pending = store.pending
        results = _solve_here if jobs == 1 or len(pending) < 2 else _solve_in_processes
        bar = tqdm(
            total=len(store), initial=len(store) - len(pending), desc=robot.name, unit="shape", smoothing=0.05,
            disable=not progress,
        )  # fmt: skip
        with bar:
            for solved in results(robot.body, robot.actuators_of(store.actuation), pending, jobs):
                if solved.vertices is None:
                    store.write_failed(solved.sample, solved.reason, solved.seconds)
                else:
                    store.write_converged(solved.sample, solved.vertices, solved.iterations, solved.seconds)
                bar.update()
    return store


def _open_or_create(robot: Robot, actuations: NDArray[np.float64], output: Path, seed: int) -> SimulationStore:
    if output.exists():
        store = open_simulation(output, robot, writable=True)
        if store.attributes["seed"] != seed:
            raise SoftformError(
                f"The simulation {output} was begun with seed {store.attributes['seed']}, not {seed}.",
                "Give that seed to continue it, or another --output.",
            )
        store.add(actuations)
        return store
    membrane = robot.body.simulator()
    corners = {corner.tobytes() for corner in corner_actuations(robot.actuation_min, robot.actuation_max)}
    provenance: dict[str, object] = {
        "seed": seed,
        "command": command_line(),
        "git_revision": git_revision(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "n_corners": sum(actuation.tobytes() in corners for actuation in actuations),
    }
    return create_simulation(output, robot, membrane.rest_vertices, membrane.faces, actuations, provenance)


def command_line() -> str:
    """The command that is running, as it was typed."""
    program = Path(sys.argv[0]).name
    return shlex.join(["softform" if program == "main.py" else program, *sys.argv[1:]])


def git_revision() -> str:
    """Revision of the checkout, with `-dirty` if files have changed since; `unknown` outside of one."""
    command = ["git", "-C", str(home()), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return "unknown"


def _ready_membrane(body: Body) -> Membrane:
    """The membrane with its kernels compiled, so that the first sample's time is its own."""
    membrane = body.simulator()
    idle = np.zeros(membrane.chambers)
    total_potential(membrane, membrane.rest_vertices, idle)
    gradient_and_hessian(membrane, membrane.rest_vertices, idle)
    return membrane


def _solve(membrane: Membrane, sample: int, pressures: NDArray[np.float64]) -> _Solved:
    begin = time.perf_counter()
    try:
        found = solve_equilibrium(membrane, pressures)
    except NoEquilibriumError as error:
        return _Solved(sample, None, str(error), 0, time.perf_counter() - begin)
    return _Solved(sample, found.vertices, "", found.iterations, time.perf_counter() - begin)


def _solve_here(
    body: Body, actuations: NDArray[np.float64], pending: NDArray[np.int64], jobs: int
) -> Iterator[_Solved]:
    membrane = _ready_membrane(body)
    for sample in pending:
        yield _solve(membrane, int(sample), actuations[sample])


def _solve_in_processes(
    body: Body, actuations: NDArray[np.float64], pending: NDArray[np.int64], jobs: int
) -> Iterator[_Solved]:
    """Share the samples among fresh (spawned) processes of one thread each."""
    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
    workers = min(jobs, len(pending))
    pool = ProcessPoolExecutor(workers, get_context("spawn"), initializer=_begin_worker, initargs=(body,))
    try:
        tasks = [pool.submit(_solve_in_worker, int(sample), actuations[sample]) for sample in pending]
        for task in as_completed(tasks):
            yield task.result()
    except BrokenProcessPool as error:
        raise SoftformError(
            "A worker process died, perhaps for want of memory.",
            "Shapes written so far are kept. Run the same command again, with fewer --jobs.",
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)
        for name, value in before.items():
            if value is None:
                os.environ.pop(name)
            else:
                os.environ[name] = value


_worker_membrane: Membrane | None = None


def _begin_worker(body: Body) -> None:
    global _worker_membrane
    end_with_parent()
    _worker_membrane = _ready_membrane(body)


def _solve_in_worker(sample: int, pressures: NDArray[np.float64]) -> _Solved:
    assert _worker_membrane is not None
    return _solve(_worker_membrane, sample, pressures)
