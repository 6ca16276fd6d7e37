"""Tries each of the meshes as a user would: reads, meshes and moves it."""

import logging
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from softform_core.bodies.mesh.files import bounds_of
from softform_core.bodies.mesh.source import states_unit
from softform_core.errors import SoftformError
from softform_core.robots.body import body_class
from softform_core.simulation.newton import find_equilibria
from softform_core.simulation.simulated_body import rest_points
from softform_core.units import AnyUnit
from softform_studies.meshes.made import Case, Fields, cases

_PRESSURE, _PULL = 8e3, 3e-3
"""Pa of a chamber, m of a cable: enough to be seen."""
_GRIPPED, _CELL = 0.15, 0.08
"""Share of the length that a grip holds at either end, and edge of the tetrahedra over it."""
_CELLS = 400
"""Cubes of that edge in the box around a body at most: a thick one would take minutes for each factor."""
_BENT, _BENDING = 3, 0.1
"""Input from the last, a turn about x of the upper grip, and that, rad."""
RUBBER = {
    "kind": "mesh",
    "density": 1080.0,
    "material": {"law": "yeoh", "coefficients": [42e3, 1.6e3, 3e3]},
    "gravity": (0.0, 0.0, 9.81),
}
"""Fields of a body of a soft rubber that hangs."""


def meshes(report: Callable[[str], None]) -> dict[str, object]:
    """Figures of all meshes: how many work, how many are told, and each by itself.

    Args:
        report: Takes a line for each.
    """
    logging.getLogger("softform_core").setLevel(logging.ERROR)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for case in cases():
            rows.append(tried(case, Path(folder)))
            report(f"{case.name}: {rows[-1]['told'] or 'works'}")
    sound, faulty = ([row for row in rows if row["is_sound"] is wanted] for wanted in (True, False))
    return {
        "meshes": len(rows),
        "sound": len(sound),
        "sound_that_work": sum(not row["told"] for row in sound),
        "faulty": len(faulty),
        "faulty_that_are_told": sum(bool(row["told"]) for row in faulty),
        "rows": rows,
    }


def files(paths: Sequence[Path], unit: AnyUnit, report: Callable[[str], None]) -> dict[str, object]:
    """Figures of files of anybody's: how many can be held at both ends and bent, and what is told of the others.

    Args:
        paths: Files of CAD, closed surfaces or tetrahedra.
        unit: Of those that do not state theirs.
        report: Takes a line for each.
    """
    logging.getLogger("softform_core").setLevel(logging.ERROR)
    rows = []
    for path in paths:
        case = Case(path.name, lambda _, path=path: _held(path, unit))  # type: ignore[misc]  # bound where it is made
        rows.append(tried(case, path.parent))
        report(f"{path.name}: {rows[-1]['told'] or 'works'}")
    return {"meshes": len(rows), "that_work": sum(not row["told"] for row in rows), "rows": rows}


def _held(path: Path, unit: AnyUnit) -> Fields:
    """Fields of a body that two grips hold by the ends of its longest axis."""
    low, high = bounds_of(path, unit)
    axis = int(np.argmax(high - low))
    # The axis of the file that is up becomes z; x and y follow in turn.
    low, high = np.roll(low, 2 - axis), np.roll(high, 2 - axis)
    ends, part = 1e-3 * (high - low), _GRIPPED * (high[2] - low[2])
    grips = []
    for name, begin, end in (("below", low[2] - ends[2], low[2] + part), ("above", high[2] - part, high[2] + ends[2])):
        corners = {"begin": (*(low[:2] - ends[:2]), begin), "end": (*(high[:2] + ends[:2]), end)}
        grips.append({"load": "grip", "name": name} | corners)
    is_volume = path.suffix.lower() in (".msh", ".vtk", ".vtu")
    cell = max(_CELL * (high - low).max(), float(np.cbrt(np.prod(high - low) / _CELLS)))
    size = {} if is_volume else {"mesh_size": float(cell)}
    of_unit = {} if states_unit(path.name) else {"unit": unit}
    return {"file": path.name, "up": "xyz"[axis], "surface": "whole", "supports": [], "loads": grips} | size | of_unit


def tried(case: Case, folder: Path) -> dict[str, object]:
    """What comes of a mesh.

    Args:
        case: The mesh.
        folder: Takes its file.

    Returns:
        Its name, whether it is sound, what is told of it (nothing, if it works), its points,
        how far it moves under each input, mm, and core seconds.
    """
    begin = time.process_time()
    row: dict[str, object] = {"name": case.name, "is_sound": case.is_sound, "told": ""}
    try:
        fields = case.make(folder)
        body = body_class("mesh").model_validate(RUBBER | fields, context={"folder": folder})
        problem = body.simulator()
        cables = len(fields.get("loads", []))  # of the chambers first, then of these
        values = np.diag([_PRESSURE] * (len(body.inputs) - cables) + [_PULL] * cables)
        if fields.get("surface") == "whole":
            values = np.zeros((1, len(body.inputs)))
            values[0, -_BENT] = _BENDING
        found = find_equilibria(problem, values)
        if any(found.failures):
            return row | {"told": "; ".join(filter(None, found.failures))}
        resting = rest_points(problem)
        moved = problem.points(found.unknowns) - resting
    except ValidationError as error:
        return row | {"told": "; ".join(one["msg"] for one in error.errors())}
    except SoftformError as error:
        return row | {"told": str(error)}
    return row | {
        "points": len(resting),
        "moves_mm": [round(1e3 * float(np.linalg.norm(one, axis=1).max()), 2) for one in moved],
        "core_seconds": round(time.process_time() - begin, 1),
    }
