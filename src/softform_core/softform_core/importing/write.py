"""Writing imported samples into a simulation's store, resumable."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.files import only_writer
from softform_core.provenance import command_line, git_revision, now
from softform_core.robots import Robot
from softform_core.simulation.sampled_body import Solved
from softform_core.simulation.store import SimulationStore, create_simulation, open_simulation

STRATEGY = "imported"


def write_samples(
    robot: Robot,
    actuations: Array,
    outputs: Mapping[str, tuple[int, ...]],
    constants: dict[str, NDArray],
    read: Callable[[NDArray[np.int64]], Solved],
    settings: dict[str, object],
    output: Path,
    *,
    block: int,
    progress: bool = True,
) -> SimulationStore:
    """Write samples into the store at `output`, or go on with it.

    Args:
        robot: Robot of the samples.
        actuations: (n, m).
        outputs: Shapes of one sample's outputs, by name.
        constants: Arrays that all samples share.
        read: Gives the outputs of samples (b,).
        settings: Sources and options of the import; a store with other settings is not continued.
        output: Directory of the store.
        block: Samples read and written together.
        progress: Whether to show a progress bar on stderr.

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
            made = {"command": command_line(), "git_revision": git_revision(), "created": now()}
            provenance = {"strategy": STRATEGY, **made, **settings}
            store = create_simulation(output, robot, actuations, outputs, constants, block, provenance)
        pending = store.pending
        with tqdm(
            total=len(store), initial=len(store) - len(pending), desc="import", unit="sample", disable=not progress
        ) as bar:
            for begin in range(0, len(pending), block):
                samples = pending[begin : begin + block]
                store.write(samples, read(samples), 0.0)
                bar.update(len(samples))
    return store
