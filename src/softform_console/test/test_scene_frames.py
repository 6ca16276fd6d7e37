"""Frames hold what they were made of, at each level, as an independent reader of PROTOCOL.md finds it."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softform_console.scene_frames import HAS_SCALAR, PREVIEW, STALE, Kind, Level, SceneItem
from softform_console.scene_store import REST, Line, SceneStore
from softform_console.scene_topology import MeshGrid
from softform_core.robots import load_robot

sys.path.insert(0, str(Path(__file__).parent))

from decoded_frame import decoded  # noqa: E402


def mesh_grid(name="membrane", count=900):
    robot = load_robot(name)
    triangles = robot.patches.triangles(count).astype(np.uint32)
    points = len(robot.patches.samples(count))
    return robot, MeshGrid(robot, 77, points, triangles, [surface.patch for surface in robot.surfaces])


def mesh_item(grid, seed=0, flags=0):
    random = np.random.default_rng(seed)
    points = random.normal(scale=0.1, size=(len(grid.topology.uv), 3)).astype(np.float32)
    scalar = random.uniform(0.0, 1e-3, len(points)).astype(np.float32)
    return SceneItem(Kind.MESH, 0, 12.5, points, flags, scalar, topology=grid.topology, coarse=grid.coarse)


def test_a_mesh_comes_back_exactly_as_floats():
    item = mesh_item(mesh_grid()[1], flags=STALE)
    found = decoded(item.encoded(Level.FLOAT, 9))
    assert (found.kind, found.level, found.flags, found.seq, found.stamp, found.topology) == (2, 0, 3, 9, 12.5, 77)
    assert np.array_equal(found.points, item.points) and np.array_equal(found.scalar, item.scalar)


@given(st.integers(0, 2**32 - 1), st.floats(1e-4, 10.0))
@settings(max_examples=30, deadline=None)
def test_a_mesh_in_shorts_is_off_by_half_a_step_at_most(seed, scale):
    random = np.random.default_rng(seed)
    points = (scale * random.normal(size=(50, 3))).astype(np.float32)
    item = SceneItem(Kind.CLOUD, 0, 0.0, points, scalar=points[:, 0])
    found = decoded(item.encoded(Level.SHORT, 1))
    span = points.max(axis=0) - points.min(axis=0)
    assert (np.abs(found.points - points) <= span / 65535.0 * 0.51 + 1e-6 * np.abs(points).max()).all()
    assert np.abs(found.scalar - item.scalar).max() <= span[0] / 255.0 * 0.51 + 1e-6 * np.abs(points).max()


def test_a_flat_mesh_in_shorts_stays_flat():
    points = np.zeros((4, 3), np.float32)
    points[:, 0] = [0.0, 1.0, 2.0, 3.0]
    found = decoded(SceneItem(Kind.CLOUD, 0, 0.0, points).encoded(Level.SHORT, 1))
    assert np.allclose(found.points, points, atol=1e-4)


@pytest.mark.parametrize("name", ["membrane", "manipulator"])
def test_a_coarse_mesh_is_every_second_row_and_column_with_the_rim(name):
    robot, grid = mesh_grid(name)
    item = mesh_item(grid)
    found = decoded(item.encoded(Level.COARSE, 1))
    rows, topology = grid.coarse
    assert found.topology == topology.id != 77 and len(found.points) == len(topology.uv) < len(item.points) / 3
    assert np.allclose(found.points, item.points[rows], atol=1e-4)
    assert np.array_equal(topology.uv, grid.topology.uv[rows])
    for corner in ([0.0, 0.0], [0.0, 1.0], *([] if robot.patches.has_tube else [[1.0, 0.0], [1.0, 1.0]])):
        assert (np.abs(topology.uv - corner).max(axis=1) < 1e-6).any()
    assert area(robot, topology) == pytest.approx(area(robot, grid.topology), rel=1e-3)


def area(robot, topology):
    """Of the parameters' triangles: the coarse ones leave no gap, lie on no other, and are turned alike."""
    corners = topology.uv[topology.triangles].astype(float)
    if robot.patches.has_tube:  # around the seam
        u = corners[..., 0]
        u[(u.max(axis=1) - u.min(axis=1) > 0.5)[:, None] & (u < 0.5)] += 1.0
    one, other = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    turned = one[:, 0] * other[:, 1] - one[:, 1] * other[:, 0]
    assert (turned > 0.0).all()
    return 0.5 * turned.sum()


def test_a_topology_says_where_each_vertex_lies():
    robot, grid = mesh_grid()
    item = SceneItem(Kind.TOPOLOGY, 0, 1.0, topology=grid.topology)
    found = decoded(item.encoded(Level.FLOAT, 3))
    assert (found.kind, found.outputs, found.topology) == (1, len(robot.surfaces), 77)
    assert np.allclose(found.uv, robot.patches.samples(900), atol=1e-6)
    assert np.array_equal(found.triangles, robot.patches.triangles(900)) and not found.output.any()


def test_missing_markers_stay_missing():
    points = np.array([[0.1, 0.2, 0.3], [np.nan] * 3], np.float32)
    found = decoded(SceneItem(Kind.MARKERS, 0, 1.0, points).encoded(Level.COARSE, 1))
    assert found.level == 0 and np.array_equal(found.points, points, equal_nan=True)


def test_a_target_has_its_triangles_and_says_if_it_is_a_preview():
    points = np.eye(3, dtype=np.float32)
    item = SceneItem(Kind.TARGET, 0, 1.0, points, PREVIEW, triangles=np.array([[0, 1, 2]], np.uint32))
    found = decoded(item.encoded(Level.SHORT, 1))
    assert found.flags == PREVIEW and np.array_equal(found.points, points) and found.triangles.tolist() == [[0, 1, 2]]


def sent(line, store):
    """Everything that a page would be sent, each at once acknowledged."""
    frames = []
    while (frame := line.next(store.entries())) is not None:
        frames.append(decoded(frame[1]))
    return frames


def test_a_page_is_sent_the_topology_then_rest_then_the_newest_of_each_kind():
    store, (_, grid) = SceneStore(), mesh_grid()
    store.put(mesh_item(grid, 1))
    store.put(mesh_item(grid, 2, STALE), REST)
    store.put(mesh_item(grid, 3))
    store.put(SceneItem(Kind.CLOUD, 0, 5.0, np.ones((2, 3), np.float32)))
    line = Line()
    assert [(one.kind, one.flags & STALE) for one in sent(line, store)] == [(1, 0), (2, 1), (2, 0), (3, 0)]
    assert sent(line, store) == []
    store.put(mesh_item(grid, 4))
    store.put(mesh_item(grid, 5))
    assert [(one.kind, one.seq) for one in sent(line, store)] == [(2, 5)]


def test_a_stream_does_not_hold_up_what_comes_once():
    store, (_, grid) = SceneStore(), mesh_grid()
    line = Line()
    store.put(mesh_item(grid))
    sent(line, store)
    store.put(SceneItem(Kind.CLOUD, 0, 5.0, np.ones((2, 3), np.float32)))
    store.put(mesh_item(grid))
    assert decoded(line.next(store.entries())[1]).kind == Kind.CLOUD


def test_the_level_follows_the_acknowledgements():
    store, (_, grid) = SceneStore(), mesh_grid()
    line = Line()
    store.put(mesh_item(grid))
    assert [one.level for one in sent(line, store)] == [0, 1]
    line.note(0.3)
    store.put(mesh_item(grid))
    frames = sent(line, store)
    assert [(one.kind, one.topology) for one in frames] == [(1, grid.coarse[1].id), (2, grid.coarse[1].id)]
    store.put(mesh_item(grid, 2, STALE), REST)
    assert [(one.flags & STALE, one.topology) for one in sent(line, store)] == [(STALE, grid.coarse[1].id)]
    for _ in range(2 * Line.EARLY_ONES):
        line.note(0.01)
    store.put(mesh_item(grid))
    rest, frame = sent(line, store)
    assert rest.flags & STALE and rest.topology == 77 and not frame.flags & STALE
    assert frame.level == 0 and frame.topology == 77 and len(frame.points) == len(grid.topology.uv)


def test_what_is_gone_is_said_once():
    store, line = SceneStore(), Line()
    store.put(SceneItem(Kind.TARGET, 0, 1.0, np.ones((2, 3), np.float32), PREVIEW), 1)
    store.put(SceneItem(Kind.GONE, 0, 2.0, gone=Kind.TARGET), 1)
    (frame,) = sent(line, store)
    assert (frame.kind, frame.gone) == (6, 5) and not frame.flags & HAS_SCALAR
