"""Zarr stores whose rows are keyed by an actuation: what simulated shapes and captured frames have in common."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import zarr
from numpy.typing import NDArray

from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_core.stores.zarr_stores import StoreKind, open_group, sync


class ActuationStore:
    """An open store with an actuation and a status a row; subclasses add what was found under it, and their kind."""

    kind: ClassVar[StoreKind]

    @classmethod
    def open(cls, path: Path | str, robot: Robot | None = None, *, writable: bool = False) -> Self:
        """Open a store, which must be of just this robot if one is given.

        Raises:
            SoftformError: If there is no store, or its schema, version, arrays or robot are other than expected.
        """
        path = Path(path)
        return cls(path, open_group(path, cls.kind, robot, writable=writable))

    def __init__(self, path: Path, group: zarr.Group) -> None:
        self.path = path
        self._group = group

    def __len__(self) -> int:
        return len(self.actuation)

    @property
    def attributes(self) -> dict[str, Any]:
        """Schema and provenance."""
        return dict(self._group.attrs)

    @property
    def actuation(self) -> NDArray[np.float64]:
        """Actuation of every row, (n, k)."""
        actuation = self._read("actuation")
        return actuation[np.isfinite(actuation).all(axis=1)]  # a growth that was cut short leaves rows of NaN

    @property
    def status(self) -> NDArray[np.uint8]:
        """Status of every row, (n,)."""
        return self._read("status")[: len(self)]

    def _array(self, name: str) -> zarr.Array:
        array = self._group[name]
        assert isinstance(array, zarr.Array)
        return array

    def _read(self, name: str, rows: Any = ...) -> NDArray:
        """Return an array, or some of its rows.

        Raises:
            SoftformError: If its files are damaged.
        """
        try:
            return np.asarray(self._array(name)[rows])
        except Exception as error:  # each codec raises its own
            raise SoftformError(
                f"The array '{name}' of {self.path} is damaged: {error}.", "Take a copy, or make the store again."
            ) from error

    def _row(self, name: str, number: int) -> NDArray:
        return self._read(name, number)

    def _reasons(self, attribute: str) -> dict[int, str]:
        """Return why rows are not to be used, by row."""
        return {int(row): str(reason) for row, reason in self.attributes[attribute].items()}

    def _append(
        self, actuations: NDArray[np.float64], names: Iterable[str], known: Mapping[str, NDArray] | None = None
    ) -> None:
        """Grow by rows for actuations, (m, k).

        Args:
            actuations: (m, k).
            names: Arrays with a row each, to be filled later.
            known: Arrays with a row each, by name, and their new rows (m, ...).

        Raises:
            OSError: If the disk is full or cannot be written.
        """
        before = len(self)
        after = before + len(actuations)
        # `actuation` grows last, on disk, too: its finite rows are the store's length, so a growth cut short is done
        # again.
        for name in names:
            array = self._array(name)
            array.resize((after, *array.shape[1:]))
        for name, rows in (known or {}).items():
            array = self._array(name)
            array.resize((after, *rows.shape[1:]))
            array[before:] = rows
        sync(self._group)
        actuation = self._array("actuation")
        actuation.resize((after, actuations.shape[1]))
        actuation[before:] = actuations
        sync(self._group)
