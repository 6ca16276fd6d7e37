import os

import numpy as np
import pytest
import trimesh
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from softform_core.errors import SoftformError
from softform_core.shapes import read as reading
from softform_core.shapes.ply_header import read_ply_header
from softform_core.shapes.read import read_shape
from softform_core.shapes.shape import Shape
from softform_core.shapes.write import write_ply

BALL = trimesh.creation.icosphere(subdivisions=2, radius=0.1)

coordinates = st.floats(-1000.0, 1000.0, width=32).map(lambda x: np.float64(x) if abs(x) > 1e-6 else 0.0)


def write_ball(path, kind, cloud=False, **options):
    shape = trimesh.PointCloud(BALL.vertices) if cloud else BALL
    content = shape.export(file_type=kind, **options)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("name", "kind", "options"),
    [
        ("ball.ply", "ply", {"encoding": "binary"}),
        ("ball.PLY", "ply", {"encoding": "ascii"}),
        ("ball.obj", "obj", {}),
        ("ball.stl", "stl", {}),
        ("ball.stl", "stl_ascii", {}),
    ],
)
def test_every_format_gives_the_same_mesh(tmp_path, name, kind, options):
    shape = read_shape(write_ball(tmp_path / name, kind, **options))
    assert len(shape.points) == len(BALL.vertices)
    assert len(shape.faces) == len(BALL.faces)
    assert np.allclose(np.linalg.norm(shape.points, axis=1), 0.1, atol=1e-6)
    assert np.einsum("ni,ni->n", shape.normals, shape.points).min() > 0.0


@pytest.mark.parametrize("encoding", ["ascii", "binary"])
def test_a_ply_without_faces_is_a_cloud(tmp_path, encoding):
    shape = read_shape(write_ball(tmp_path / "ball.ply", "ply", cloud=True, encoding=encoding), "mm")
    assert shape.faces is None
    assert np.allclose(shape.points, BALL.vertices / 1000.0, atol=1e-8)


def test_an_obj_without_faces_is_a_cloud_and_quads_are_cut(tmp_path):
    cloud, quads = tmp_path / "cloud.obj", tmp_path / "quads.obj"
    vertices = "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0.5\n"
    cloud.write_text(vertices)
    quads.write_text(vertices + "mtllib ../none.mtl\nusemtl a\nf 1 2 3 4\n")
    assert read_shape(cloud).faces is None
    assert read_shape(quads).faces.shape == (2, 3)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    points=arrays(np.float64, st.tuples(st.integers(4, 30), st.just(3)), elements=coordinates),
    unit=st.sampled_from(["m", "mm"]),
    with_normals=st.booleans(),
    with_faces=st.booleans(),
)
def test_what_is_written_is_read_back(tmp_path, points, unit, with_normals, with_faces):
    assume((points == 0.0).all(axis=1).sum() < 2)  # places at the origin count as not measured
    try:
        shape = Shape.from_cloud(points, np.ones_like(points) if with_normals else None)
        if with_faces:
            shape = Shape.from_mesh(points, [[0, last - 1, last] for last in range(2, len(points))])
    except SoftformError:
        return
    path = tmp_path / "shape.ply"
    write_ply(path, shape, unit, ["captured_at 1718000000.250000"])
    back = read_shape(path, unit)
    assert np.allclose(back.points, points, rtol=1e-6, atol=1e-9)
    assert (back.faces is None) == (shape.faces is None)
    if shape.faces is not None:
        assert np.array_equal(back.faces, shape.faces)
    assert read_ply_header(path).comment("captured_at") == "1718000000.250000"
    assert [p.name for p in tmp_path.iterdir()] == ["shape.ply"]


def test_a_ply_that_states_its_unit_is_not_read_in_another(tmp_path):
    write_ply(tmp_path / "ball.ply", Shape.from_mesh(BALL.vertices, BALL.faces), "mm")
    with pytest.raises(SoftformError, match="State the unit mm"):
        read_shape(tmp_path / "ball.ply", "m")


@pytest.mark.parametrize(
    ("kind", "cloud", "options"),
    [
        ("ply", False, {"encoding": "ascii"}),
        ("ply", False, {"encoding": "binary"}),
        ("ply", True, {"encoding": "ascii"}),
        ("ply", True, {"encoding": "binary"}),
        ("stl", False, {}),
        ("stl_ascii", False, {}),
    ],
)
def test_a_truncated_file_never_passes_for_a_whole_one(tmp_path, kind, cloud, options):
    path = write_ball(tmp_path / f"ball.{kind[:3]}", kind, cloud, **options)
    whole = path.read_bytes()
    for share in np.linspace(0.0, 0.97, 30):
        path.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(SoftformError) as caught:
            read_shape(path)
        assert str(path) in str(caught.value)
        assert caught.value.next_step


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_corrupt_file_is_rejected_or_read_but_nothing_else(tmp_path, data):
    name, kind, options = data.draw(
        st.sampled_from(
            [
                ("ball.ply", "ply", {"encoding": "binary"}),
                ("ball.ply", "ply", {"encoding": "ascii"}),
                ("ball.obj", "obj", {}),
                ("ball.stl", "stl", {}),
            ]
        )
    )
    path = write_ball(tmp_path / name, kind, **options)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    try:
        shape = read_shape(path)
    except SoftformError as error:
        assert error.next_step
        return
    assert np.isfinite(shape.points).all()


PLY_CLOUD = (
    b"ply\nformat ascii 1.0\nelement vertex %d\nproperty float x\nproperty float y\nproperty float z\nend_header\n"
)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("shape.ply", b"", "is empty"),
        ("shape.ply", b"not a ply", "not a PLY file"),
        (
            "shape.ply",
            b"ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nend_header\n0\n0\n0\n",
            "properties x",
        ),
        ("shape.ply", b"ply\nformat ascii 1.0\nelement vertex many\nend_header\n0\n", "not understood"),
        (
            "shape.ply",
            b"ply\nformat ascii 1.0\nelement vertex 9\nelement vertex 4\nend_header\n0\n",
            "element vertex 4",
        ),
        ("shape.ply", b"ply\nformat ascii 1.0\nelement vertex\x1f4\nend_header\n0\n", "control characters"),
        ("shape.ply", b"ply\nformat ascii 1.0\npropertmikedh\nelement vertex 4\nend_header\n0\n", "propertmikedh"),
        ("shape.ply", PLY_CLOUD % 3 + b"0 0 0\n1 0 0\n0 1 0\n", "3 points; at least"),
        ("shape.ply", PLY_CLOUD % 6000000 + b"0 0 0\n", "ends before"),
        (
            "shape.ply",
            PLY_CLOUD % 4 + b"0 0 0 9\n1 0 0 9\n0 1 0 9\n1 1 1 9\n",
            "16 numbers after the header, which promises 12",
        ),
        (
            "shape.ply",
            b"ply\nformat binary_little_endian 1.0\nelement vertex 1500000\nproperty float x\nend_header\n0",
            "ends before all that its header promises",
        ),
        ("shape.obj", b"hello\n", "'hello' is no whole line"),
        ("shape.obj", b"# of nothing\n", "holds no shape"),
        ("shape.obj", b"v 0 0 nan\nv 1 0 0\nv 1 1 0\nv 0 1 0\nf 1 2 3 4\n", "NaN"),
        ("shape.stl", b"solid", "truncated"),
        ("shape.stl", b"\x1f\x8b\x08", "packed"),
        ("shape.obj", b"version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 9\n", "git lfs pull"),
        ("shape.txt", b"0 0 0\n", "not of a type"),
        ("shape", b"0 0 0\n", "no extension"),
    ],
)
def test_unusable_files_are_rejected_with_the_reason(tmp_path, name, content, says):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SoftformError) as caught:
        read_shape(tmp_path / name)
    assert says in str(caught.value)
    assert str(tmp_path / name) in str(caught.value)


XYZ = "0 0 0\n1 0 0\n1 1 0\n0 1 0.5\n"


@pytest.mark.parametrize(
    "content",
    [
        XYZ,
        XYZ.replace(" ", ", "),
        XYZ.replace(" ", ";").replace("\n", "\r\n"),
        "# made by a scanner\n//X Y Z\n" + XYZ,
        "X Y Z\n4\n\n" + XYZ,
        XYZ.replace("\n", " 0.0 0.0 1.0 255 0 0\n"),
    ],
)
def test_a_table_of_coordinates_is_a_cloud(tmp_path, content):
    (tmp_path / "a.xyz").write_text(content, newline="")
    shape = read_shape(tmp_path / "a.xyz", "mm")
    assert shape.faces is None
    assert np.allclose(shape.points * 1000.0, [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0.5]])


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (XYZ.replace("0\n", "0.00\n").replace("0.5\n", "0.5"), "ends within a number"),
        (XYZ[:-6] + "\n", "not all of as many numbers"),
        ("5\n" + XYZ, "4 rows of the 5"),
        ("1 2\n3 4\n5 6\n7 8\n", "2 numbers"),
        ("X Y Z\n", "first one is 'X Y Z'"),
        (XYZ.replace("\n", "\x0b", 1), "Line 1 holds the control character"),
        (XYZ.replace("0.5", "nan"), "3 points; at least"),
        (XYZ.replace("1", "1e12"), "A coordinate is 1e.12"),
        (XYZ + "end\n", "not all of as many numbers"),
        ("0 0 zero\n" + XYZ, "'0 0 zero' is damaged"),
    ],
)
def test_a_table_that_is_none_is_rejected(tmp_path, content, says):
    (tmp_path / "a.xyz").write_text(content, newline="")
    with pytest.raises(SoftformError, match=says):
        read_shape(tmp_path / "a.xyz")


def test_missing_files_folders_and_units_are_rejected(tmp_path):
    with pytest.raises(SoftformError, match="does not exist"):
        read_shape(tmp_path / "none.ply")
    (tmp_path / "folder.ply").mkdir()
    with pytest.raises(SoftformError, match="is a folder"):
        read_shape(tmp_path / "folder.ply")
    with pytest.raises(SoftformError, match="'inch' is not known"):
        read_shape(write_ball(tmp_path / "ball.ply", "ply"), "inch")


def test_a_huge_file_is_rejected_before_it_is_read(tmp_path, monkeypatch):
    path = tmp_path / "huge.obj"
    with open(path, "wb") as file:
        file.truncate(reading.MAX_FILE_BYTES + 1)  # sparse: takes no room
    monkeypatch.setattr(trimesh, "load", lambda *args, **options: pytest.fail("the file was loaded"))
    with pytest.raises(SoftformError, match="at most 256 MB"):
        read_shape(path)


def test_a_failed_write_keeps_the_old_file_and_leaves_nothing(tmp_path):
    shape = Shape.from_mesh(BALL.vertices, BALL.faces)
    with pytest.raises(SoftformError, match="cannot be written"):
        write_ply(tmp_path / "none" / "ball.ply", shape)
    target = tmp_path / "ball.ply"
    target.mkdir()
    with pytest.raises(SoftformError, match="cannot be written"):
        write_ply(target, shape)
    assert [p.name for p in tmp_path.iterdir()] == ["ball.ply"]
    with pytest.raises(SoftformError, match="one line"):
        write_ply(tmp_path / "other.ply", shape, comments=["a\nelement vertex 0"])


@pytest.mark.parametrize("name", ["a" * 300 + ".obj", "closed/a.obj"])
def test_a_file_that_may_not_be_looked_for_is_named(tmp_path, monkeypatch, name):
    def denied(path, *args, **options):
        if "closed" in str(path):
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, *args, **options)

    stat = os.stat
    monkeypatch.setattr(os, "stat", denied)
    with pytest.raises(SoftformError, match="cannot be read: .*Check its name, and the permissions"):
        read_shape(tmp_path / name)


@pytest.mark.parametrize(
    ("says", "encoding", "unit"),
    [
        ("# all units in [cm]", "utf-8", "cm"),
        ("# Einheit: cm", "utf-8", "cm"),
        ("# length unit (cm)", "latin-1", "cm"),
        ("# unit: cm", "utf-16", "cm"),
        ("x [cm] y [cm] z [cm]", "utf-16", "cm"),
        ("# " + 1500 * "-" + "\n# unit: cm", "utf-8", "cm"),
        ("# UNITS=in", "utf-8", "inches"),
        ("# Units: µm", "utf-8", "µm"),
    ],
)
def test_a_unit_is_seen_wherever_the_start_of_a_file_says_it(tmp_path, says, encoding, unit):
    (tmp_path / "a.xyz").write_bytes(f"{says}\n{XYZ}".encode(encoding))
    with pytest.raises(SoftformError, match=f"in {unit}, but was to be read in mm"):
        read_shape(tmp_path / "a.xyz", "mm")


@pytest.mark.parametrize(
    "says", ["units are mm", "Einheiten in mm", "no units in the header", "unit vectors, m behind"]
)
def test_what_is_no_other_unit_passes(tmp_path, says):
    (tmp_path / "a.xyz").write_text(f"# {says}\n{XYZ}")
    assert len(read_shape(tmp_path / "a.xyz", "mm").points) == 4
