"""Tries each of the meshes as a user would: reads, meshes and moves it."""

import logging
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from softform_core.errors import SoftformError
from softform_core.robots.body import body_class
from softform_core.simulation.newton import find_equilibria
from softform_core.simulation.simulated_body import rest_points
from softform_studies.meshes.made import Case, cases

_PRESSURE, _PULL = 8e3, 3e-3
"""Pa of a chamber, m of a cable: enough to be seen."""
_RUBBER = {
    "kind": "mesh",
    "density": 1080.0,
    "material": {"law": "yeoh", "coefficients": [42e3, 1.6e3, 3e3]},
    "gravity": (0.0, 0.0, 9.81),
}


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
        body = body_class("mesh").model_validate(_RUBBER | fields, context={"folder": folder})
        problem = body.simulator()
        cables = len(fields.get("loads", []))  # of the chambers first, then of these
        values = np.diag([_PRESSURE] * (len(body.inputs) - cables) + [_PULL] * cables)
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
