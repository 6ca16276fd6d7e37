"""The simulator of an imported body: the law between its imported shapes, which stores of them give."""

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.bodies.imported.description import ImportedBody
from softform_core.bodies.imported.interpolation import InterpolatedBody
from softform_core.bodies.imported.law import Law, interpolated
from softform_core.errors import SoftformError
from softform_core.paths import data_dir
from softform_core.simulation.store import open_simulation


def simulator(body: ImportedBody) -> InterpolatedBody:
    """Between the imported shapes.

    Raises:
        SoftformError: If they are not there, are another robot's, or are too few.
    """
    return between_shapes(body, None)


def between_shapes(body: ImportedBody, frames: Path | None) -> InterpolatedBody:
    """Between the imported shapes, moved as the scans in the store `frames` show it, if one is given.

    Raises:
        SoftformError: If shapes are not there, are another robot's, or are too few, or scans cannot be read.
    """
    from softform_core.bodies.imported.scanned import scanned_law  # which reads stores of frames

    owner = body.owner
    path, kind = data_dir() / owner.name / "simulation.zarr", "shapes" if body.patches else "tips"
    if not path.exists():
        raise SoftformError(
            f"The body of '{owner.name}' is imported, and its {kind} are not at {path}.",
            f"Import them, without --output: ./softform import {kind} TABLE --robot ROBOT",
        )
    store = open_simulation(path)
    if store.attributes["robot_fingerprint"] != owner.fingerprint:
        raise SoftformError(
            f"{path} was imported for another description of '{owner.name}'.", "Move it away, and import again."
        )
    if len(store.pending):
        raise SoftformError(f"The import into {path} is not finished.", f"Go on with: {store.attributes['command']}")
    made = f"{store.attributes['created']} {store.attributes['source_sha256']}"
    data = _data(path, made, bool(body.patches), owner.rest)
    law, scans = data.law, 0
    if frames is not None:
        law, scans = scanned_law(frames, law, data.faces)
    told = f"between {len(data.actuation)} imported {kind}"
    told += f", moved as {scans} scans of the robot show" if scans else ", and no scans of the robot move it"
    return InterpolatedBody(law, data.actuation, data.rest, owner.actuation_map, data.faces, told)


class _Data(NamedTuple):
    """Imported samples: a law through them, actuations (n, m) and that at rest (m,), and triangles (F, 3)."""

    law: Law
    actuation: Array
    rest: Array
    faces: NDArray[np.int32]


@lru_cache(maxsize=2)
def _data(path: Path, made: str, has_surface: bool, at_rest: tuple[float, ...]) -> _Data:
    """Samples of a store, kept for the next call: of thousands a law takes seconds."""
    store = open_simulation(path)
    actuation, values = store.converged()[:2]
    if has_surface:
        rest = actuation[np.abs(values - store.rest_vertices).max(axis=(1, 2)).argmin()]
        return _Data(interpolated(actuation, values), actuation, rest, store.faces)
    points = np.zeros((len(values), 1, 3))
    points[:, 0, : values.shape[1]] = values
    rest = actuation[np.linalg.norm(actuation - at_rest, axis=1).argmin()]
    return _Data(interpolated(actuation, points), actuation, rest, np.empty((0, 3), dtype=np.int32))
