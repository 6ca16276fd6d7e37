"""Imported data on trial: files as another program would export them, imported, learned from, and judged.

- tips: a table "3 pressures -> tip" of thousands of rows. N_fk learns from some of them; the others judge it, and the
  simulator judges what inverse kinematics commands for them.
- shapes: 18 meshes of a sheet as OBJ files whose faces turn either way. Other shapes of the sheet judge N_fk.
"""

import itertools
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import trimesh
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.forward.tip_model import load_tip_model
from softform_core.importing.shapes import import_shapes
from softform_core.importing.tips import import_tips
from softform_core.inverse.follow_path import follow_path, start_near
from softform_core.networks.mlp_weights import extract_mlp
from softform_core.robots import Robot, load_robot
from softform_core.training.forward_kinematics import RECIPES, train_forward_kinematics
from softform_core.training.shapes import load_training_shapes
from softform_core.training.tips import learn_tip_kinematics, workspace_width
from softform_core.units import MM_PER_M
from softform_rig.gap import random_actuations
from softform_studies.sim_to_real.judge import JUDGED_POINTS, search_tree
from softform_studies.waypoints.bench_waypoints import simulated_tips

_PA_PER_KPA = 1e3
_BLOCK = 1000
_LED_TO = 500
"""Held-out tips that inverse kinematics is asked for."""
_SHEET_CELLS, _SHEET_SIDE = 40, 100.0
"""Cells and side length, mm, of the sheet of the shapes."""
_JUDGED = 30
"""Number of other shapes of the sheet that are judged."""

_TIPS_ROBOT = """
name: imported_tips
title: The three-chamber actuator, as if simulated elsewhere
source: a table
body: {kind: imported, inputs_count: 3, width: 0.042, length: 0.042, height: 0.116}
actuators: {minimum: 0.0, maximum: 60000.0, slew_rate: 20000.0}
devices: [{name: board, channels: [0, 1, 2]}]
frames: {tip: {segments: 16, forward_kinematics: [35, 35], jacobian: [35, 35]}}
"""
_SHAPES_ROBOT = """
name: imported_sheet
title: A sheet with two bumps, as if simulated elsewhere
source: OBJ files
body: {kind: imported, inputs_count: 2, width: 0.1, length: 0.1, surface: sheet}
actuators: {minimum: 0.0, maximum: 5000.0, slew_rate: 4000.0}
devices: [{name: board, channels: [0, 1]}]
surfaces: [{patch: sheet, rows: 12, columns: 12, degree: 3}]
"""


def imported_tips(rows: int, learned: int, seed: int, say: Callable[[str], None]) -> dict[str, float]:
    """Import `learned` of so many rows, train N_fk on them, and judge by the others.

    Returns:
        Errors of N_fk and of the simulated tip that inverse kinematics leads to (from the nearest of a coarse grid, one
        target at a time), in percent of the workspace's width; seconds.

    Raises:
        SoftformError: If the actuator has no equilibrium somewhere.
    """
    original = load_robot("three_chamber", "tip")
    actuations = random_actuations(original, rows, seed)
    say(f"tips: {rows} rows by the simulator")
    blocks = np.array_split(actuations, max(1, rows // _BLOCK))
    tips = np.concatenate([simulated_tips(original, block) for block in blocks])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        robot = _robot(folder, _TIPS_ROBOT)
        table = np.concatenate([actuations / _PA_PER_KPA, MM_PER_M * tips], axis=1)[:learned]
        np.savetxt(folder / "fem.csv", table, delimiter=",", header="p1,p2,p3,x,y,z", comments="", fmt="%.9g")
        began = time.monotonic()
        columns = ["p1", "p2", "p3"], ["x", "y", "z"]
        import_tips(robot, folder / "fem.csv", *columns, "mm", "kPa", folder / "tips.zarr", progress=False)
        imported = time.monotonic()
        say(f"  N_fk from {learned}")
        learn_tip_kinematics(robot, folder / "tips.zarr", folder / "model", seed)
        trained = time.monotonic()
        model = load_tip_model(robot, folder / "model")
    width = workspace_width(MM_PER_M * tips)
    others, truth = actuations[learned:], MM_PER_M * tips[learned:]
    wrong = 100.0 * np.linalg.norm(model.tip(others) - truth, axis=1) / width
    say(f"  inverse kinematics to {_LED_TO} of the others")
    targets = truth[:_LED_TO]
    commanded = np.array([follow_path(model, [target], start_near(model, target)).actuations[0] for target in targets])
    off = 100.0 * np.linalg.norm(MM_PER_M * simulated_tips(original, commanded) - targets, axis=1) / width
    return {
        "rows": rows,
        "learned_from": learned,
        "workspace_width_mm": round(width, 2),
        "forward_kinematics_mean_percent": round(float(wrong.mean()), 4),
        "forward_kinematics_max_percent": round(float(wrong.max()), 4),
        "inverse_kinematics_targets": len(targets),
        "inverse_kinematics_mean_percent": round(float(off.mean()), 4),
        "inverse_kinematics_max_percent": round(float(off.max()), 4),
        "import_s": round(imported - began, 1),
        "train_s": round(trained - imported, 1),
    }


def imported_shapes(seed: int, say: Callable[[str], None]) -> dict[str, float]:
    """Import 18 shapes of a sheet with mixed winding, train N_fk on them, and judge by others of the sheet.

    Returns:
        Distances of the predicted surface from the true one, mm, beside the largest displacement of a shape (mean).

    Raises:
        SoftformError: If training fails.
    """
    pairs = list(itertools.product(np.linspace(0.0, 5.0, 6), [0.0, 2.5, 5.0]))
    random = np.random.default_rng(seed)
    say(f"shapes: {len(pairs)} meshes")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        robot = _robot(folder, _SHAPES_ROBOT)
        for number, pressures in enumerate(pairs):
            vertices, faces = _sheet(np.array(pressures))
            is_turned = random.random(len(faces)) < 1.0 / 3.0
            faces = np.where(is_turned[:, None], faces[:, ::-1], faces)
            trimesh.Trimesh(vertices, faces, process=False).export(folder / f"{number}.obj")
        rows = [f"{first},{second},{number}.obj" for number, (first, second) in enumerate(pairs)]
        (folder / "fem.csv").write_text("\n".join(["p1,p2,file", *rows]), encoding="utf-8")
        files = folder / "fem.csv", ["p1", "p2"], "file"
        import_shapes(robot, *files, "mm", "kPa", folder / "sheet.zarr", progress=False)
        shapes = load_training_shapes(robot, folder / "sheet.zarr")
        say("  N_fk")
        trained = train_forward_kinematics(robot, shapes, RECIPES["default"], seed, folder / "runs")
    others = random.uniform(0.0, 5.0, (_JUDGED, 2))
    places = robot.patches.samples(JUDGED_POINTS)
    predicted = ForwardPipeline(extract_mlp(trained.network), places, None, robot.patches).points(_PA_PER_KPA * others)
    sheets = [_sheet(pressures) for pressures in others]
    wrong = np.array(
        [
            search_tree(vertices / MM_PER_M, triangles).query(points).distances
            for points, (vertices, triangles) in zip(predicted, sheets, strict=True)
        ]
    )
    return {
        "shapes": len(pairs),
        "largest_displacement_mm": round(float(np.mean([vertices[:, 2].max() for vertices, _ in sheets])), 2),
        "forward_kinematics_mean_mm": round(float(wrong.mean()), 4),
        "forward_kinematics_max_mm": round(float(wrong.max()), 3),
    }


def _robot(folder: Path, description: str) -> Robot:
    path = folder / "robot.yaml"
    path.write_text(description, encoding="utf-8")
    return load_robot(path)


def _sheet(pressures: Array) -> tuple[Array, NDArray[np.int64]]:
    """Return vertices (V, 3) mm and faces (F, 3) of a sheet with two bumps under pressures (2,) kPa."""
    side = _SHEET_CELLS + 1
    along = np.linspace(-0.5 * _SHEET_SIDE, 0.5 * _SHEET_SIDE, side)
    x, y = (axis.ravel() for axis in np.meshgrid(along, along))
    height = sum(
        2.0 * pressure * np.exp(-((x - at) ** 2 + y**2) / 600.0)
        for pressure, at in zip(pressures, (-25.0, 25.0), strict=True)
    )
    corner = (np.arange(_SHEET_CELLS)[:, None] * side + np.arange(_SHEET_CELLS)).ravel()
    below = np.stack([corner, corner + 1, corner + side + 1], axis=1)
    above = np.stack([corner, corner + side + 1, corner + side], axis=1)
    return np.stack([x, y, height], axis=1), np.concatenate([below, above])
