"""Markers for others' viewers."""

import numpy as np
import pytest
from std_msgs.msg import Header
from visualization_msgs.msg import Marker

from softform_core.contact.barrier import Touch
from softform_core.robots import load_robot
from softform_ros.conversions import marker_message
from softform_ros.viewer_markers import captured_spheres, surface_marker, touch_markers

HEADER = Header(frame_id="membrane/base_link")


@pytest.fixture(scope="module")
def grid():
    patches = load_robot("membrane").patches
    uv = patches.samples(100)
    return np.column_stack([0.1 * uv, 0.01 * uv[:, 0]]), patches.triangles(100).astype(np.uint32)


def test_each_corner_of_each_triangle_is_where_its_vertex_is(grid):
    points, triangles = grid
    sent = surface_marker(points, triangles, None, HEADER, is_stale=False)
    assert (sent.type, sent.action, sent.header.frame_id) == (Marker.TRIANGLE_LIST, Marker.ADD, "membrane/base_link")
    assert (sent.scale.x, sent.scale.y, sent.scale.z, sent.pose.orientation.w) == (1.0, 1.0, 1.0, 1.0)
    corners = np.array([[one.x, one.y, one.z] for one in sent.points]).reshape(-1, 3, 3)
    assert np.array_equal(corners, points[triangles]) and len(sent.colors) == len(sent.points)
    assert len({(one.r, one.g, one.b) for one in sent.colors}) == 1 and "not known" in sent.text


def test_the_colours_are_the_uncertainty_on_a_scale_that_the_text_names(grid):
    points, triangles = grid
    sigma = np.linspace(0.0, 0.0015, len(points))
    sent = surface_marker(points, triangles, sigma, HEADER, is_stale=False)
    red = np.array([one.r for one in sent.colors])
    at = sigma[triangles].ravel()
    assert np.all(np.diff(red[np.argsort(at)]) >= 0.0) and "1.5 mm" in sent.text
    assert red[at.argmin()] < 0.01 < 0.99 < red[at.argmax()] and all(one.a == 1.0 for one in sent.colors)


def test_a_rest_shape_without_measurement_is_pale(grid):
    sent = surface_marker(*grid, None, HEADER, is_stale=True)
    assert all(one.a < 0.5 for one in sent.colors)


def test_spheres_stand_where_markers_are_seen():
    places = np.array([[0.1, 0.2, 0.3], [np.nan, 0.0, 0.0], [0.4, 0.5, 0.6]])
    sent = captured_spheres(marker_message(["a", "b", "c"], places, "membrane/base_link", HEADER.stamp, 1))
    assert (sent.type, sent.action) == (Marker.SPHERE_LIST, Marker.ADD)
    assert [(one.x, one.y, one.z) for one in sent.points] == [(0.1, 0.2, 0.3), (0.4, 0.5, 0.6)]
    none = captured_spheres(marker_message(["a"], places[1:2], "membrane/base_link", HEADER.stamp, 2))
    assert none.action == Marker.DELETE and not none.points


def test_contact_is_points_an_arrow_and_newtons():
    points = np.array([[0.0, 0.0, 0.1], [0.02, 0.0, 0.1]])
    ball = Touch("ball", points.mean(axis=0), np.array([0.0, 0.0, -2.0]), points, np.array(2 * [[0.0, 0.0, -1.0]]))
    fold = Touch("itself", points.mean(axis=0), np.zeros(3), points, np.array([[0.0, 0.0, 0.5], [0.0, 0.0, -0.5]]))
    away, spheres, arrow, text, among, told = touch_markers([ball, fold], 0.3, Header(frame_id="base")).markers
    assert away.action == Marker.DELETEALL and not touch_markers([], 0.3, Header()).markers[1:]
    assert (len(spheres.points), len(among.points)) == (2, 2)
    assert [(end.x, round(end.z, 3)) for end in arrow.points] == [(0.01, 0.1), (0.01, 0.01)]
    assert (text.text, told.text) == ("ball 2 N", "itself 1 N")
