"""Targets of fuzzing: every reader of scans takes any bytes, and rejects or reads them consistently.

A target returns if the bytes are rejected with a `SoftformError` or read; it raises `AssertionError` if what was read
cannot have been in them. Whatever else it raises is a crash of the reader.
"""

import re
import struct
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import trimesh
from sensor_msgs.msg import Image, PointCloud2, PointField

from softform_capture.camera_tracker.image_source import bgr_from_image
from softform_core.errors import SoftformError
from softform_core.shapes.read import read_shape
from softform_core.shapes.shape import Shape
from softform_core.shapes.stl import HEADER_BYTES, TRIANGLE_BYTES
from softform_core.shapes.validate import MAX_POINTS, MIN_POINTS
from softform_ros.conversions import points_from_cloud

_CLOUD = struct.Struct("<IIIIBB")  # height, width, point_step, row_step, is_bigendian, fields
_FIELD = struct.Struct("<BBI")  # name, datatype, offset
_FIELD_NAMES = ("x", "y", "z", "rgb")
_PCD = b"FIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\nWIDTH 12\nHEIGHT 1\nPOINTS 12\nDATA "
_IMAGE = struct.Struct("<IIIB")  # height, width, step, encoding
_ENCODINGS = ("bgr8", "rgb8", "bgra8", "rgba8", "yuv422_yuy2", "mono8", "")


def fuzz_ply(data: bytes) -> None:
    """As a PLY file: a cloud has no more points than the header promises."""
    shape = _read("scan.ply", data)
    promised = re.search(rb"^element\s+vertex\s+(\d+)", data, re.MULTILINE)
    if shape is not None:
        assert promised is not None
        assert shape.faces is not None or len(shape.points) <= int(promised[1])


def fuzz_obj(data: bytes) -> None:
    """As an OBJ file: there are no more points than the file has rows of vertices or corners of faces."""
    shape = _read("scan.obj", data)
    if shape is not None:
        assert len(shape.points) <= max(data.count(b"v"), len(data) // 2)


def fuzz_stl(data: bytes) -> None:
    """As an STL file: a binary one has the triangles that it promises, as a whole, and then padding at most."""
    shape = _read("scan.stl", data)
    if shape is not None:
        assert shape.faces is not None
        if b"solid" not in data.lower():
            promised = int.from_bytes(data[HEADER_BYTES - 4 : HEADER_BYTES], "little")
            assert len(shape.faces) == promised
            end = HEADER_BYTES + TRIANGLE_BYTES * promised
            assert len(data) >= end and not data[end:].strip(b"\r\n\0")


def fuzz_pcd(data: bytes) -> None:
    """As a PCD file: there are no more points than the header promises."""
    shape = _read("scan.pcd", data)
    promised = re.search(rb"^POINTS[ \t]+(\d+)", data, re.MULTILINE)
    if shape is not None:
        assert promised is not None
        assert len(shape.points) <= int(promised[1])


def fuzz_xyz(data: bytes) -> None:
    """As a table of coordinates: every point has a row."""
    shape = _read("scan.xyz", data)
    if shape is not None:
        assert len(shape.points) <= len(data.splitlines())


def fuzz_cloud(data: bytes) -> None:
    """As a `PointCloud2` of any layout: there are as many points as it says, and enough bytes for them."""
    if len(data) < _CLOUD.size:
        return
    height, width, point_step, row_step, is_bigendian, count = _CLOUD.unpack_from(data)
    body = data[_CLOUD.size :]
    fields = []
    for index in range(min(count % 8, len(body) // _FIELD.size)):
        name, datatype, offset = _FIELD.unpack_from(body, index * _FIELD.size)
        fields.append(PointField(name=_FIELD_NAMES[name % 4], datatype=datatype, offset=offset, count=1))
    content = body[len(fields) * _FIELD.size :]
    cloud = PointCloud2(height=height, width=width, point_step=point_step, row_step=row_step, fields=fields)
    cloud.is_bigendian = bool(is_bigendian % 2)
    cloud._data.frombytes(content)
    try:
        points = points_from_cloud(cloud)
    except SoftformError:
        return
    assert points.shape == (height * width, 3)
    assert len(points) == 0 or height * width * point_step <= len(content)


def fuzz_image(data: bytes) -> None:
    """As an `Image` of any layout: it has the size that it says, and enough bytes for it."""
    if len(data) < _IMAGE.size:
        return
    height, width, step, encoding = _IMAGE.unpack_from(data)
    message = Image(height=height, width=width, step=step, encoding=_ENCODINGS[encoding % len(_ENCODINGS)])
    message._data.frombytes(data[_IMAGE.size :])
    try:
        picture = bgr_from_image(message)
    except SoftformError:
        return
    assert picture.shape == (height, width, 3)
    assert 2 * height * width <= len(data)


def _read(name: str, data: bytes) -> Shape | None:
    """What the bytes are as a file of this name; None if they are rejected."""
    path = Path(_folder().name) / name
    path.write_bytes(data)
    try:
        shape = read_shape(path, "mm")
    except SoftformError as error:
        assert error.message and error.next_step
        return None
    assert MIN_POINTS <= len(shape.points) <= MAX_POINTS
    assert np.isfinite(shape.points).all()
    assert shape.normals is None or np.isfinite(shape.normals).all()
    if shape.faces is not None:
        assert 0 <= shape.faces.min() <= shape.faces.max() < len(shape.points)
    return shape


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Where the files lie until the process ends, in memory if the system has such a folder."""
    memory = Path("/dev/shm")
    return tempfile.TemporaryDirectory(prefix="softform_fuzz_", dir=memory if memory.is_dir() else None)


def _file_seeds() -> dict[str, list[bytes]]:
    ball = trimesh.creation.icosphere(subdivisions=1, radius=100.0)
    cloud = trimesh.PointCloud(ball.vertices[:12])
    rows = "".join(f"{x:.3f} {y:.3f} {z:.3f}\n" for x, y, z in ball.vertices[:12])
    body = ball.vertices[:12].astype("<f4").tobytes()
    columns = ball.vertices[:12].T.astype("<f4").tobytes()
    runs = [columns[at : at + 32] for at in range(0, len(columns), 32)]  # of LZF, nothing of which is packed
    packed = b"".join(bytes([len(run) - 1]) + run for run in runs)
    ply = [shape.export(file_type="ply", encoding=kind) for shape in (ball, cloud) for kind in ("binary", "ascii")]
    return {
        "fuzz_ply": [_bytes(content) for content in ply],
        "fuzz_obj": [_bytes(ball.export(file_type="obj")), "".join(f"v {row}\n" for row in rows.splitlines()).encode()],
        "fuzz_stl": [_bytes(ball.export(file_type=kind)) for kind in ("stl", "stl_ascii")],
        "fuzz_pcd": [
            _PCD + b"ascii\n" + rows.encode(),
            _PCD + b"binary\n" + body,
            _PCD + b"binary_compressed\n" + struct.pack("<II", len(packed), len(columns)) + packed,
        ],
        "fuzz_xyz": [rows.encode(), b"12\n" + rows.replace(" ", ";").encode()],
    }


def _bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content


def _message_seeds() -> dict[str, list[bytes]]:
    points = np.arange(24, dtype="<f4").tobytes()
    fields = b"".join(_FIELD.pack(index, PointField.FLOAT32, 4 * index) for index in range(3))
    return {
        "fuzz_cloud": [
            _CLOUD.pack(2, 3, 16, 48, 0, 3) + fields + points,
            _CLOUD.pack(1, 8, 12, 0, 1, 3) + fields + points,
        ],
        "fuzz_image": [_IMAGE.pack(4, 8, 24, 0) + points, _IMAGE.pack(4, 10, 24, 4) + points],
    }


TARGETS: Mapping[str, Callable[[bytes], None]] = {
    target.__name__: target for target in (fuzz_ply, fuzz_obj, fuzz_stl, fuzz_pcd, fuzz_xyz, fuzz_cloud, fuzz_image)
}
SEEDS: Mapping[str, Sequence[bytes]] = _file_seeds() | _message_seeds()
"""Valid inputs of each target."""
