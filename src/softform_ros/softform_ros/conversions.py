"""Convert between ROS messages and arrays: point clouds, markers and stamps. Metres and seconds on both sides."""

from array import array
from collections.abc import Mapping, Sequence

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point
from numpy.typing import NDArray
from sensor_msgs.msg import PointCloud2, PointField
from std_msgs.msg import Header

from softform_core.errors import SoftformError
from softform_core.units import NANOSECONDS_PER_SECOND
from softform_interfaces.msg import MarkerFrame

NORMAL_FIELDS = ("normal_x", "normal_y", "normal_z")
"""Fields of a cloud whose points have normals, as the Point Cloud Library names them."""

_FIELD_TYPES = {
    PointField.INT8: "i1",
    PointField.UINT8: "u1",
    PointField.INT16: "i2",
    PointField.UINT16: "u2",
    PointField.INT32: "i4",
    PointField.UINT32: "u4",
    PointField.FLOAT32: "f4",
    PointField.FLOAT64: "f8",
}


def packed_vertices(points: NDArray[np.floating]) -> "array[float]":
    """Return vertices (V, 3) m as a message's float32 x, y and z of each."""
    return array("f", np.ascontiguousarray(points, dtype="<f4").tobytes())


def unpacked_vertices(vertices: Sequence[float]) -> NDArray[np.float64]:
    """Return vertices (V, 3) m of a message.

    Raises:
        SoftformError: If they are no whole vertices.
    """
    if len(vertices) % 3:
        raise SoftformError(f"{len(vertices)} coordinates are no vertices.", "Give x, y and z of each.")
    return np.array(vertices, dtype=np.float64).reshape(-1, 3)


def stamp_from_seconds(seconds: float) -> Time:
    """Return `seconds` since the epoch as a stamp."""
    return stamp_from_nanoseconds(round(seconds * NANOSECONDS_PER_SECOND))


def stamp_from_nanoseconds(nanoseconds: int) -> Time:
    """Return nanoseconds since the epoch as a stamp, exactly."""
    return Time(sec=nanoseconds // NANOSECONDS_PER_SECOND, nanosec=nanoseconds % NANOSECONDS_PER_SECOND)


def nanoseconds_from_stamp(stamp: Time) -> int:
    """Return a stamp as nanoseconds since the epoch, exactly: stamps are distinguished by them."""
    return int(stamp.sec) * NANOSECONDS_PER_SECOND + int(stamp.nanosec)


def seconds_from_stamp(stamp: Time) -> float:
    """Return a stamp as seconds since the epoch."""
    return float(stamp.sec) + stamp.nanosec / NANOSECONDS_PER_SECOND


def cloud_from_points(
    points: NDArray[np.floating], frame_id: str, stamp: Time, values: Mapping[str, NDArray[np.floating]] | None = None
) -> PointCloud2:
    """Return points (N, 3) m as a `PointCloud2` of float32 x, y, z, and of a float32 field for each of `values`."""
    values = values or {}
    columns = [np.asarray(points, dtype="<f4").reshape(-1, 3)]
    columns += [np.asarray(value, dtype="<f4").reshape(-1, 1) for value in values.values()]
    data = np.ascontiguousarray(np.concatenate(columns, axis=1))
    message = PointCloud2(
        header=Header(stamp=stamp, frame_id=frame_id),
        height=1,
        width=len(data),
        fields=[
            PointField(name=name, offset=4 * index, datatype=PointField.FLOAT32, count=1)
            for index, name in enumerate([*"xyz", *values])
        ],
        is_bigendian=False,
        point_step=4 * data.shape[1],
        row_step=4 * data.size,
        is_dense=bool(np.isfinite(data).all()),
    )
    # The setter checks a list element by element; an array of bytes is taken as it is.
    message._data.frombytes(data.tobytes())
    return message


def points_from_cloud(cloud: PointCloud2) -> NDArray[np.float64]:
    """Return the (N, 3) m points of a `PointCloud2`, NaN rows included.

    Raises:
        SoftformError: For the reasons of `values_from_cloud`.
    """
    return values_from_cloud(cloud, "xyz")


def values_from_cloud(cloud: PointCloud2, names: Sequence[str]) -> NDArray[np.float64]:
    """Return fields of a `PointCloud2`, (N, number of names), row by row of an organised cloud.

    Raises:
        SoftformError: If a field is not a float, and as `fields_from_cloud`.
    """
    kinds = {field.name: field.datatype for field in cloud.fields}
    if any(kinds.get(name, PointField.FLOAT32) not in (PointField.FLOAT32, PointField.FLOAT64) for name in names):
        raise SoftformError(f"{', '.join(names)} of the point cloud are not floats.", "Send float32 x, y, z in metres.")
    table = fields_from_cloud(cloud, names)
    return np.stack([table[name].ravel() for name in names], axis=1).astype(np.float64)


def fields_from_cloud(cloud: PointCloud2, names: Sequence[str]) -> NDArray[np.void]:
    """Return a view of some fields of a `PointCloud2` as a structured array, (height, width).

    Points may be padded with other fields, and rows with bytes that belong to no point.

    Raises:
        SoftformError: If a field is missing or of unknown type, or if the layout does not fit the data.
    """
    fields = {field.name: field for field in cloud.fields}
    missing = [name for name in names if name not in fields]
    if missing:
        raise SoftformError(f"The point cloud has no field {', '.join(missing)}.", "Send float32 x, y, z in metres.")
    unknown = [name for name in names if fields[name].datatype not in _FIELD_TYPES]
    if unknown:
        raise SoftformError(f"The type of {', '.join(unknown)} of the point cloud is unknown.", "Check its driver.")
    order = ">" if cloud.is_bigendian else "<"
    types = [np.dtype(order + _FIELD_TYPES[fields[name].datatype]) for name in names]
    ends = [fields[name].offset + kind.itemsize for name, kind in zip(names, types, strict=True)]
    shape = cloud.height, cloud.width
    row_bytes = cloud.width * cloud.point_step
    row_step = cloud.row_step or row_bytes  # some drivers leave it 0
    if 0 in shape:
        return np.empty(shape, dtype=list(zip(names, types, strict=True)))
    if max(ends) > cloud.point_step or (row_step < row_bytes and cloud.height > 1):
        raise SoftformError(
            f"The layout of the point cloud contradicts itself: points of {cloud.point_step} bytes with fields up to "
            f"byte {max(ends)}, {cloud.width} of them in rows of {row_step} bytes.",
            "Check the driver that sends it.",
        )
    if len(cloud.data) < row_step * (cloud.height - 1) + row_bytes:
        raise SoftformError(
            f"The point cloud says {cloud.width * cloud.height} points of {cloud.point_step} bytes but holds "
            f"{len(cloud.data)} bytes.",
            "The message is truncated: send it again.",
        )
    offsets = [fields[name].offset for name in names]
    layout = np.dtype({"names": list(names), "formats": types, "offsets": offsets, "itemsize": cloud.point_step})
    return np.ndarray(shape, layout, cloud.data, strides=(row_step, cloud.point_step))


def marker_message(
    names: Sequence[str], positions: NDArray[np.float64], frame_id: str, stamp: Time, frame_number: int
) -> MarkerFrame:
    """Return markers as a `MarkerFrame`.

    Args:
        names: M names.
        positions: (M, 3) m; a marker with a coordinate that is not finite is missing.
        frame_id: Frame of the positions.
        stamp: Time of capture.
        frame_number: Counts the frames of the capture system.
    """
    visible = np.asarray(np.isfinite(positions).all(axis=1))
    places = np.where(visible[:, None], positions, np.nan)
    return MarkerFrame(
        header=Header(stamp=stamp, frame_id=frame_id),
        frame_number=frame_number,
        name=list(names),
        position=[Point(x=float(x), y=float(y), z=float(z)) for x, y, z in places],
        visible=visible.tolist(),
    )


def positions_from_markers(message: MarkerFrame) -> NDArray[np.float64]:
    """Return the (M, 3) m positions of a `MarkerFrame`, NaN where a marker is missing.

    What many drivers send for a missing marker, (0, 0, 0) or a coordinate that is not finite, counts as missing.

    Raises:
        SoftformError: If names, positions and visibilities are not as many, or a name comes twice.
    """
    count = len(message.name)
    if not len(message.position) == len(message.visible) == count:
        raise SoftformError(
            f"Frame {message.frame_number} has {count} names, {len(message.position)} positions and "
            f"{len(message.visible)} visibilities.",
            "Send as many of each.",
        )
    if len(set(message.name)) != count:
        raise SoftformError(f"Frame {message.frame_number} has a name twice.", "Label the markers.")
    positions = np.array([[point.x, point.y, point.z] for point in message.position]).reshape(count, 3)
    seen = np.array(message.visible, dtype=bool) & np.isfinite(positions).all(axis=1) & positions.any(axis=1)
    positions[~seen] = np.nan
    return positions
