"""A researcher's path: a finger of her own, simulated by another program, and sixty scans of it, to a shape reached.

The finger has three chambers. What her finite elements say, and how the one on her bench bends, are two laws in this
file; Softform gets files only. The virtual rig moves as her scans show, so that what is reached there tells of her
robot: the law of her bench judges it.
"""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from softform_client.client import Mode, ShapeClient
from softform_core.cli.main import main
from softform_core.geometry.triangle_tree import TriangleTree
from softform_core.halton import halton_actuations
from softform_core.paths import config_dir
from softform_core.shapes.shape import Shape
from softform_core.units import MM_PER_M

pytestmark = [pytest.mark.timeout(600)]

FINGER = """
name: finger
title: A finger of three chambers
source: finite elements of my own
body: {kind: imported, inputs_count: 3, width: 0.02, length: 0.02, height: 0.1, surface: tube}
actuators: {minimum: 0.0, maximum: 60000.0, slew_rate: 40000.0}
devices: [{name: openpneu, channels: [0, 2, 4]}]
surfaces: [{patch: tube, rows: 12, columns: 10, degree: 3}]
"""
AROUND, ALONG = 20, 15
SHAPES, SCANS = 64, 60
MOST = 60.0
"""kPa."""
AWAY_FROM = 2.0 * np.pi * np.arange(3) / 3.0
"""Where the chambers lie: the finger bends away from the one that is filled."""


def finger(pressures: np.ndarray, on_the_bench: bool = False) -> np.ndarray:
    """Vertices (300, 3) mm under pressures (3,) kPa: an arc of a circle, which grows and bulges."""
    filled = np.asarray(pressures) / MOST
    bulge = 0.5
    if on_the_bench:  # chambers are not alike, they begin softly, and the wall bulges more
        filled, bulge = filled * [0.90, 0.87, 0.94] + 0.08 * filled * (1.0 - filled), 0.9
    bend = -1.1 * (filled @ np.stack([np.cos(AWAY_FROM), np.sin(AWAY_FROM)], axis=1))
    angle = max(float(np.hypot(*bend)), 1e-9)
    along, around = np.linspace(0.0, angle, ALONG)[:, None], 2.0 * np.pi * np.arange(AROUND) / AROUND
    side = around - (np.arctan2(bend[1], bend[0]) if angle > 1e-8 else 0.0)
    radius = 10.0 + bulge * filled.mean() * np.sin(np.pi * along / angle)
    arc = 100.0 * (1.0 + 0.12 * filled.mean()) / angle
    out = arc * (1.0 - np.cos(along)) + radius * np.cos(side) * np.cos(along)
    across, up = radius * np.sin(side), arc * np.sin(along) - radius * np.cos(side) * np.sin(along)
    turn = around[0] - side[0]
    x, y = np.cos(turn) * out - np.sin(turn) * across, np.sin(turn) * out + np.cos(turn) * across
    return np.stack([x, y, up + 0.0 * across], axis=-1).reshape(-1, 3)


def triangles() -> np.ndarray:
    """Triangles (560, 3)."""
    along, around = np.divmod(np.arange(AROUND * (ALONG - 1)), AROUND)
    here, beside = along * AROUND + around, along * AROUND + (around + 1) % AROUND
    return np.concatenate(
        [np.stack([here, beside, beside + AROUND], axis=1), np.stack([here, beside + AROUND, here + AROUND], axis=1)]
    )


def scan(pressures: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Points (M, 3) mm on the finger of the bench, with noise, and none in a hole."""
    vertices, faces = finger(pressures, on_the_bench=True), triangles()
    points = np.einsum("nc,ncx->nx", rng.dirichlet([1, 1, 1], 3000), vertices[rng.choice(faces, 3000)])
    hole = vertices[rng.integers(len(vertices))]
    return (points + rng.normal(0.0, 0.15, points.shape))[np.linalg.norm(points - hole, axis=1) > 14.0]


def vtu(rest: np.ndarray, moves: np.ndarray) -> str:
    """A result of finite elements: the resting mesh, and the displacement as a field."""

    def array(kind: str, name: str, values: np.ndarray, width: int = 1) -> str:
        text = " ".join(f"{value:g}" for value in np.round(values, 5).ravel())
        return f'<DataArray type="{kind}" Name="{name}" NumberOfComponents="{width}" format="ascii">{text}</DataArray>'

    faces = triangles()
    cells = array("Int64", "connectivity", faces) + array("Int64", "offsets", 3 * np.arange(1, len(faces) + 1))
    return (
        f'<VTKFile type="UnstructuredGrid"><UnstructuredGrid><Piece NumberOfPoints="{len(rest)}" '
        f'NumberOfCells="{len(faces)}"><PointData>{array("Float64", "U", moves, 3)}</PointData>'
        f"<Points>{array('Float64', 'Points', rest, 3)}</Points>"
        f"<Cells>{cells}{array('UInt8', 'types', np.full(len(faces), 5))}</Cells></Piece></UnstructuredGrid></VTKFile>"
    )


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Her folder: a description, meshes and scans, each with a table."""
    place = tmp_path_factory.mktemp("lab")
    (place / "config/robots").mkdir(parents=True)
    (place / "config/robots/finger.yaml").write_text(FINGER)
    low, high = np.zeros(3), np.full(3, MOST)
    corners = np.array(list(itertools.product([0.0, MOST], repeat=3)))
    shapes = np.concatenate([corners, halton_actuations(low, high, SHAPES - 8, 0)])
    scans, rng = np.round(halton_actuations(low, high, SCANS, 500), 3), np.random.default_rng(0)
    rows = {"fem": ["p1,p2,p3,mesh"], "scans": ["p1,p2,p3,scan"]}
    for number, pressures in enumerate(shapes):
        (place / f"{number}.vtu").write_text(vtu(finger(low), finger(pressures) - finger(low)))
        rows["fem"].append(",".join([*map(str, pressures), f"{number}.vtu"]))
    for number, pressures in enumerate(scans):
        np.savetxt(place / f"{number}.xyz", scan(pressures, rng), fmt="%.3f")
        rows["scans"].append(",".join([*map(str, pressures), f"{number}.xyz"]))
    for name, lines in rows.items():
        (place / f"{name}.csv").write_text("\n".join(lines) + "\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOFTFORM_CONFIG_PATH", str(place))
        patch.setenv("SOFTFORM_DATA", str(place / "data"))
        patch.setenv("SOFTFORM_RUNS", str(place / "runs"))
        yield place


def run(*words: object) -> str:
    done = CliRunner().invoke(main, [*map(str, words), "--robot", "finger"])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture
def stack_of_her_own(stacks):
    yield stacks
    stacks.close()  # the next test may start nodes of the same names


def test_from_files_of_another_program_to_a_shape_that_her_robot_takes(lab: Path, stack_of_her_own) -> None:
    in_units = "--unit", "mm", "--actuation-unit", "kPa", "--actuation", "p1,p2,p3"
    assert f"{SHAPES} shapes of 300 vertices" in run("import", "shapes", lab / "fem.csv", *in_units)
    run("train", "fk", "--epochs", 800)
    imported = run("import", "frames", lab / "scans.csv", *in_units)
    assert "train s2r" in imported and int(imported.split(" frames, ")[0].split()[-1]) > 0.9 * SCANS, imported
    run("train", "s2r")
    run("evaluate", "--json", lab / "figures.json")
    overall = json.loads((lab / "figures.json").read_text())["overall"]
    before, after = (overall[name]["mean_mm"] for name in ("before", "after"))
    assert after < 0.5 * before, (before, after)

    stack = stack_of_her_own.launched_with({"robot": "finger"})
    assert "no physics: it lies between 64 imported shapes, moved as " in stack.log
    hidden = np.array([47.0, 12.0, 30.0])
    wanted = finger(hidden, on_the_bench=True)
    target = Shape.from_mesh(wanted / MM_PER_M, triangles())
    with ShapeClient("/softform", timeout=30.0) as client:
        result = client.reach(target, Mode.CLOSED_LOOP)
    assert result.measured.valid
    measured = MM_PER_M * result.measured.mean_error
    taken = finger(np.array(result.actuators.value) / 1e3, on_the_bench=True)
    off = np.linalg.norm(taken - TriangleTree(wanted[triangles()]).query(taken)[1], axis=1).mean()
    alone = np.linalg.norm(finger(hidden) - TriangleTree(wanted[triangles()]).query(finger(hidden))[1], axis=1).mean()
    assert measured < 0.35 and off < 0.5 * alone, (measured, off, alone)


def test_the_reality_of_imported_bodies_ships() -> None:
    assert sorted(path.stem for path in (config_dir() / "realities/imported").glob("*.yaml")) == ["default", "ideal"]
