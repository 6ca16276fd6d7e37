"""The imported body as one that can be asked for shapes: between the imported ones a smooth law, no physics.

Radial basis functions over the actuation go through every imported shape; the networks that learn from the same shapes
are another law. On the virtual rig the body also moves as scans of the true robot show it
(`bodies.imported.scanned`), so that a rehearsal meets the gap that the bench has.
"""

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import RBFInterpolator

from softform_core.arrays import Array
from softform_core.bodies.imported.description import ImportedBody
from softform_core.errors import SoftformError
from softform_core.paths import data_dir
from softform_core.robots.actuation_map import ActuationMap
from softform_core.robots.description import Description
from softform_core.simulation.hessian import BlockHessian
from softform_core.simulation.store import open_simulation

_MOST_AT_ONCE, _NEIGHBOURS = 1000, 100
"""Of more shapes than these only so many that are nearest count at a time."""
_BEYOND = 0.25
"""Of the imported range: further outside nothing is known, and the shape stays as it is."""
_STEP = 1e-4
"""Of the imported range, for derivatives."""

Law = Callable[[Array], Array]
"""From actuations (n, m) to values (n, …)."""


class Reality(Description):
    """How the imported body on the virtual rig differs from the imported shapes.

    Attributes:
        scans: Whether it moves as the robot's scans show, `data/ROBOT/frames.zarr`, where there are any.
    """

    scans: bool = True


class InterpolatedBody:
    """The `simulation.simulated_body.SimulatedBody` of an imported one: its unknowns are its actuators' values.

    Args:
        law: Points (n, P, 3) m at actuations (n, m).
        actuation: Imported actuations (s, m).
        rest: That of the resting shape, (m,).
        actuation_map: From actuations to values of the actuators.
        faces: (F, 3) over the points.
        told: Where its shapes come from, in a sentence.
    """

    batch, largest_step, rounding, is_slack = 64, np.inf, 0.0, False

    def __init__(
        self, law: Law, actuation: Array, rest: Array, actuation_map: ActuationMap, faces: NDArray[np.int32], told: str
    ) -> None:
        self._law, self._map, self.faces, self.told = law, actuation_map, faces, told
        self.frames = {} if len(faces) else {"tip": 0}
        self.rest = self.unloaded = np.asarray(actuation_map.actuators_of(rest), dtype=np.float64)
        self._span = np.ptp(actuation, axis=0)
        self._low, self._high = (
            actuation.min(axis=0) - _BEYOND * self._span,
            actuation.max(axis=0) + _BEYOND * self._span,
        )
        self._stiffness = 1.0 / float(np.ptp(actuation_map.actuators_of(actuation), axis=0).max()) ** 2

    def points(self, unknowns: Array) -> Array:
        """Points (n, P, 3) m under values of the actuators (n, k)."""
        return self._law(np.clip(self._map.actuation_of(unknowns), self._low, self._high))

    def moved_points(self, unknowns: Array, moves: Array) -> Array:
        """Derivatives (n, P, 3, m) m of the points as the values of the actuators (n, k) move by `moves` (n, k, m)."""
        scale = np.abs(moves).max(axis=1)
        steps = _STEP * self._span.max() / np.where(scale > 0.0, scale, 1.0)
        there, back = (
            np.stack(
                [self.points(unknowns + way * step[:, None] * move) for step, move in _each(steps, moves)], axis=-1
            )
            for way in (1.0, -1.0)
        )
        return np.asarray((there - back) / (2.0 * steps[:, None, None, :]))

    def tolerance(self, actuators: Array) -> Array:
        """Of the gradient, (n,): a millionth of the range."""
        return np.full(len(actuators), 1e-6 * np.sqrt(self._stiffness))

    def start(self, actuators: Array) -> Array:
        """The values themselves."""
        return np.array(actuators, dtype=np.float64)

    def energy(self, unknowns: Array, actuators: Array) -> Array:
        """Of a spring between unknowns and values, (n,)."""
        return 0.5 * self._stiffness * ((unknowns - actuators) ** 2).sum(axis=1)

    def derivatives(self, unknowns: Array, actuators: Array) -> tuple[Array, BlockHessian]:
        """Gradient (n, k) and Hessian of the spring."""
        count, inputs = unknowns.shape
        blocks = np.broadcast_to(self._stiffness * np.eye(inputs), (count, 1, inputs, inputs))
        return self._stiffness * (unknowns - actuators), BlockHessian(np.array(blocks))

    def load_derivative(self, unknowns: Array, actuators: Array) -> Array:
        """Derivative of the gradient by the values, (n, k, k)."""
        return np.tile(-self._stiffness * np.eye(unknowns.shape[1]), (len(unknowns), 1, 1))

    def has_run_away(self, unknowns: Array) -> NDArray[np.bool_]:
        """Never."""
        return np.zeros(len(unknowns), dtype=bool)


def _each(steps: Array, moves: Array) -> list[tuple[Array, Array]]:
    """Step (n,) and move (n, k) of each of the m directions."""
    return [(steps[:, place], moves[:, :, place]) for place in range(moves.shape[2])]


def simulator(body: ImportedBody) -> InterpolatedBody:
    """Between the imported shapes.

    Raises:
        SoftformError: If they are not there, are another robot's, or are too few.
    """
    return _interpolated(body, None)


def real_simulator(body: ImportedBody, reality: Reality) -> InterpolatedBody:
    """As `simulator`, moved as the scans of the true robot show it if there are any.

    Raises:
        SoftformError: For the reasons of `simulator`, or if the scans cannot be read.
    """
    frames = data_dir() / body.owner.name / "frames.zarr"
    return _interpolated(body, frames if reality.scans and body.patches and frames.exists() else None)


def drawn_reality(body: ImportedBody, draw: np.random.Generator) -> NoReturn:
    """Rejected.

    Raises:
        SoftformError: Always: nothing is known of how such bodies differ.
    """
    raise SoftformError(
        "Realities of an imported body cannot be drawn: only data of it are known.",
        "Use the reality default, which replays its scans, or leave out the prior.",
    )


def _interpolated(body: ImportedBody, frames: Path | None) -> InterpolatedBody:
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


def interpolated(actuation: Array, values: Array, kernel: str = "cubic", degree: int = 1) -> Law:
    """A law through values (s, …) at actuations (s, m).

    Raises:
        SoftformError: If they are too few, or actuations lie on a line or plane.
    """
    at, group = np.unique(actuation, axis=0, return_inverse=True)
    flat = np.zeros((len(at), values[0].size))
    np.add.at(flat, group.ravel(), values.reshape(len(values), -1))
    flat /= np.bincount(group.ravel())[:, None]  # of samples that repeat an actuation the mean
    low, span = at.min(axis=0), np.maximum(np.ptp(at, axis=0), np.finfo(float).tiny)
    neighbours = _NEIGHBOURS if len(at) > _MOST_AT_ONCE else None
    try:
        found = RBFInterpolator((at - low) / span, flat, neighbours, kernel=kernel, degree=degree)
        found(np.zeros((1, len(span))))
    except (ValueError, np.linalg.LinAlgError) as error:
        raise SoftformError(
            f"Nothing lies between {len(actuation)} samples of {len(span)} actuations ({error}).",
            "Import more, in which each actuation changes on its own.",
        ) from error
    return lambda at: np.asarray(found((at - low) / span)).reshape(len(at), *values.shape[1:])
