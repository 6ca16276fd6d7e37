"""Target files: read in their unit, doubted where it seems wrong, and placed."""

import numpy as np
import pytest

from softform_console.scene_frames import PREVIEW
from softform_console.target_files import TargetFiles, scene_item
from softform_core.errors import SoftformError
from softform_core.robots import load_robot
from softform_core.shapes.shape import Shape


@pytest.fixture(scope="module")
def membrane():
    return load_robot("membrane")


def sheet(size=0.2, unit=1.0, off=0.0):
    """An OBJ of a square."""
    side = np.linspace(-0.5 * size, 0.5 * size, 5) * unit
    lines = [f"v {x + off * unit} {y} 0.0" for x in side for y in side]
    for i in range(4):
        for j in range(4):
            a = 5 * i + j + 1
            lines += [f"f {a} {a + 5} {a + 6}", f"f {a} {a + 6} {a + 1}"]
    return "\n".join(lines).encode()


def test_a_file_is_read_in_its_unit(membrane):
    told = TargetFiles(membrane).upload("part.obj", "mm", sheet(unit=1000.0))
    assert (told.vertices, told.triangles) == (25, 32)
    assert told.size == pytest.approx((0.2, 0.2, 0.0)) and told.text == ""


def test_a_wrong_unit_is_doubted(membrane):
    assert "is its unit mm?" in TargetFiles(membrane).upload("part.obj", "m", sheet(unit=1000.0)).text


@pytest.mark.parametrize(
    ("name", "unit", "content", "said"),
    [
        ("part.exe", "mm", b"", "known kind"),
        ("part.obj", "", b"", "unit"),
        ("part.obj", "mm", b"\x00\xff", "'part.obj'"),
        ("part.ply", "mm", b"ply\nformat", "'part.ply'"),
    ],
)
def test_what_cannot_be_used_is_refused_by_its_name(membrane, name, unit, content, said):
    with pytest.raises(SoftformError, match=said):
        TargetFiles(membrane).upload(name, unit, content)


def test_a_target_beside_the_robot_is_told_and_placing_brings_it_onto_it(membrane):
    files = TargetFiles(membrane)
    number = files.upload("part.obj", "m", sheet(off=1.0)).id
    beside, _ = files.look(number, files.posed(number, "fixed"), "fixed")
    assert beside == pytest.approx(1.0)
    placed = files.posed(number, "place")
    assert np.abs(placed.points.mean(axis=0)).max() < 1e-6
    assert files.look(number, placed, "place")[0] < 0.01
    assert files.look(number, files.posed(number, "free"), "free")[0] is None


def test_the_oldest_target_is_not_kept_for_ever(membrane):
    files = TargetFiles(membrane)
    numbers = [files.upload("part.obj", "m", sheet()).id for _ in range(9)]
    with pytest.raises(SoftformError, match="too old"):
        files.file(numbers[0])
    assert files.file(numbers[-1]).name == "part.obj"


def test_a_target_of_one_robot_is_none_of_another_one(membrane):
    mine, others = TargetFiles(membrane), TargetFiles(load_robot("compressible"))
    number = mine.upload("part.obj", "m", sheet()).id
    others.upload("part.obj", "m", sheet(size=0.1))
    with pytest.raises(SoftformError, match="another robot"):
        others.posed(number, "place")
    assert np.ptp(mine.posed(number, "fixed").points, axis=0) == pytest.approx((0.2, 0.2, 0.0))


def test_a_large_cloud_is_thinned_out_to_be_shown():
    item = scene_item(Shape(np.random.default_rng(0).normal(size=(100_000, 3))), 0, 1.0, True)
    assert 10_000 < len(item.points) <= 40_000 and item.flags == PREVIEW and item.triangles is None
