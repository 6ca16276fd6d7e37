"""Folders of meshes: what is imported, repaired and rejected, what `train fk` makes of it."""

import itertools
import re

import meshio
import numpy as np
import pytest
import trimesh
from click.testing import CliRunner

from softform_core.cli.main import main
from softform_core.networks.store import FORWARD_KINEMATICS
from softform_core.robots import load_robot
from softform_core.simulation.store import open_simulation

DESCRIPTION = """
name: foreign_sheet
title: A sheet from elsewhere
source: OBJ files
body: {kind: imported, inputs_count: 2, width: 0.1, length: 0.1, surface: sheet}
actuators: {minimum: 0.0, maximum: 5000.0, slew_rate: 4000.0}
devices: [{name: board, channels: [0, 1]}]
surfaces: [{patch: sheet, rows: 6, columns: 6, degree: 3}]
"""
SIDE = 11
SAMPLES = list(itertools.product(np.linspace(0.0, 5.0, 6), [0.0, 2.0, 5.0]))
"""18 pairs of pressures, kPa."""


def sheet(pressures):
    """Vertices (121, 3) mm and faces (200, 3) of a sheet with two bumps."""
    x, y = (axis.ravel() for axis in np.meshgrid(*[np.linspace(-50.0, 50.0, SIDE)] * 2))
    height = sum(
        2.0 * p * np.exp(-((x - at) ** 2 + y**2) / 600.0) for p, at in zip(pressures, (-25.0, 25.0), strict=True)
    )
    corner = (np.arange(SIDE - 1)[:, None] * SIDE + np.arange(SIDE - 1)).ravel()
    below = np.stack([corner, corner + 1, corner + SIDE + 1], axis=1)
    above = np.stack([corner, corner + SIDE + 1, corner + SIDE], axis=1)
    return np.stack([x, y, height], axis=1), np.concatenate([below, above])


@pytest.fixture
def folder(tmp_path):
    """18 shapes as OBJ, a random third of the faces of each turned round, beside the robot's description."""
    rng = np.random.default_rng(0)
    (tmp_path / "foreign.yaml").write_text(DESCRIPTION, encoding="utf-8")
    for number, pressures in enumerate(SAMPLES):
        vertices, faces = sheet(pressures)
        turned = rng.random(len(faces)) < 1.0 / 3.0
        faces = np.where(turned[:, None], faces[:, ::-1], faces)
        trimesh.Trimesh(vertices, faces, process=False).export(tmp_path / f"{number}.obj")
    write_table(tmp_path)
    return tmp_path


FEW = [0, 3, 8, 17]
"""Numbers of samples that do for most."""


def write_table(folder, kind="obj", numbers=range(18)):
    rows = [",".join([*map(str, SAMPLES[number]), f"{number}.{kind}"]) for number in numbers]
    (folder / "fem.csv").write_text("\n".join(["p1,p2,file", *rows]), encoding="utf-8")


def bring(folder, *options):
    arguments = ["import", "shapes", str(folder / "fem.csv"), "--robot", str(folder / "foreign.yaml")]
    arguments += ["--unit", "mm", "--actuation-unit", "kPa", "--actuation", "p1,p2", "--meshes", "file"]
    return CliRunner().invoke(main, [*arguments, "--output", str(folder / "sheet.zarr"), *options])


def test_18_shapes_with_mixed_winding_become_a_store_and_a_model(folder):
    result = bring(folder)
    assert result.exit_code == 0, result.output
    assert "18 shapes of 121 vertices, at rest 0.obj" in result.output and "faces were turned round" in result.output
    robot = load_robot(folder / "foreign.yaml")
    store = open_simulation(folder / "sheet.zarr", robot)
    actuations, vertices = store.converged()
    np.testing.assert_allclose(actuations, 1e3 * np.array(SAMPLES))
    np.testing.assert_allclose(vertices, np.array([sheet(p)[0] for p in SAMPLES]) / 1e3, atol=1e-9)
    a, b, c = store.rest_vertices[store.faces].transpose(1, 0, 2)
    assert (np.cross(b - a, c - a)[:, 2] > 0.0).all()

    arguments = ["train", "fk", "--robot", str(folder / "foreign.yaml"), "--data", str(store.path)]
    trained = CliRunner().invoke(main, [*arguments, "--epochs", "50", "--output", str(folder / "model")])
    assert trained.exit_code == 0, trained.output
    _, card = FORWARD_KINEMATICS.load(folder / "model", robot)
    assert card.data.samples == 18 and card.data.simulation_seed is None


def test_stl_whose_vertices_have_no_order_is_the_same_sheet(folder):
    for number, pressures in enumerate(SAMPLES):
        trimesh.Trimesh(*sheet(pressures), process=False).export(folder / f"{number}.stl")
    write_table(folder, "stl")
    assert bring(folder).exit_code == 0
    store = open_simulation(folder / "sheet.zarr")
    assert store.rest_vertices.shape == (SIDE**2, 3)
    corners = store.vertices(17)[store.faces].reshape(-1, 3)
    expected = sheet(SAMPLES[17])[0] / 1e3
    assert np.linalg.norm(corners[:, None] - expected, axis=-1).min(axis=1).max() < 1e-7


def test_another_topology_is_named_and_the_rest_is_kept(folder):
    vertices, faces = sheet(SAMPLES[5])
    trimesh.Trimesh(vertices, faces[:-1], process=False).export(folder / "5.obj")
    result = bring(folder)
    assert result.exit_code == 2 and "5.obj has other triangles" in result.output and "199" in result.output
    assert list(open_simulation(folder / "sheet.zarr").pending) == list(range(5, 18))
    trimesh.Trimesh(vertices, faces, process=False).export(folder / "5.obj")
    assert bring(folder).exit_code == 0
    assert not len(open_simulation(folder / "sheet.zarr").pending)


def test_missing_files_and_wrong_units_are_named(folder):
    assert "Check --unit" in bring(folder, "--unit", "m").output
    (folder / "7.obj").unlink()
    result = bring(folder)
    assert result.exit_code == 2 and "7.obj does not exist: line 9" in result.output


@pytest.mark.parametrize("kind", ["vtk", "vtu", "inp"])
def test_quadrilaterals_of_vtk_and_abaqus_are_split(folder, kind):
    corner = (np.arange(SIDE - 1)[:, None] * SIDE + np.arange(SIDE - 1)).ravel()
    quads = np.stack([corner, corner + 1, corner + SIDE + 1, corner + SIDE], axis=1)
    for number, pressures in enumerate(SAMPLES):
        meshio.Mesh(sheet(pressures)[0], {"quad": quads}).write(folder / f"{number}.{kind}")
    write_table(folder, kind)
    result = bring(folder)
    assert result.exit_code == 0, result.output
    store = open_simulation(folder / "sheet.zarr")
    assert store.faces.shape == (200, 3)
    np.testing.assert_allclose(store.vertices(17), sheet(SAMPLES[17])[0] / 1e3, atol=1e-9)


def test_solid_elements_and_damaged_files_are_rejected(folder):
    points = np.array([[0.0, 0, 0], [9, 0, 0], [0, 9, 0], [0, 0, 9]])
    for number in range(len(SAMPLES)):
        meshio.Mesh(points, {"tetra": np.array([[0, 1, 2, 3]])}).write(folder / f"{number}.vtk")
    write_table(folder, "vtk")
    assert "cells of VTK's type 10" in bring(folder).output
    (folder / "0.vtk").write_text("nothing")
    result = bring(folder)
    assert result.exit_code == 2 and "0.vtk cannot be read" in result.output


def faces_of_grid():
    return sheet((0.0, 0.0))[1]


def export_with_field(folder, name, share=1.0, moved=False):
    """VTU of the resting sheet with the displacement as a field; `moved` are its points, too, by a share of it."""
    rest = sheet((0.0, 0.0))[0]
    for number, pressures in enumerate(SAMPLES):
        moves = sheet(pressures)[0] - rest
        points = rest + share * moves if moved else rest
        fields = {name: moves, "velocity": 3.0 * moves}
        meshio.Mesh(points, {"triangle": faces_of_grid()}, fields).write(folder / f"{number}.vtu")
    write_table(folder, "vtu", FEW)


@pytest.mark.parametrize(
    ("name", "moved", "options"),
    [
        ("displacement", False, []),
        ("U", False, []),
        ("f_12", False, ["--displacement", "f_12"]),
        ("displacement", True, []),  # warped by ParaView, which keeps the field
        ("f_12", True, []),
    ],
)
def test_a_deformation_that_is_a_field_moves_the_sheet_once(folder, name, moved, options):
    export_with_field(folder, name, moved=moved)
    result = bring(folder, *options)
    assert result.exit_code == 0, result.output
    assert (f"moved by the field '{name}'" in result.output) is not moved
    motion = open_simulation(folder / "sheet.zarr").vertices(3) - sheet((0.0, 0.0))[0] / 1e3
    assert np.isclose(np.linalg.norm(motion, axis=1).max(), 9.934e-3, atol=1e-6)


def test_what_does_not_move_or_moves_twice_is_refused(folder):
    export_with_field(folder, "f_12")
    assert "fields of vectors are f_12, velocity. Name the displacement" in bring(folder).output
    assert "one shape under different actuations" in bring(folder, "--displacement", "none").output
    assert "no field of vectors 'u'" in bring(folder, "--displacement", "u").output
    export_with_field(folder, "displacement", share=5.0, moved=True)
    assert "move otherwise than its field 'displacement' says" in bring(folder).output
    assert "has no named parts" in bring(folder, "--part", "sheet").output
    for number in range(len(SAMPLES)):
        trimesh.Trimesh(*sheet((0.0, 0.0)), process=False).export(folder / f"{number}.obj")
    write_table(folder, "obj", FEW)
    assert "one shape under different actuations" in bring(folder).output


def test_a_field_without_a_value_somewhere_is_named(folder):
    export_with_field(folder, "displacement")
    mesh = meshio.read(folder / "8.vtu")
    mesh.point_data["displacement"][60] = np.nan
    mesh.write(folder / "8.vtu")
    assert re.search(r"'displacement' of \S+8.vtu is NaN", bring(folder).output)


def test_two_rows_of_one_shape_are_named_even_if_the_import_goes_on(folder):
    write_table(folder, "obj", [0, 3, 8, 17, 12])
    (folder / "12.obj").write_bytes((folder / "3.obj").read_bytes())
    content = (folder / "8.obj").read_bytes()
    (folder / "8.obj").write_bytes(b"")
    assert bring(folder).exit_code == 2
    (folder / "8.obj").write_bytes(content)
    result = bring(folder)
    assert result.exit_code == 2 and re.search(r"12.obj and \S+3.obj \(2 \w+ \(3, 6\)\)", result.output), result.output


def test_a_mesh_of_another_size_than_described_is_refused(folder):
    for number, pressures in enumerate(SAMPLES):
        vertices, faces = sheet(pressures)
        trimesh.Trimesh(0.3 * vertices, faces, process=False).export(folder / f"{number}.obj")
    assert "is 0.03 m large; 'foreign_sheet' is 0.1 m" in bring(folder).output


def test_pieces_are_one_sheet(folder):
    half = SIDE // 2 + 1
    faces = faces_of_grid()
    below = (faces < half * SIDE).all(axis=1)
    for number, pressures in enumerate(SAMPLES):
        points = sheet(pressures)[0]
        first = (half - 1) * SIDE
        pieces = [(points[: half * SIDE], faces[below]), (points[first:], faces[~below] - first)]
        (folder / f"{number}.vtu").write_text(vtu(pieces))
    write_table(folder, "vtu", FEW)
    result = bring(folder)
    assert result.exit_code == 0 and "11 duplicate vertices were joined" in result.output, result.output
    store = open_simulation(folder / "sheet.zarr")
    assert store.rest_vertices.shape == (SIDE**2, 3) and np.ptp(store.vertices(3)[:, 0]) == pytest.approx(0.1)


def vtu(pieces):
    def array(name, values, kind, width=1):
        numbers = " ".join(map(str, np.ravel(values).tolist()))
        return (
            f'<DataArray type="{kind}" Name="{name}" NumberOfComponents="{width}" format="ascii">{numbers}</DataArray>'
        )

    body = "".join(
        f'<Piece NumberOfPoints="{len(points)}" NumberOfCells="{len(faces)}"><Points>'
        f"{array('Points', points, 'Float64', 3)}</Points><Cells>{array('connectivity', faces, 'Int64')}"
        f"{array('offsets', 3 * np.arange(1, len(faces) + 1), 'Int64')}"
        f"{array('types', np.full(len(faces), 5), 'UInt8')}</Cells></Piece>"
        for points, faces in pieces
    )
    return f'<VTKFile type="UnstructuredGrid"><UnstructuredGrid>{body}</UnstructuredGrid></VTKFile>'


@pytest.mark.parametrize("smooth", [True, False])
def test_obj_with_normals_and_texture_has_the_vertices_of_its_v_lines(folder, smooth):
    for number, pressures in enumerate(SAMPLES):
        vertices, faces = sheet(pressures)
        lines = [f"v {x:.6f} {y:.6f} {z:.6f}" for x, y, z in vertices]
        lines += [f"vt {n / 121:.4f} 0" for n in range(121)] + ["vn 0 0 1"] * (121 if smooth else number + 1)
        normals = faces + 1 if smooth else np.tile((np.arange(len(faces)) % (number + 1) + 1)[:, None], 3)
        lines += [
            "f " + " ".join(f"{v + 1}/{v + 1}/{n}" for v, n in zip(*pair, strict=True))
            for pair in zip(faces, normals, strict=True)
        ]
        (folder / f"{number}.obj").write_text("\n".join(lines) + "\n")
    write_table(folder, "obj", FEW)
    result = bring(folder)
    assert result.exit_code == 0, result.output
    store = open_simulation(folder / "sheet.zarr")
    np.testing.assert_allclose(store.vertices(3), sheet(SAMPLES[17])[0] / 1e3, atol=1e-8)


def test_shapes_in_order_are_rows_of_their_own_though_they_repeat_an_actuation(folder):
    order = [0, 3, 8, 17, 8, 3, 8, 12]
    lines = ["p1,p2,file"]
    for row, number in enumerate(order):
        vertices, faces = sheet(SAMPLES[8 if number == 12 else number])
        vertices[:, 2] += 0.05 * min(row, 6) * (vertices[:, 2] > 0.01)  # it depends on the way; in the end it sticks
        trimesh.Trimesh(vertices, faces, process=False).export(folder / f"way_{row}.obj")
        lines.append(",".join([*map(str, SAMPLES[number]), f"way_{row}.obj"]))
    (folder / "fem.csv").write_text("\n".join(lines), encoding="utf-8")
    assert "different outputs" in bring(folder).output
    assert bring(folder, "--in-order").exit_code == 0
    store = open_simulation(folder / "sheet.zarr")
    actuations = 1e3 * np.array([SAMPLES[number] for number in order])
    np.testing.assert_allclose(store.actuation, actuations)
    assert np.isnan(store.past[0]).all() and np.isnan(store.past[2][:-2]).all()
    np.testing.assert_allclose(store.past[6][-6:], actuations[:6])
    shapes = store.converged()[1]
    assert len(np.unique(shapes[[2, 4, 6]], axis=0)) == 3 and np.array_equal(shapes[6], shapes[7])


def test_a_shape_far_from_those_under_actuations_nearby_is_told(folder, caplog):
    pressures = list(itertools.product(np.linspace(0.0, 5.0, 5), repeat=2))
    for number, pair in enumerate(pressures):
        vertices, faces = sheet(pair)
        if number == 12:
            vertices = vertices[:, [0, 2, 1]]  # y and z exchanged
        trimesh.Trimesh(vertices, faces, process=False).export(folder / f"{number}.obj")
    rows = [f"{a},{b},{number}.obj" for number, (a, b) in enumerate(pressures)]
    (folder / "fem.csv").write_text("\n".join(["p1,p2,file", *rows]), encoding="utf-8")
    assert bring(folder).exit_code == 0
    assert "far from those under actuations nearby: line 14 of" in caplog.text
