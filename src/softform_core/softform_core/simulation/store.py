"""Simulated samples on disk: one Zarr v3 group a robot, SI units.

Arrays with a row for each sample: `actuation` (n, m), `status` (n,), `iterations` (n,), `solve_seconds` (n,), and what
was solved: `vertices` (n, V, 3) m of a surface, or `tip` (n, d) m and `jacobian` (n, d, m) m per unit of the actuation,
which imported tips lack, and `centre_line` (n, N, 3) m of a robot that learns it. Where it is known what was before,
`past` (n, h, m): the actuations before each, the oldest first, NaN where not known. A sample is then its history and
its actuation: three ways to one actuation are three samples. Of a surface, `rest_vertices` (V, 3) m and `faces` (F, 3)
beside them; of a centre line `along` (N,), where its nodes are, 0 at the base and 1 at the end. Attributes: schema and
provenance, `failures` (sample -> reason), `solvers`, and `solved_singly` (samples that a solver of many at once left to
the single one). A sample's status is written after its outputs, and each chunk replaces the old one at once and is on
disk by then, so whatever stops a run leaves a store in which everything marked as done is there.
"""

from collections.abc import Mapping
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_core.simulation.sampled_body import Solved
from softform_core.stores.actuation_store import ActuationStore
from softform_core.stores.past import check_past
from softform_core.stores.zarr_stores import Rows, Shapes, StoreKind, disk_errors, misshapen_rows, new_group, sync

_EACH_SAMPLE = {"status": "u1", "iterations": "i4", "solve_seconds": "f8"}
_ROWS = 4096
"""Of a chunk of these, which is written anew with each block: of all samples, a million took four times as long."""
_SURFACE, _TIP = ("vertices",), ("tip", "jacobian", "centre_line")


def _misshapen(shapes: Shapes) -> list[str]:
    tip, inputs = shapes.get("tip", ())[-1:], shapes.get("actuation", ())[-1:]
    nodes = *shapes.get("along", ()), 3
    outputs = {
        "tip": tip, "jacobian": (*tip, *inputs), "centre_line": nodes, "vertices": shapes.get("rest_vertices", ())
    }  # fmt: skip
    rows: Rows = {name: ((), kind) for name, kind in _EACH_SAMPLE.items()}
    if "past" in shapes:
        rows["past"] = ((*shapes["past"][1:2], *inputs), "f8")
    wrong = misshapen_rows(shapes, rows | {name: (outputs[name], "f8") for name in _outputs(shapes)})
    constants = () if "tip" in shapes else ("rest_vertices", "faces")
    return wrong + [name for name in constants if shapes.get(name, ())[1:] != (3,)]


def _outputs(names: Shapes | zarr.Group) -> tuple[str, ...]:
    return tuple(name for name in _TIP if name in names) if "tip" in names else _SURFACE


SIMULATION = StoreKind(
    name="simulation",
    schema="softform/simulation",
    version=1,
    attributes=("command", "git_revision", "created", "failures"),
    made_by="",
    misshapen=_misshapen,
)


SINGLE_SOLVER = "single"
"""Name of the solver of one sample at a time, or of a few, on the processor; older stores have no other's samples."""


class SampleStatus(IntEnum):
    """What has become of a sample."""

    PENDING = 0
    CONVERGED = 1
    FAILED = 2


class SimulationStore(ActuationStore):
    """An open store; `open_simulation` and `create_simulation` make one."""

    kind = SIMULATION

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of what was solved: `vertices`, or `tip`, `jacobian` unless tips were imported, and `centre_line`."""
        return _outputs(self._group)

    @property
    def past(self) -> Array | None:
        """Actuations before that of every sample, (n, h, m), the oldest first, NaN where not known; None: none is."""
        return self._read("past")[: len(self)] if "past" in self._group else None

    @property
    def iterations(self) -> NDArray[np.int32]:
        """Newton iterations of every sample, (n,)."""
        return self._read("iterations")[: len(self)]

    @property
    def solve_seconds(self) -> Array:
        """Seconds spent on every sample, (n,)."""
        return self._read("solve_seconds")[: len(self)]

    @property
    def rest_vertices(self) -> Array:
        """Rest shape of a surface, (V, 3) m."""
        return self._read("rest_vertices")

    @property
    def along(self) -> Array:
        """Where the nodes of a centre line are along the body, (N,), 0 ... 1."""
        return self._read("along")

    @property
    def faces(self) -> NDArray[np.int32]:
        """Triangles over the vertices, (F, 3), normals outwards at rest."""
        return self._read("faces")

    @property
    def failures(self) -> dict[int, str]:
        """Reason of every failed sample."""
        return self._reasons("failures")

    @property
    def solved_singly(self) -> list[int]:
        """Samples that a solver of many at once left to the single one."""
        return list(self.attributes.get("solved_singly", []))

    @property
    def pending(self) -> NDArray[np.int64]:
        """Samples that have yet to be simulated."""
        return np.flatnonzero(self.status == SampleStatus.PENDING)

    def vertices(self, sample: int) -> Array:
        """Vertices of one converged sample, (V, 3) m."""
        return self._row("vertices", sample)

    def converged(self, *outputs: str) -> tuple[Array, ...]:
        """Actuations (s, m) of all converged samples, and outputs by name, by default all of `outputs`."""
        done = np.flatnonzero(self.status == SampleStatus.CONVERGED)
        names = outputs or self.outputs
        return self.actuation[done], *(np.asarray(self._array(name).oindex[done]) for name in names)

    def write(self, samples: NDArray[np.int64], solved: Solved, seconds: float) -> None:
        """Keep what became of samples (b,), `seconds` each.

        Raises:
            SoftformError: If the disk is full or cannot be written.
        """
        failed = {int(sample): reason for sample, reason in zip(samples, solved.failures, strict=True) if reason}
        found = np.array([not reason for reason in solved.failures])
        with disk_errors(self.path, SIMULATION):
            if failed:
                reasons = {str(sample): reason for sample, reason in (self.failures | failed).items()}
                self._group.attrs["failures"] = reasons
            if solved.singly is not None and solved.singly.any():
                self._group.attrs["solved_singly"] = sorted({*self.solved_singly, *samples[solved.singly].tolist()})
            for name in self.outputs if found.any() else ():
                self._array(name).oindex[samples[found]] = solved.outputs[name][found]
            self._array("iterations").oindex[samples] = solved.iterations
            self._array("solve_seconds").oindex[samples] = np.full(len(samples), seconds)
            sync(self._group)
            self._array("status").oindex[samples] = np.where(found, SampleStatus.CONVERGED, SampleStatus.FAILED)

    def note_solver(self, name: str) -> None:
        """Keep the name of a solver that simulates into it."""
        solvers = self.attributes.get("solvers", [SINGLE_SOLVER])
        if name not in solvers:
            with disk_errors(self.path, SIMULATION):
                self._group.attrs["solvers"] = [*solvers, name]

    def add(self, actuations: Array, past: Array | None = None) -> None:
        """Append pending samples for those actuations, (s, m), that the store does not hold yet after the same history.

        Args:
            actuations: (s, m).
            past: (s, h, m) before each, for a store that holds what was before.

        Raises:
            SoftformError: If the store holds histories and none are given, or the other way round, or of another
                length; or the disk is full or cannot be written.
        """
        check_past(past, actuations)
        held = self.past
        if (None if held is None else held.shape[1:]) != (None if past is None else past.shape[1:]):
            raise SoftformError(
                f"{self.path} holds {'no history' if held is None else f'the {held.shape[1]} actuations before each'}.",
                "Give samples with as much of their history, or another --output.",
            )
        keys = {key.tobytes() for key in _keys(self.actuation, held)}
        new = np.array([key.tobytes() not in keys for key in _keys(actuations, past)], dtype=bool)
        if new.any():
            with disk_errors(self.path, SIMULATION):
                known = {} if past is None else {"past": past[new]}
                self._append(actuations[new], (*self.outputs, *_EACH_SAMPLE), known)


def _keys(actuations: Array, past: Array | None) -> Array:
    """Return what tells samples apart, a row each: actuations (n, m), and pasts (n, h, m) if there are any."""
    return actuations if past is None else np.concatenate([past.reshape(len(past), -1), actuations], axis=1)


open_simulation = SimulationStore.open


def create_simulation(
    path: Path,
    robot: Robot,
    actuations: Array,
    outputs: Mapping[str, tuple[int, ...]],
    constants: dict[str, NDArray],
    block: int,
    provenance: dict[str, Any],
    past: Array | None = None,
) -> SimulationStore:
    """Make a store of pending samples; it appears at `path` complete or not at all.

    Args:
        path: Directory of the store, which must not exist.
        robot: Robot that is simulated.
        actuations: (n, m).
        outputs: Shapes of one sample's outputs, by name.
        constants: Arrays of the body, such as `rest_vertices` and `faces`.
        block: Samples that are written together.
        provenance: `command, git_revision, created`, and how the actuations were chosen.
        past: (n, h, m) before each, the oldest first, NaN where not known; None if what was before is not told.

    Raises:
        SoftformError: If the past does not fit the actuations, or the disk is full or cannot be written.
    """
    check_past(past, actuations)
    samples = len(actuations)
    with new_group(path, SIMULATION, robot) as group:
        group.attrs.update({"failures": {}, "solvers": []} | provenance)
        chunks = (max(4096, samples), actuations.shape[1])
        actuation = group.create_array(
            "actuation", shape=actuations.shape, dtype="f8", chunks=chunks, fill_value=np.nan
        )
        actuation[:] = actuations
        if past is not None:
            group.create_array("past", data=past, chunks=(chunks[0], *past.shape[1:]), fill_value=np.nan)
        for name, shape in outputs.items():
            group.create_array(name, shape=(samples, *shape), chunks=(block, *shape), dtype="f8", fill_value=np.nan)
        for name, dtype in _EACH_SAMPLE.items():
            group.create_array(name, shape=(samples,), chunks=(_ROWS,), dtype=dtype)
        for name, values in constants.items():
            group.create_array(name, data=values)
    return open_simulation(path, robot, writable=True)
