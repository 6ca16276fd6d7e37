import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from sensor_msgs.msg import PointCloud2, PointField

from softform_core.errors import SoftformError
from softform_ros.conversions import (
    cloud_from_points,
    fields_from_cloud,
    marker_message,
    points_from_cloud,
    positions_from_markers,
    seconds_from_stamp,
    stamp_from_seconds,
    values_from_cloud,
)

finite_float32 = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(npst.arrays(np.float32, st.tuples(st.integers(0, 40), st.just(3)), elements=finite_float32))
def test_points_survive_the_message(points):
    cloud = cloud_from_points(points, "base_link", stamp_from_seconds(1.0))
    assert cloud.width == len(points)
    np.testing.assert_array_equal(points_from_cloud(cloud), points.astype(np.float64))


def test_a_cloud_with_extra_fields_and_float64_is_read():
    table = np.zeros(3, dtype=[("intensity", "<f4"), ("x", "<f8"), ("y", "<f8"), ("z", "<f8")])
    table["x"], table["y"], table["z"] = [1, 2, 3], [4, 5, 6], [7, 8, np.nan]
    cloud = PointCloud2(height=1, width=3, point_step=28, row_step=84, data=table.tobytes())
    cloud.fields = [PointField(name=n, offset=o, datatype=8, count=1) for n, o in (("x", 4), ("y", 12), ("z", 20))]
    np.testing.assert_array_equal(points_from_cloud(cloud), [[1, 4, 7], [2, 5, 8], [3, 6, np.nan]])


def test_a_truncated_cloud_and_one_without_z_are_rejected():
    cloud = cloud_from_points(np.ones((4, 3)), "base_link", stamp_from_seconds(0.0))
    cloud.width = 5
    with pytest.raises(SoftformError, match="truncated"):
        points_from_cloud(cloud)
    cloud.fields = list(cloud.fields)[:2]
    with pytest.raises(SoftformError, match="no field z"):
        points_from_cloud(cloud)


def test_values_travel_beside_the_points():
    points, sigma = np.arange(12.0).reshape(4, 3), np.array([0.5, 1.0, np.nan, 2.0])
    cloud = cloud_from_points(points, "base_link", stamp_from_seconds(0.0), {"uncertainty": sigma})
    assert [field.name for field in cloud.fields] == ["x", "y", "z", "uncertainty"]
    np.testing.assert_array_equal(points_from_cloud(cloud), points)
    np.testing.assert_array_equal(values_from_cloud(cloud, ["uncertainty"])[:, 0], sigma)


@given(st.floats(min_value=0.0, max_value=2.0e9))
def test_stamps_keep_microseconds(seconds):
    assert seconds_from_stamp(stamp_from_seconds(seconds)) == pytest.approx(seconds, abs=1e-6)


def test_markers_survive_the_message_and_missing_ones_are_nan_and_not_visible():
    positions = np.array([[0.1, -0.2, 0.3], [np.nan, 0.0, 0.0], [1.0, np.inf, 0.0]])
    message = marker_message(["a", "b", "c"], positions, "mocap", stamp_from_seconds(2.0), 7)
    assert (message.frame_number, message.header.frame_id, message.header.stamp.sec) == (7, "mocap", 2)
    assert list(message.visible) == [True, False, False]
    assert np.isnan([message.position[1].y, message.position[2].x]).all()
    np.testing.assert_array_equal(positions_from_markers(message), [positions[0], [np.nan] * 3, [np.nan] * 3])


def test_what_drivers_send_for_a_missing_marker_counts_as_missing():
    message = marker_message(["a", "b", "c"], np.ones((3, 3)), "mocap", stamp_from_seconds(0.0), 0)
    message.position[0] = type(message.position[0])()
    message.visible[1] = False
    assert np.isnan(positions_from_markers(message)).all(axis=1).tolist() == [True, True, False]


def test_markers_with_unequal_lists_or_a_name_twice_are_rejected():
    message = marker_message(["a", "a"], np.ones((2, 3)), "mocap", stamp_from_seconds(0.0), 3)
    with pytest.raises(SoftformError, match="Frame 3 has a name twice"):
        positions_from_markers(message)
    message.name = ["a", "b", "c"]
    with pytest.raises(SoftformError, match="3 names, 2 positions"):
        positions_from_markers(message)


def organised_cloud(row_padding=5):
    """A 2 x 3 cloud as a depth camera sends it: x, y, z, a colour, padding after each point and after each row."""
    rows = []
    for row in range(2):
        points = np.zeros((3, 5), dtype="<f4")
        points[:, :3] = np.arange(9).reshape(3, 3) + 9 * row
        rows.append(points.tobytes() + b"\xff" * row_padding)
    cloud = PointCloud2(height=2, width=3, point_step=20, row_step=60 + row_padding, data=b"".join(rows))
    cloud.fields = [PointField(name=n, offset=4 * k, datatype=7, count=1) for k, n in enumerate("xyz")]
    cloud.fields.append(PointField(name="rgb", offset=16, datatype=6, count=1))
    return cloud


def test_an_organised_cloud_with_padded_rows_is_read():
    cloud = organised_cloud()
    np.testing.assert_array_equal(points_from_cloud(cloud), np.arange(18.0).reshape(6, 3))
    assert fields_from_cloud(cloud, ["rgb"])["rgb"].shape == (2, 3)
    cloud.data = cloud.data[:-5]  # the last row's padding may be left out
    np.testing.assert_array_equal(points_from_cloud(cloud), np.arange(18.0).reshape(6, 3))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"row_step": 40}, "contradicts itself"),
        ({"point_step": 8}, "contradicts itself"),
        ({"row_step": 4_000_000_000}, "truncated"),
        ({"width": 4_000_000_000, "row_step": 0}, "truncated"),
        ({"fields": [PointField(name=n, offset=4 * k, datatype=5, count=1) for k, n in enumerate("xyz")]}, "floats"),
        ({"fields": [PointField(name=n, offset=4 * k, datatype=77, count=1) for k, n in enumerate("xyz")]}, "floats"),
    ],
)
def test_a_layout_that_contradicts_itself_is_rejected(change, reason):
    cloud = organised_cloud()
    for name, value in change.items():
        setattr(cloud, name, value)
    with pytest.raises(SoftformError, match=reason):
        points_from_cloud(cloud)
