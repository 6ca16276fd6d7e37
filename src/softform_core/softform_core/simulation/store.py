"""Simulated shapes on disk: one Zarr v3 group a robot, SI units.

Arrays: `actuation` (n, k) Pa, `vertices` (n, V, 3) m with one chunk a sample, `status` (n,), `iterations` (n,),
`solve_seconds` (n,), `rest_vertices` (V, 3) m, `faces` (F, 3). Attributes: schema and provenance, and `failures`
(sample -> reason). A sample's status is written after its vertices, and each chunk replaces the old one at once, so
whatever stops a run leaves a store in which everything marked as done is there.
"""

from enum import IntEnum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softform_core.robots import Robot
from softform_core.stores.actuation_store import ActuationStore
from softform_core.stores.zarr_stores import Shapes, StoreKind, disk_errors, new_group, open_group


def _misshapen(shapes: Shapes) -> list[str]:
    expected = {"actuation": 2, "vertices": 3, "status": 1, "iterations": 1, "solve_seconds": 1}
    expected |= {"rest_vertices": 2, "faces": 2}
    wrong = [name for name, dimensions in expected.items() if len(shapes.get(name, ())) != dimensions]
    if wrong:
        return wrong
    samples, vertices = shapes["actuation"][0], shapes["rest_vertices"][0]
    # An interrupted growth leaves these arrays longer than `actuation`, which counts.
    wrong = [n for n in ("vertices", "status", "iterations", "solve_seconds") if shapes[n][0] < samples]
    wrong += ["vertices"] * (shapes["vertices"][1:] != (vertices, 3))
    wrong += ["rest_vertices"] * (shapes["rest_vertices"][1] != 3) + ["faces"] * (shapes["faces"][1] != 3)
    return wrong


SIMULATION = StoreKind(
    name="simulation",
    schema="softform/simulation",
    version=1,
    attributes=("seed", "command", "git_revision", "created", "n_corners", "failures"),
    made_by="softform simulate",
    misshapen=_misshapen,
)


class SampleStatus(IntEnum):
    """What has become of a sample."""

    PENDING = 0
    CONVERGED = 1
    FAILED = 2


class SimulationStore(ActuationStore):
    """An open store; `open_simulation` and `create_simulation` make one."""

    @property
    def iterations(self) -> NDArray[np.int32]:
        """Newton iterations of every sample, (n,)."""
        return self._read("iterations")[: len(self)]

    @property
    def solve_seconds(self) -> NDArray[np.float64]:
        """Seconds spent on every sample, (n,)."""
        return self._read("solve_seconds")[: len(self)]

    @property
    def rest_vertices(self) -> NDArray[np.float64]:
        """Rest shape, (V, 3) m."""
        return self._read("rest_vertices")

    @property
    def faces(self) -> NDArray[np.int32]:
        """Triangles over the vertices, (F, 3), normals towards +z at rest."""
        return self._read("faces")

    @property
    def failures(self) -> dict[int, str]:
        """Reason of every failed sample."""
        return self._reasons("failures")

    @property
    def pending(self) -> NDArray[np.int64]:
        """Samples that have yet to be simulated."""
        return np.flatnonzero(self.status == SampleStatus.PENDING)

    def vertices(self, sample: int) -> NDArray[np.float64]:
        """Vertices of one converged sample, (V, 3) m."""
        return np.asarray(self._array("vertices")[sample])

    def converged(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Actuations (m, k) Pa and vertices (m, V, 3) m of all converged samples."""
        done = np.flatnonzero(self.status == SampleStatus.CONVERGED)
        return self.actuation[done], np.asarray(self._array("vertices").oindex[done])

    def write_converged(self, sample: int, vertices: NDArray[np.float64], iterations: int, seconds: float) -> None:
        """Keep a simulated shape.

        Raises:
            SoftformError: If the disk is full or cannot be written.
        """
        with disk_errors(self.path, SIMULATION):
            self._array("vertices")[sample] = vertices
            self._array("iterations")[sample] = iterations
            self._array("solve_seconds")[sample] = seconds
            self._array("status")[sample] = SampleStatus.CONVERGED

    def write_failed(self, sample: int, reason: str, seconds: float) -> None:
        """Keep the reason why a sample has no shape.

        Raises:
            SoftformError: If the disk is full or cannot be written.
        """
        with disk_errors(self.path, SIMULATION):
            failures = {str(key): value for key, value in self.failures.items()} | {str(sample): reason}
            self._group.attrs["failures"] = failures
            self._array("solve_seconds")[sample] = seconds
            self._array("status")[sample] = SampleStatus.FAILED

    def add(self, actuations: NDArray[np.float64]) -> None:
        """Append pending samples for those actuations, (m, k) Pa, that the store does not hold yet.

        Raises:
            SoftformError: If the disk is full or cannot be written.
        """
        held = {key.tobytes() for key in self.actuation}
        new = np.array([a for a in actuations if a.tobytes() not in held]).reshape(-1, actuations.shape[1])
        if not len(new):
            return
        with disk_errors(self.path, SIMULATION):
            self._append(new, ("vertices", "status", "iterations", "solve_seconds"))


def create_simulation(
    path: Path,
    robot: Robot,
    rest_vertices: NDArray[np.float64],
    faces: NDArray[np.int32],
    actuations: NDArray[np.float64],
    provenance: dict[str, object],
) -> SimulationStore:
    """Make a store of pending samples; it appears at `path` complete or not at all.

    Args:
        path: Directory of the store, which must not exist.
        robot: Robot that is simulated.
        rest_vertices: (V, 3) m.
        faces: (F, 3).
        actuations: (n, k) Pa.
        provenance: `seed, command, git_revision, created, n_corners`.

    Raises:
        SoftformError: If the disk is full or cannot be written.
    """
    samples, vertices = len(actuations), len(rest_vertices)
    with new_group(path, SIMULATION, robot) as group:
        group.attrs.update({"failures": {}} | provenance)
        chunks = (max(4096, samples), actuations.shape[1])
        actuation = group.create_array(
            "actuation", shape=actuations.shape, dtype="f8", chunks=chunks, fill_value=np.nan
        )
        actuation[:] = actuations
        group.create_array("vertices", shape=(samples, vertices, 3), chunks=(1, vertices, 3), dtype="f8")
        for name, kind in (("status", "u1"), ("iterations", "i4"), ("solve_seconds", "f8")):
            group.create_array(name, shape=(samples,), chunks=(max(4096, samples),), dtype=kind)
        group.create_array("rest_vertices", data=rest_vertices)
        group.create_array("faces", data=np.asarray(faces, dtype=np.int32))
    return open_simulation(path, robot, writable=True)


def open_simulation(path: Path | str, robot: Robot | None = None, *, writable: bool = False) -> SimulationStore:
    """Open a store of simulated shapes.

    Args:
        path: Directory of the store.
        robot: If given, the store must have been made for just this robot.
        writable: Whether samples will be written.

    Raises:
        SoftformError: If there is no store, or its schema, version, arrays or robot are other than expected.
    """
    path = Path(path)
    return SimulationStore(path, open_group(path, SIMULATION, robot, writable=writable))
