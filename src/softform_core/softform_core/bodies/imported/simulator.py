"""The simulators of an imported body: the law between its imported shapes, and the same moved as scans show it."""

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.bodies.imported.description import ImportedBody
from softform_core.bodies.imported.interpolation import InterpolatedBody, Law, interpolated, scanned_law
from softform_core.errors import SoftformError
from softform_core.paths import data_dir
from softform_core.provenance import to_go_on
from softform_core.robots.description import Description
from softform_core.simulation.store import open_simulation


class Reality(Description):
    """How the imported body on the virtual rig differs from the imported shapes.

    Attributes:
        scans: Whether it moves as the robot's scans show, `data/ROBOT/frames.zarr`, where there are any.
    """

    scans: bool = True


_AS_IMPORTED = Reality(scans=False)


def simulator(body: ImportedBody, reality: Reality = _AS_IMPORTED) -> InterpolatedBody:
    """Between the imported shapes, moved as the scans of the true robot show it if the reality says so.

    Raises:
        SoftformError: If shapes are not there, are another robot's, or are too few, or scans cannot be read.
    """
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
        raise SoftformError(f"The import into {path} is not finished.", f"Go on with: {to_go_on(store.attributes)}")
    made = f"{store.attributes['created']} {store.attributes['source_sha256']}"
    data = _data(path, made, bool(body.patches), owner.rest)
    law, scans, frames = data.law, 0, data_dir() / owner.name / "frames.zarr"
    if reality.scans and body.patches and frames.exists():
        law, scans = scanned_law(frames, law, data.faces)
    told = f"between {len(data.actuation)} imported {kind}"
    told += f", moved as {scans} scans of the robot show" if scans else ", and no scans of the robot move it"
    return InterpolatedBody(law, data.actuation, data.rest, owner.actuation_map, data.faces, told)


real_simulator = simulator


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
    actuation, values = store.converged("vertices" if has_surface else "tip")
    if has_surface:
        rest = actuation[np.abs(values - store.rest_vertices).max(axis=(1, 2)).argmin()]
        return _Data(interpolated(actuation, values), actuation, rest, store.faces)
    points = np.zeros((len(values), 1, 3))
    points[:, 0, : values.shape[1]] = values
    rest = actuation[np.linalg.norm(actuation - at_rest, axis=1).argmin()]
    return _Data(interpolated(actuation, points), actuation, rest, np.empty((0, 3), dtype=np.int32))


def drawn_reality(body: ImportedBody, draw: np.random.Generator) -> NoReturn:
    """Rejected.

    Raises:
        SoftformError: Always: nothing is known of how such bodies differ.
    """
    raise SoftformError(
        "Realities of an imported body cannot be drawn: only data of it are known.",
        "Use the reality default, which replays its scans, or leave out the prior.",
    )
