"""Files of small bodies for tests of `kind: mesh`: blocks of tetrahedra with holes, boxes and tubes of triangles."""

from collections.abc import Iterable, Sequence
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np

from softform_core.bodies.elements import TETRAHEDRON_EDGES
from softform_core.bodies.mesh.description import MeshBody

CELL = 0.01  # m
WITHIN = (0.015, 0.015, 0.02)
"""A place in the hole of `block`."""


def block(counts: tuple[int, int, int] = (3, 3, 4), holes: Iterable[tuple[int, int, int]] = ((1, 1, 1), (1, 1, 2))):
    """Points (V, 3) m and tetrahedra (E, 4) of a block of cubic cells of `CELL` from the origin, but for its holes."""
    shape = np.array(counts) + 1
    points = CELL * np.array(list(product(*map(range, shape))), dtype=float)
    elements = []
    for cell in product(*map(range, counts)):
        if cell in set(holes):
            continue
        for order in permutations(range(3)):
            path = np.array(cell) + np.array([np.isin(range(3), order[:step]) for step in range(4)])
            elements.append(np.ravel_multi_index(path.T, shape))
    return points, np.array(elements)


def with_middles(points, elements):
    """The same of 10 nodes each, as VTK orders them."""
    pairs = np.sort(elements[:, TETRAHEDRON_EDGES].reshape(-1, 2), axis=1)
    unique, number = np.unique(pairs, axis=0, return_inverse=True)
    middles = points[unique].mean(axis=1)
    return np.concatenate([points, middles]), np.hstack([elements, len(points) + number.reshape(-1, 6)])


def write_vtk(path: Path, points, elements) -> Path:
    """As a legacy file of text."""
    count, width = elements.shape
    lines = [
        "# vtk DataFile Version 3.0",
        "block",
        "ASCII",
        "DATASET UNSTRUCTURED_GRID",
        f"POINTS {len(points)} double",
    ]
    lines += [" ".join(map(repr, map(float, point))) for point in points]
    lines += [f"CELLS {count} {count * (width + 1)}", *(" ".join(map(str, [width, *one])) for one in elements)]
    lines += [f"CELL_TYPES {count}", *[{3: "5", 4: "10", 10: "24"}[width]] * count]
    path.write_text("\n".join(lines) + "\n")
    return path


def box(low: Sequence[float], high: Sequence[float], pieces: int = 1):
    """Triangles (T, 3, 3) of a box, outwards, of so many pieces along each edge."""
    found = []
    at = np.linspace(0.0, 1.0, pieces + 1)
    for axis, end in product(range(3), (0.0, 1.0)):
        for (u, u1), (v, v1) in product(zip(at, at[1:], strict=False), repeat=2):
            square = np.array([(u, v), (u1, v), (u1, v1), (u, v1)])
            corners = np.insert(square, 0, end, axis=1)
            corners = np.roll(corners, axis, axis=1)  # (axis, next, next but one) keep their sense
            corners = corners if end else corners[::-1]
            found += [corners[[0, 1, 2]], corners[[0, 2, 3]]]
    return np.asarray(low) + np.array(found) * np.subtract(high, low)


def write_stl(path: Path, *parts) -> Path:
    """Triangles (T, 3, 3) of all parts as a text file."""
    lines = ["solid body"]
    for a, b, c in np.concatenate(parts):
        corners = (f"vertex {x!r} {y!r} {z!r}" for x, y, z in np.array([a, b, c]).tolist())
        lines += ["facet normal 0 0 0", "outer loop", *corners, "endloop", "endfacet"]
    path.write_text("\n".join([*lines, "endsolid body", ""]))
    return path


def described(folder: Path, **fields: Any) -> MeshBody:
    """A description whose files lie in a folder."""
    body = {
        "kind": "mesh",
        "unit": "m",
        "density": 1000.0,
        "material": {"law": "yeoh", "coefficients": [50e3, 2e3, 3e3]},
        "poisson_ratio": 0.45,
        "gravity": (0, 0, 0),
    }
    return MeshBody.model_validate(body | fields, context={"folder": folder})
