"""Of twenty meshes as bodies, those known to work move under each input; what is wrong with others is told."""

import numpy as np
import pytest

from softform_core.robots.body import body_class
from softform_core.simulation.newton import find_equilibria
from softform_studies.meshes.bench import RUBBER, files, tried
from softform_studies.meshes.made import cases

TOLD = {
    "bellows, walls 0.8 mm": "too thin for cells of 6 mm",
    "bellows, walls 0.1 mm": "too thin for cells of 6 mm",
    "gripper of loose parts": "holds several bodies",
    "finger, inlets open": "no closed surface within inlet.stl is around",
    "finger, facets missing": "is open: it has",
    "finger, flange not joined": "holds several bodies",
}
WORK = {case.name for case in cases() if case.is_sound and case.name.startswith("finger")} | {"bellows, walls 2 mm"}


def test_there_are_twenty():
    assert len({case.name for case in cases()}) == 20
    assert {case.name for case in cases() if not case.is_sound} == set(TOLD)


@pytest.mark.long
@pytest.mark.parametrize("case", [c for c in cases() if c.name in WORK | set(TOLD)], ids=lambda case: case.name)
def test_a_mesh_works_or_is_told(case, tmp_path):
    pytest.importorskip("gmsh")
    row = tried(case, tmp_path)
    if case.is_sound:
        assert row["told"] == ""
        assert all(0.05 < moved < 60.0 for moved in row["moves_mm"])
    else:
        assert TOLD[case.name] in row["told"]


def test_files_of_anybodys_are_bent_or_told(tmp_path):
    """A bar of eight cubes along x, in mm, and one that is cut off."""
    cubes = [[(x, y, z) for x in (i, i + 1) for y in (0, 1) for z in (0, 1)] for i in range(8)]
    nodes = sorted({corner for cube in cubes for corner in cube})
    number = {corner: row for row, corner in enumerate(nodes)}
    parts = ((0, 1, 3, 7), (0, 1, 5, 7), (0, 2, 3, 7), (0, 2, 6, 7), (0, 4, 5, 7), (0, 4, 6, 7))
    cells = [[number[cube[corner]] for corner in part] for cube in cubes for part in parts]
    lines = ["# vtk DataFile Version 3.0", "bar", "ASCII", "DATASET UNSTRUCTURED_GRID", f"POINTS {len(nodes)} double"]
    lines += [" ".join(str(10.0 * one) for one in node) for node in nodes]
    lines += [f"CELLS {len(cells)} {5 * len(cells)}", *(f"4 {' '.join(map(str, cell))}" for cell in cells)]
    lines += [f"CELL_TYPES {len(cells)}", *["10"] * len(cells)]
    (tmp_path / "bar.vtk").write_text("\n".join(lines) + "\n")
    (tmp_path / "cut.vtk").write_text("\n".join(lines[:9]))
    found = files([tmp_path / "bar.vtk", tmp_path / "cut.vtk"], "mm", lambda line: None)
    assert (found["meshes"], found["that_work"]) == (2, 1)
    bar, cut = found["rows"]
    assert bar["told"] == "" and 1.0 < max(bar["moves_mm"]) < 20.0
    assert "cut.vtk" in cut["told"]


@pytest.mark.long
def test_folds_of_bellows_touch_and_hold_what_would_fold_through_itself(tmp_path):
    pytest.importorskip("ipctk")
    made = next(one for one in cases() if one.name == "bellows, walls 2 mm").make(tmp_path) | {"mesh_size": 0.0074}
    free, touching = (
        body_class("mesh").model_validate(RUBBER | made | contact, context={"folder": tmp_path}).simulator()
        for contact in ({}, {"contact": {"itself": True, "reach": 3e-4}})
    )
    slight, more = np.array([[-800.0]]), np.array([[-1400.0]])
    apart = [find_equilibria(one, slight).unknowns for one in (free, touching)]
    np.testing.assert_allclose(touching.points(apart[1]), free.points(apart[0]), atol=1e-7)
    assert not touching.touches(apart[1][0])
    folded = find_equilibria(touching, more, apart[1])
    assert folded.found.all() and not find_equilibria(free, more, apart[0]).found.any()
    assert {one.name for one in touching.touches(folded.unknowns[0])} == {"itself"}
