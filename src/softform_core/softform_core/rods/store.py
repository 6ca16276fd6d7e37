"""Simulated tips and Jacobians on disk: one Zarr v3 group a robot, SI units.

Arrays: `actuation` (n, m) Pa, `tip` (n, d) m, `jacobian` (n, d, m) m/Pa, `status` (n,). Attributes: schema and
provenance. Rows are written in blocks of one chunk each, the status last, so that whatever stops a run leaves a store
in which everything marked as done is there.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softform_core.robots import Robot
from softform_core.simulation.store import SampleStatus
from softform_core.stores.actuation_store import ActuationStore
from softform_core.stores.zarr_stores import Shapes, StoreKind, disk_errors, new_group, open_group

Array = NDArray[np.float64]

BLOCK = 512
"""Rows that are simulated, written and marked as done together."""


def _misshapen(shapes: Shapes) -> list[str]:
    expected = {"actuation": 2, "tip": 2, "jacobian": 3, "status": 1}
    wrong = [name for name, dimensions in expected.items() if len(shapes.get(name, ())) != dimensions]
    if wrong:
        return wrong
    samples, actuations = shapes["actuation"]
    wrong += [name for name in ("tip", "jacobian", "status") if shapes[name][0] != samples]
    return wrong + ["jacobian"] * (shapes["jacobian"][1:] != (shapes["tip"][1], actuations))


TIPS = StoreKind(
    name="tip simulation",
    schema="softform/tip-simulation",
    version=1,
    attributes=("segments", "difference_pa", "command", "git_revision", "created"),
    made_by="softform simulate",
    misshapen=_misshapen,
)


class TipStore(ActuationStore):
    """An open store; `open_tips` and `create_tips` make one."""

    @property
    def pending_blocks(self) -> list[slice]:
        """Blocks of rows of which any has yet to be simulated."""
        status = self.status
        blocks = (slice(begin, min(begin + BLOCK, len(status))) for begin in range(0, len(status), BLOCK))
        return [block for block in blocks if (status[block] == SampleStatus.PENDING).any()]

    def converged(self) -> tuple[Array, Array, Array]:
        """Actuations (s, m) Pa, tips (s, d) m and Jacobians (s, d, m) m/Pa of all converged samples."""
        done = self.status == SampleStatus.CONVERGED
        return self.actuation[done], self._read("tip")[done], self._read("jacobian")[done]

    def write(self, block: slice, tips: Array, jacobians: Array) -> None:
        """Keep a block's tips (b, d) m and Jacobians (b, d, m) m/Pa; rows with NaN count as failed.

        Raises:
            SoftformError: If the disk is full or cannot be written.
        """
        found = np.isfinite(tips).all(axis=1) & np.isfinite(jacobians).all(axis=(1, 2))
        with disk_errors(self.path, TIPS):
            self._array("tip")[block] = tips
            self._array("jacobian")[block] = jacobians
            self._array("status")[block] = np.where(found, SampleStatus.CONVERGED, SampleStatus.FAILED)


def create_tips(path: Path, robot: Robot, actuations: Array, provenance: dict[str, object]) -> TipStore:
    """Make a store of pending samples; it appears at `path` complete or not at all.

    Args:
        path: Directory of the store, which must not exist.
        robot: Robot that is simulated.
        actuations: (n, m) Pa.
        provenance: `segments, difference_pa, command, git_revision, created`.

    Raises:
        SoftformError: If the disk is full or cannot be written.
    """
    count, inputs, outputs = len(actuations), robot.degrees_of_freedom, robot.tip_dimensions
    with new_group(path, TIPS, robot) as group:
        group.attrs.update(provenance)
        group.create_array("actuation", data=actuations)
        for name, shape in (("tip", (outputs,)), ("jacobian", (outputs, inputs))):
            group.create_array(name, shape=(count, *shape), chunks=(BLOCK, *shape), dtype="f8", fill_value=np.nan)
        group.create_array("status", shape=(count,), chunks=(BLOCK,), dtype="u1")
    return open_tips(path, robot, writable=True)


def open_tips(path: Path | str, robot: Robot | None = None, *, writable: bool = False) -> TipStore:
    """Open a store of simulated tips.

    Raises:
        SoftformError: If there is no store, or its schema, version, arrays or robot are other than expected.
    """
    path = Path(path)
    return TipStore(path, open_group(path, TIPS, robot, writable=writable))
