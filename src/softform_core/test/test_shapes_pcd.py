import numpy as np
import open3d
import pytest

from softform_core.errors import SoftformError
from softform_core.shapes.read import read_shape

pytestmark = pytest.mark.slow

POINTS = np.random.default_rng(0).uniform(-0.1, 0.1, (200, 3))
ENCODINGS = {"ascii": {"write_ascii": True}, "binary": {}, "binary_compressed": {"compressed": True}}


def written(path, encoding, points=POINTS):
    cloud = open3d.geometry.PointCloud(open3d.utility.Vector3dVector(points))
    cloud.paint_uniform_color([0.2, 0.4, 0.6])
    assert open3d.io.write_point_cloud(str(path), cloud, **ENCODINGS[encoding])
    assert f"DATA {encoding}\n".encode() in path.read_bytes()
    return path


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_encoding_gives_the_same_cloud(tmp_path, encoding):
    shape = read_shape(written(tmp_path / "a.PCD", encoding, 1000.0 * POINTS), "mm")
    assert shape.faces is None
    assert np.allclose(shape.points, POINTS, atol=1e-7)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_points_that_were_not_measured_are_left_out(tmp_path, encoding):
    points = POINTS.copy()
    points[3:7] = np.nan
    assert np.allclose(
        read_shape(written(tmp_path / "a.pcd", encoding, points)).points, np.delete(POINTS, slice(3, 7), 0)
    )


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_truncated_file_never_passes_for_a_whole_one(tmp_path, encoding):
    path = written(tmp_path / "a.pcd", encoding)
    whole = path.read_bytes()
    end = len(whole) - 9 if encoding == "ascii" else len(whole) - 1  # of a last number without decimals no cut is seen
    for length in np.linspace(0, end, 42).astype(int):
        path.write_bytes(whole[:length])
        with pytest.raises(SoftformError) as caught:
            read_shape(path)
        assert str(path) in str(caught.value)
        assert caught.value.next_step


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_damaged_file_is_rejected_or_read_but_nothing_else(tmp_path, encoding):
    path = written(tmp_path / "a.pcd", encoding)
    whole, random = path.read_bytes(), np.random.default_rng(1)
    for _ in range(300):
        content = bytearray(whole)
        for place in random.integers(0, random.choice([300, len(whole)]), random.integers(1, 5)):
            content[place] = random.integers(256)
        path.write_bytes(content)
        try:
            shape = read_shape(path)
        except SoftformError as error:
            assert error.next_step
            continue
        assert np.isfinite(shape.points).all()


HEADER = (
    "VERSION 0.7\nFIELDS x y z i\nSIZE 4 4 8 2\nTYPE F F F U\nCOUNT 1 1 1 2\nWIDTH 2\nHEIGHT 2\nPOINTS 4\nDATA ascii\n"
)
ROWS = "0 0 0 7 8\n1 0 0 7 8\n1 1 0 7 8\n0 1 0.5 7 8\n"


def test_columns_are_found_by_the_names_of_the_fields(tmp_path):
    path = tmp_path / "a.pcd"
    path.write_text("# .PCD\n" + HEADER + ROWS)
    assert np.allclose(read_shape(path).points, [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0.5]])
    header = HEADER.replace("x y z i", "i z y x").replace("4 4 8 2", "2 8 4 4")
    header = header.replace("F F F U", "U F F F").replace("1 1 1 2", "2 1 1 1")
    path.write_text(header + "7 8 0 0 1\n7 8 0 0 2\n7 8 0 1 2\n7 8 1 1 1\n")
    assert np.allclose(read_shape(path).points, [[1, 0, 0], [2, 0, 0], [2, 1, 0], [1, 1, 1]])


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("FIELDS x y z i", "FIELDS x y i j", "once each, of x, y, i, j"),
        ("FIELDS x y z i", "FIELDS x y z x", "once each, of x, y, z, x"),
        ("SIZE 4 4 8 2", "SIZE 4 4 2 2", "unknown type"),
        ("SIZE 4 4 8 2", "SIZE 4 4 8", "not understood"),
        ("SIZE 4 4 8 2", "SIZE 4 4 8 3", "unknown type"),
        ("COUNT 1 1 1 2", "COUNT 1 1 1 1_1", "1_1"),
        ("POINTS 4", "POINTS04", "line"),
        ("POINTS 4", "POINTS 5", "2 x 2 points of 5"),
        ("POINTS 4\n", "", "POINTS"),
        ("HEIGHT 2", "HEIGHT 2\nHEIGHT 2", "HEIGHT 2"),
        ("WIDTH 2\nHEIGHT 2\nPOINTS 4", "WIDTH 1\nHEIGHT 3\nPOINTS 3", "3 points; at least"),
        ("WIDTH 2\nHEIGHT 2\nPOINTS 4", "WIDTH 3000\nHEIGHT 3000\nPOINTS 9000000", "at most"),
        ("ascii", "binary", "does not hold just the 4 points"),
        ("ascii", "lzma", "lzma"),
        ("7 8\n1 0 0", "7\n1 0 0", "does not hold just the 4 points"),
        ("0.5", "0x5", "does not hold just the 4 points"),
        ("0 1 0.5 7 8\n", "0 1 nan 7 8\n", "3 points; at least"),
    ],
)
def test_a_file_that_contradicts_itself_is_rejected_with_the_reason(tmp_path, old, new, says):
    path = tmp_path / "a.pcd"
    assert old in HEADER + ROWS
    path.write_text((HEADER + ROWS).replace(old, new, 1))
    with pytest.raises(SoftformError, match=says) as caught:
        read_shape(path)
    assert str(path) in str(caught.value)
