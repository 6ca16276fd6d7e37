"""Twenty meshes as bodies: those that are sound move under each input, what is wrong with the others is told."""

import pytest

from softform_studies.meshes.bench import tried
from softform_studies.meshes.made import cases

TOLD = {
    "bellows, walls 0.1 mm": "too thin for cells of 6 mm",
    "gripper of loose parts": "holds several bodies",
    "finger, inlets open": "no closed surface within inlet.stl is around",
    "finger, facets missing": "is open: it has",
    "finger, flange not joined": "crosses itself",
}


def test_there_are_twenty():
    assert len({case.name for case in cases()}) == 20
    assert {case.name for case in cases() if not case.is_sound} == set(TOLD)


@pytest.mark.long
@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_a_mesh_works_or_is_told(case, tmp_path):
    pytest.importorskip("gmsh")
    row = tried(case, tmp_path)
    if case.is_sound:
        assert row["told"] == ""
        assert all(0.05 < moved < 60.0 for moved in row["moves_mm"])
    else:
        assert TOLD[case.name] in row["told"]
