"""Bodies whose shape is a file: what each type of file holds, what moves and holds them, and what is told of it."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from mesh_files import CELL, WITHIN, block, box, described, with_middles, write_stl, write_vtk
from pydantic import ValidationError

from softform_core.bodies.mesh.simulator import RealMeshed, real_simulator
from softform_core.errors import SoftformError
from softform_core.simulation.newton import find_equilibria

needs_gmsh = pytest.mark.skipif(importlib.util.find_spec("gmsh") is None, reason="gmsh is not installed")

OUTER = box((-0.01, -0.01, 0), (0.01, 0.01, 0.05))
INNER = box((-0.005, -0.005, 0.01), (0.005, 0.005, 0.04))[:, ::-1]
CAVITY = [{"at": (0, 0, 0.02)}]
CABLE = {"load": "cable", "name": "t1", "stiffness": 300.0, "runs": [[(0.001, 0.001, 0), (0.001, 0.001, 0.04)]]}
SIZE = 0.012


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """With a block of tetrahedra around a hole, and a box of triangles around another, as they are exported."""
    folder = tmp_path_factory.mktemp("files")
    write_vtk(folder / "block.vtk", *block())
    write_vtk(folder / "block10.vtk", *with_middles(*block()))
    write_stl(folder / "box.stl", OUTER, INNER)
    write_stl(folder / "full.stl", OUTER)
    write_stl(folder / "hole.stl", INNER)
    return folder


def moves(body, values):
    """How the points of a body move from rest to values (k,)."""
    problem = body.simulator()
    found = find_equilibria(problem, np.array([values]))
    assert found.failures == [""]
    return (problem.points(found.unknowns) - problem.points(problem.rest[None]))[0]


@pytest.mark.parametrize("file", ["block.vtk", "block10.vtk"])
def test_tetrahedra_are_taken_as_they_are_and_a_place_names_their_cavity(folder, file):
    problem = described(folder, file=file, cavities=[{"at": WITHIN}]).simulator()
    assert problem.pressure.volumes(problem.solid.nodes) == pytest.approx([2 * CELL**3])
    assert problem.solid.shape_volumes.sum() == pytest.approx(34 * CELL**3)
    assert len(problem.solid.elements) == 34 * 6
    assert problem.solid.nodes[problem.solid.is_fixed][:, 2] == pytest.approx(0.0)
    assert problem.solid.is_fixed.sum() == 7 * 7


def test_a_hole_that_no_cavity_names_stays_empty(folder):
    body = described(folder, file="block.vtk", loads=[CABLE])
    problem = body.simulator()
    assert (problem.solid.cavities, len(problem.solid.caps)) == (0, 0)
    assert moves(body, [1e-3])[:, 2].min() < -0.5e-3


@pytest.mark.parametrize(
    ("supports", "held"),
    [
        ([{"at": (0, 0, 0.04), "normal": (0, 0, -2)}], lambda x, y, z: z > 0.0399),
        ([{"at": (0, 0, 0)}, {"at": (0.03, 0, 0), "normal": (-1, 0, 0)}], lambda x, y, z: (z < 1e-4) | (x > 0.0299)),
        ([{"at": (0, 0, 0.012)}], lambda x, y, z: z < 0.012),
    ],
)
def test_each_support_holds_what_lies_in_its_plane_or_behind_it(folder, supports, held):
    body = described(
        folder,
        file="block.vtk",
        cavities=[{"at": WITHIN}],
        supports=supports,
        surface="none",
        tip=(0.005, 0.005, 0.025),
    )
    solid = body.simulator().solid
    assert (solid.is_fixed == held(*solid.nodes.T)).all()
    assert np.linalg.norm(moves(body, [1e4])) > 1e-5
    given = real_simulator(body, RealMeshed(clamp_stiffness=1e8)).solid
    assert not given.is_fixed.any()
    assert set(np.flatnonzero(given.springs)) <= set(np.flatnonzero(solid.is_fixed))


def test_without_a_surface_it_is_asked_for_its_tip(folder):
    tip = (0.004, 0.012, 0.037)
    body = described(folder, file="block.vtk", cavities=[{"at": WITHIN}], loads=[CABLE], surface="none", tip=tip)
    assert (body.patches, body.frames) == ({}, {"tip": 3})
    problem = body.simulator()
    assert problem.frames == {"tip": 0}
    assert problem.points(problem.rest[None])[0, 0] == pytest.approx(np.array(tip))
    values = np.array([[5e3, 5e-4]])
    assert problem.tendon_loads(find_equilibria(problem, values).unknowns, values).tension[1] > 0.0
    sampled = body.sampled()
    solved = sampled.solve(values, np.eye(2)[None])
    assert solved.failures == [""]
    step = np.array([10.0, 1e-6])
    for number in range(2):
        ahead, behind = (
            sampled.solve(values + sign * step * np.eye(2)[number], np.eye(2)[None]).outputs["tip"][0]
            for sign in (1.0, -1.0)
        )
        slope = (ahead - behind) / (2.0 * step[number])
        assert solved.outputs["jacobian"][0, :, number] == pytest.approx(
            slope, rel=0.02, abs=0.02 * np.abs(slope).max()
        )


@pytest.mark.parametrize("surface", ["sheet", "tube"])
def test_a_plane_ends_its_surface(folder, surface):
    end = {"end": {"at": (0, 0, 0.033)}} if surface == "tube" else {}
    body = described(
        folder, file="block.vtk", cavities=[{"at": WITHIN}], surface=surface, supports=[{"at": (0, 0, 0.005)}], **end
    )
    problem = body.simulator()
    points = problem.points(problem.rest[None])[0]
    shown = points[np.unique(problem.faces[body.faces_of(surface, points, problem.faces)])]
    assert shown[:, 2].min() == pytest.approx(0.005)
    assert shown[:, 2].max() == pytest.approx(0.033 if surface == "tube" else 0.04)


def test_units_and_the_axis_that_is_up(folder):
    for unit, per_metre in {"mm": 1e3, "cm": 1e2, "in": 1.0 / 0.0254}.items():
        write_stl(folder / f"in_{unit}.stl", per_metre * OUTER[..., [1, 2, 0]], per_metre * INNER[..., [1, 2, 0]])
        body = described(
            folder, file=f"in_{unit}.stl", unit=unit, mesh_size=SIZE, up="y", origin=(0, 0.01, 0), loads=[CABLE]
        )
        assert body.bounds == pytest.approx(np.array([[-0.01, -0.01, -0.01], [0.01, 0.01, 0.04]]))
    assert described(folder, file="full.stl", mesh_size=SIZE, up="-z", loads=[CABLE]).bounds[0, 2] == -0.05


def test_other_content_of_a_file_is_another_robot(folder):
    write_stl(folder / "own.stl", OUTER)
    before = described(folder, file="own.stl", mesh_size=SIZE, loads=[CABLE]).contents
    write_stl(folder / "own.stl", 1.01 * OUTER)
    assert before != described(folder, file="own.stl", mesh_size=SIZE, loads=[CABLE]).contents


@needs_gmsh
def test_a_closed_surface_is_meshed_and_a_file_a_place_or_both_name_its_cavity(folder):
    by_place = described(folder, file="box.stl", cavities=CAVITY, mesh_size=SIZE)
    by_file = described(folder, file="full.stl", cavities=[{"file": "hole.stl"}], mesh_size=SIZE)
    by_both = described(folder, file="box.stl", cavities=[{"file": "hole.stl"}], mesh_size=SIZE)
    assert len(by_both.read.cavities) == 1 and not by_both.read.voids
    for body in (by_place, by_file, by_both):
        problem = body.simulator()
        assert problem.pressure.volumes(problem.solid.nodes) == pytest.approx([3e-6])
        assert problem.solid.shape_volumes.sum() == pytest.approx(17e-6)


@pytest.fixture(scope="module")
def cad(tmp_path_factory) -> Path:
    """A cylinder with a slender hole as gmsh and CAD programs write it: STEP in mm, .msh of both orders."""
    gmsh = pytest.importorskip("gmsh")
    folder = tmp_path_factory.mktemp("cad")
    gmsh.initialize(readConfigFiles=False, interruptible=False)
    gmsh.option.setNumber("General.Terminal", 0)
    outside, hole = gmsh.model.occ.addCylinder(0, 0, 0, 0, 0, 40, 12), gmsh.model.occ.addBox(1, -3, 6, 6, 6, 28)
    gmsh.model.occ.cut([(3, outside)], [(3, hole)])
    gmsh.model.occ.synchronize()
    gmsh.write(str(folder / "arm.step"))
    gmsh.option.setNumber("Mesh.MeshSizeMin", 12)
    gmsh.model.mesh.generate(2)
    gmsh.write(str(folder / "surface.msh"))
    gmsh.model.mesh.generate(3)
    gmsh.write(str(folder / "arm.msh"))
    gmsh.option.setNumber("Mesh.MshFileVersion", 2.2)
    gmsh.option.setNumber("Mesh.Binary", 1)
    gmsh.write(str(folder / "old.msh"))
    gmsh.model.mesh.setOrder(2)
    gmsh.write(str(folder / "curved.msh"))
    gmsh.finalize()
    return folder


@pytest.mark.parametrize(
    ("file", "fields", "share"),
    [
        ("arm.step", {"unit": None, "mesh_size": 0.025}, 0.03),
        ("surface.msh", {"unit": "mm", "mesh_size": 0.012}, 0.15),
        ("arm.msh", {"unit": "mm"}, 0.15),
        ("old.msh", {"unit": "mm"}, 0.15),
        ("curved.msh", {"unit": "mm"}, 0.01),
    ],
)
def test_cad_and_meshes_of_gmsh(cad, file, fields, share):
    body = described(cad, file=file, cavities=[{"at": (0.004, 0, 0.02)}], **fields)
    problem = body.simulator()
    assert problem.pressure.volumes(problem.solid.nodes) == pytest.approx([6e-3 * 6e-3 * 28e-3])
    expected = np.pi * 0.012**2 * 0.04 - 6e-3 * 6e-3 * 28e-3
    assert problem.solid.shape_volumes.sum() == pytest.approx(expected, rel=share)


def wrong(folder: Path, **fields) -> str:
    """What is told of a body that cannot be."""
    with pytest.raises((SoftformError, ValidationError)) as error:
        described(folder, **fields).simulator()
    return str(error.value)


def test_what_is_wrong_with_a_surface_is_told_with_the_place(folder):
    given = {"file": "wrong.stl", "cavities": CAVITY, "mesh_size": 0.008}
    file = folder / "wrong.stl"
    write_stl(file, OUTER, INNER[2:])  # without one side
    assert "is open: it has 1 hole, 30 mm across around (-5, 0, 25) mm" in wrong(folder, **given)
    write_stl(file, OUTER, INNER + [0.008, 0, 0])
    assert "crosses itself" in (told := wrong(folder, **given)) and "at (13, -5, 10) mm" in told
    write_stl(file, OUTER, OUTER + [0.03, 0, 0])
    assert "holds several bodies" in (told := wrong(folder, **given)) and "(30, 0, 25) mm" in told
    write_stl(file, OUTER, INNER, box((-0.001, -0.001, 0.02), (0.001, 0.001, 0.03)))
    assert "a closed surface within a cavity: 0.04 ml around (0, 0, 25) mm" in wrong(folder, **given)
    folded = box((-0.01, -0.01, 0), (0.01, 0.01, 0.05), 2)
    at = np.isclose(folded, [0.01, 0, 0.025]).all(axis=2)
    folded[at] = [-0.015, 0, 0.025]  # one side comes out of the other
    write_stl(file, folded)
    assert "The surface of wrong.stl crosses itself at (-10," in wrong(
        folder, **given | {"cavities": [], "loads": [CABLE]}
    )
    write_stl(file, OUTER, box((-0.0099, -0.005, 0.01), (0.005, 0.005, 0.04)))
    told = wrong(folder, **given)
    assert "0.1 mm thick at (-10" in told and "Choose a mesh_size of 0.00066 m at most" in told
    write_stl(file, OUTER, box((-0.009999, -0.005, 0.01), (0.005, 0.005, 0.04)))
    assert "Make the wall thicker" in wrong(folder, **given)  # no mesh_size that is allowed would do


@needs_gmsh
def test_the_mesh_size_that_is_advised_does(folder):
    write_stl(folder / "thin.stl", OUTER, box((-0.0092, -0.005, 0.01), (0.005, 0.005, 0.04)))
    given = {"file": "thin.stl", "cavities": CAVITY}
    advised = float(wrong(folder, mesh_size=0.03, **given).split("mesh_size of ")[1].split()[0])
    described(folder, mesh_size=advised, **given).simulator()


@pytest.mark.parametrize(
    ("cavity", "message"),
    [
        (
            {"at": (0.1, 0, 0)},
            "no closed surface within box.stl is around (100, 0, 0) mm; there are: 3 ml around (0, 0",
        ),
        ({"at": (0.009, 0, 0.02)}, "no closed surface within box.stl is around (9, 0, 20) mm"),
        ({"file": "hole.stl", "unit": "mm"}, "0.03 mm large in mm, the body 50 mm. Correct the unit of the cavity"),
        ({"file": "far.stl"}, "lies outside of box.stl"),
        ({"file": "through.stl"}, "cross or touch at (10,"),
        ({"file": "full.stl"}, "cross or touch"),
        ({"file": "two.stl"}, "holds 2 closed surfaces"),
        ({}, "a file of its own, or a place within it"),
    ],
)
def test_a_cavity_that_is_not_there_is_told(folder, cavity, message):
    write_stl(folder / "far.stl", INNER + [0.04, 0, 0])
    write_stl(folder / "through.stl", INNER + [0.007, 0, 0])
    write_stl(folder / "two.stl", INNER, INNER + [0.04, 0, 0])
    assert message in wrong(folder, file="box.stl", cavities=[cavity], mesh_size=SIZE)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"unit": None}, "unit: box.stl does not say its unit (m, mm, cm, in). mm makes it 0.02 x 0.02 x 0.05 mm"),
        ({"unit": "mm"}, "box.stl is 5e-05 m large in mm, bodies 0.001 … 10 m. Correct the unit: m (0.05 m)"),
        ({"mesh_size": None}, "give the length of the tetrahedra's edges"),
        ({"mesh_size": 1e-5}, "is too small for box.stl: it would have too many cells. Choose 0.00047 m at least"),
        (
            {"supports": [{"at": (0, 0, -0.01)}]},
            "Support 1 touches nothing: the nearest place of box.stl, (-10, -10, 0)",
        ),
        ({"supports": [{"at": (-0.01, -0.01, 0), "normal": (1, 1, 0)}]}, "touches box.stl in a point or a line"),
        ({"supports": [{"at": (0, 0, 0.1)}]}, "All of box.stl lies behind its supports"),
        ({"supports": []}, "without a support it needs a grip"),
        ({"supports": [{"at": (0, 0, 0), "normal": (0, 0, 0)}]}, "a normal needs a length"),
        ({"surface": "none"}, "surface: none needs a tip"),
        ({"surface": "none", "tip": (0, 0, 0.02)}, "The tip (0, 0, 20) mm lies outside of the material"),
        ({"end": {"at": (0, 0, 0.2)}}, "has 1 rim: around (0, 0, 0) mm"),
        ({"end": {"at": (0, 0, -0.2)}}, "Nothing of the outside of box.stl lies between its supports and"),
        ({"cavities": []}, "nothing would move it"),
        ({"cavities": [*CAVITY, *CAVITY]}, "Cavity c2 is one that was named before"),
        (
            {"cavities": [], "loads": [CABLE | {"runs": [[(0, 0, 0.1), (0, 0, 0.2)]]}]},
            "lies neither in the body nor in",
        ),
        ({"file": "absent.stl"}, "does not exist; its path begins at the folder of the description"),
        ({"file": "arm.iges"}, "is not of a type that is read; export it as one of: .stl"),
        ({"file": "cut.stl"}, "cut.stl"),
        ({"file": "cut.vtk", "mesh_size": None}, "cut.vtk cannot be read"),
        ({"file": "block.vtk"}, "holds tetrahedra, which are taken as they are. Leave out mesh_size"),
        (
            {"file": "block.vtk", "mesh_size": None, "cavities": [{"file": "hole.stl"}]},
            "Name each by a place within it",
        ),
    ],
)
def test_impossible_descriptions_are_told(folder, fields, message):
    (folder / "cut.stl").write_bytes((folder / "box.stl").read_bytes()[:200])
    (folder / "cut.vtk").write_bytes((folder / "block.vtk").read_bytes()[:2000])
    if (
        "gmsh" not in message
        and not importlib.util.find_spec("gmsh")
        and {"supports", "tip", "end", "loads"} & {*fields}
    ):
        pytest.skip("gmsh is not installed")
    given = {"file": "box.stl", "cavities": CAVITY, "mesh_size": SIZE} | fields
    assert message in wrong(folder, **given)


@pytest.mark.parametrize(
    ("file", "message"),
    [("arm.step", "cannot be read by gmsh"), ("flat.step", "holds no solid"), ("arm.msh", "cannot be")],
)
def test_damaged_cad_is_told(tmp_path, file, message):
    gmsh = pytest.importorskip("gmsh")
    (tmp_path / file).write_text("ISO-10303-21;\nrubbish")
    if file == "flat.step":
        gmsh.initialize(readConfigFiles=False, interruptible=False)
        gmsh.option.setNumber("General.Terminal", 0)
        gmsh.model.occ.addRectangle(0, 0, 0, 30, 30)
        gmsh.model.occ.synchronize()
        gmsh.write(str(tmp_path / file))
        gmsh.finalize()
    unit = {"unit": None} if file.endswith("step") else {}
    assert message in wrong(tmp_path, file=file, mesh_size=SIZE, cavities=CAVITY, **unit)


def test_what_is_wrong_with_tetrahedra_is_told_with_the_place(tmp_path):
    points, elements = block()
    given = {"file": "wrong.vtk", "cavities": [{"at": WITHIN}]}
    file = tmp_path / "wrong.vtk"
    write_vtk(file, points * [1, 1, 1e-5], elements)
    assert "204 of 204 tetrahedra are flat" in wrong(tmp_path, **given)
    write_vtk(file, points, np.concatenate([elements, elements[:1]]))
    assert "3 tetrahedra have one side in common" in wrong(tmp_path, **given)
    folded = points.copy()
    folded[np.linalg.norm(points - 0.01, axis=1).argmin()] += [0.013, 0.012, 0.001]
    write_vtk(file, folded, elements)
    assert "the mesh folds over itself at 8 sides of its tetrahedra" in wrong(tmp_path, **given)
    other, apart = block((1, 1, 1), ())
    write_vtk(file, np.concatenate([points, other + [0.1, 0, 0]]), np.concatenate([elements, apart + len(points)]))
    assert "in 2 pieces" in (told := wrong(tmp_path, **given)) and "around (105, 5, 5) mm" in told
    curved, quadratic = with_middles(points, elements)
    curved[quadratic[0, 4]] = curved[quadratic[0, 1]] + 0.6 * (curved[quadratic[0, 1]] - curved[quadratic[0, 0]])
    write_vtk(file, curved, quadratic)
    assert "curved tetrahedra turn inside out, the first is number 0 at" in wrong(tmp_path, **given)
    write_vtk(file, points, elements)
    with_wrong_place = given | {"cavities": [{"at": (0.005, 0.005, 0.005)}]}
    assert "no closed surface within wrong.vtk is around (5, 5, 5) mm; there are: 2 ml" in wrong(
        tmp_path, **with_wrong_place
    )
