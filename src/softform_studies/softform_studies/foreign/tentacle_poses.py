"""Poses of a real soft tentacle, held against a table: 22 poses, two tendons, markers by motion capture.

Source, licence (MIT) and caveats stand beside the table, in `tentacle/README.md` and `tentacle/LICENSE`.
"""

import csv
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError

MARKERS = ("m1", "m2", "m3", "m4")
"""Markers from the base on; the last one sits on the tip."""

_TENSIONS = ("tension_1_N", "tension_2_N")
_LATER_SESSION = "B"


@dataclass(frozen=True, eq=False)
class Poses:
    """n poses at rest; SI units.

    Attributes:
        names: (n,) of the recordings.
        tensions: (n, 2) commanded tensions of the tendons, N.
        is_later: (n,) whether a pose belongs to the later session, before which a marker was attached anew.
        markers: (n, 4, 3) places of the markers in the body's frame, m, whose z points up.
    """

    names: NDArray[np.str_]
    tensions: Array
    is_later: NDArray[np.bool_]
    markers: Array

    def __len__(self) -> int:
        return len(self.names)

    def part(self, chosen: NDArray[np.bool_] | NDArray[np.int64]) -> "Poses":
        """Return the chosen poses."""
        return Poses(self.names[chosen], self.tensions[chosen], self.is_later[chosen], self.markers[chosen])

    @property
    def pulls_both(self) -> NDArray[np.bool_]:
        """Whether (n,) both tendons are pulled."""
        return np.asarray((self.tensions > 0.0).all(axis=1))


def read_poses(path: Path | None = None) -> Poses:
    """Read the poses of a table, that of the package by default.

    Raises:
        SoftformError: If the table cannot be read, lacks a column, or holds a value that is no finite number.
    """
    try:
        source = files(__package__) / "tentacle" / "poses.csv" if path is None else path
        rows = list(csv.DictReader(source.read_text(encoding="utf-8").splitlines()))
        numbers = np.array([[float(row[name]) for name in _columns()] for row in rows])
        names, sessions = np.array([row["file"] for row in rows]), np.array([row["session"] for row in rows])
    except (OSError, UnicodeDecodeError, KeyError, TypeError, ValueError) as error:
        raise SoftformError(
            f"No table of tentacle poses: {path or 'poses.csv of the package'}: {error!r}.",
            f"Give a CSV file with the columns file, session, {', '.join(_columns())}.",
        ) from error
    if not rows or not np.isfinite(numbers).all():
        raise SoftformError(
            f"{path}: the table of poses is empty or has a value that is no finite number.",
            "Leave out the rows in which a marker was lost.",
        )
    markers = numbers[:, len(_TENSIONS) :].reshape(len(rows), len(MARKERS), 3)
    return Poses(names, numbers[:, : len(_TENSIONS)], sessions == _LATER_SESSION, markers)


def _columns() -> tuple[str, ...]:
    return (*_TENSIONS, *(f"{marker}_{axis}_m" for marker in MARKERS for axis in "xyz"))
