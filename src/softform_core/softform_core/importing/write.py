"""Writing imported samples into a simulation's store, resumable."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.files import only_writer
from softform_core.provenance import made_now
from softform_core.robots import Robot
from softform_core.simulation.sampled_body import Solved
from softform_core.simulation.store import SimulationStore, create_simulation, open_simulation


def write_samples(
    robot: Robot,
    actuations: Array,
    outputs: Mapping[str, tuple[int, ...]],
    constants: dict[str, NDArray],
    read: Callable[[NDArray[np.int64]], dict[str, Array]],
    settings: dict[str, object],
    output: Path,
    *,
    block: int,
    past: Array | None = None,
    progress: bool = True,
) -> SimulationStore:
    """Write samples into the store at `output`, or go on with it.

    Samples have actuations (n, m), after others (n, h, m) where that is known, outputs of shapes by name, and constants
    that all share. `read` gives the outputs (b, ...) of samples (b,), `block` of them at once. A store with other
    `settings`, sources and options of the import, is not continued.

    Raises:
        SoftformError: If the store holds something else, another run writes it, or the disk is full.
    """
    with only_writer(output, "importing"):
        if output.exists():
            store = open_simulation(output, robot, writable=True)
            if any(store.attributes.get(name) != value for name, value in settings.items()):
                raise SoftformError(
                    f"{output} holds other data than this import: {store.attributes['command']}.",
                    "Move it away, or give another --output.",
                )
        else:
            provenance = {"strategy": "imported", **made_now(), **settings}
            store = create_simulation(output, robot, actuations, outputs, constants, block, provenance, past)
        pending = store.pending
        with tqdm(
            total=len(store), initial=len(store) - len(pending), desc="import", unit="sample", disable=not progress
        ) as bar:
            for begin in range(0, len(pending), block):
                samples = pending[begin : begin + block]
                count = len(samples)
                store.write(samples, Solved(read(samples), np.zeros(count, dtype=np.int64), [""] * count), 0.0)
                bar.update(count)
    return store
