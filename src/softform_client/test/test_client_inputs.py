"""Programs give what they have at hand: it is taken where it is clear, and else the error says how to give it."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from softform_client.client import ActuatorPath, Mode, PointPath, ShapeClient, ShapePath
from softform_client.client_inputs import as_path, as_shape
from softform_client.client_stream import _packing
from softform_core.errors import SoftformError
from softform_core.shapes.features import FeaturePoints
from softform_core.shapes.shape import Shape

AXIS = np.linspace(-0.1, 0.1, 4)
POINTS = np.stack([*(one.ravel() for one in np.meshgrid(AXIS, AXIS)), np.zeros(16)], axis=1)
SHAPE = Shape(POINTS)
MESH = SimpleNamespace(vertices=[[0, 0, 0], [0.1, 0, 0], [0.1, 0.1, 0], [0, 0.1, 0]], faces=[[0, 1, 2], [0, 2, 3]])
"""As trimesh and others have it."""

CLIENT = ShapeClient()
"""Not connected: what cannot be meant is told before."""


@pytest.fixture
def sent(monkeypatch):
    """Goals that the client would send."""
    goals = []

    def call(self, caller, pack, on_feedback, epoch=0):
        from builtin_interfaces.msg import Time

        goals.append(pack(Time()))

    monkeypatch.setattr(ShapeClient, "_call", call)
    return goals


@pytest.mark.parametrize("given", [POINTS, POINTS.tolist(), POINTS.astype(np.float32), SHAPE])
def test_points_are_a_cloud(sent, given):
    CLIENT.reach(given)
    CLIENT.capture(given)
    assert [goal.target.width for goal in sent] == [16, 16] and not sent[0].triangles


def test_meshes_of_other_libraries_are_meshes(sent):
    CLIENT.reach(MESH)
    CLIENT.plan([1.0], MESH)
    assert (sent[0].target.width, len(sent[0].triangles)) == (4, 6)
    assert (sent[1].obstacles.width, len(sent[1].obstacle_triangles)) == (4, 6)


@pytest.mark.parametrize("given", [Mode.CLOSED_LOOP, 3, "closed-loop", "CLOSED_LOOP"])
def test_a_mode_has_a_name(sent, given):
    CLIENT.reach(POINTS, given)
    assert sent[0].mode == Mode.CLOSED_LOOP


@pytest.mark.parametrize("given", ["plan", "", 9, None])
def test_what_is_no_mode_is_told_before_anything_is_sent(sent, given):
    with pytest.raises(SoftformError, match=r"There is no mode .*Mode.PLAN_ONLY"):
        CLIENT.reach(POINTS, given)
    assert not sent


def test_values_come_as_any_sequence(sent):
    CLIENT.reach(POINTS, 1, seed=[1, 2, 3], preferred=(4, 5, 6))
    CLIENT.plan([100, 200], POINTS)
    CLIENT.plan(np.array([100.0, 200.0]), SHAPE, start=[1, 2])
    CLIENT.plan(POINTS.tolist(), SHAPE)
    reach, *plans = sent
    assert reach.mode == Mode.PLAN_AND_MOVE
    assert list(reach.options.seed.value) == [1.0, 2.0, 3.0] and list(reach.options.preferred.value) == [4.0, 5.0, 6.0]
    assert [list(goal.goal.value) for goal in plans] == [[100.0, 200.0], [100.0, 200.0], []]
    assert [goal.target.width for goal in plans] == [0, 0, 16] and list(plans[1].start.value) == [1.0, 2.0]


def test_shapes_are_a_path(sent):
    CLIENT.follow([SHAPE, SHAPE], times=[0, 1])
    CLIENT.follow(ShapePath((POINTS, SHAPE)))
    CLIENT.follow(PointPath([[0, 0, 0.1]]))
    CLIENT.follow(ActuatorPath([[1, 2], [3, 4]]))
    assert [len(goal.shapes) for goal in sent] == [2, 2, 0, 0] and list(sent[0].times) == [0.0, 1.0]
    assert len(sent[2].points) == 1 and list(sent[3].actuators.value) == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (
            lambda: CLIENT.reach("target.ply"),
            r"'target.ply', which does not tell the unit. Read it first: read_shape\('t",
        ),
        (lambda: CLIENT.reach(Path("a/b.stl")), r"read_shape\('a/b.stl', unit='mm'\)"),
        (lambda: CLIENT.capture("x.ply"), "The target is given as a path"),
        (lambda: CLIENT.plan([1.0] * 9, "stick.stl"), r"The obstacle is given as a path, 'stick.stl'"),
        (lambda: CLIENT.plan("x.ply", SHAPE), "The target is given as a path"),
        (lambda: CLIENT.plan(np.ones((1, 9)), SHAPE), r"has shape \(1, 9\)"),
        (lambda: CLIENT.reach(np.ones(9)), r"has shape \(9,\), .* follow\(ActuatorPath\(values\)\)"),
        (lambda: CLIENT.reach(None, seed="fast"), "The seed is a str and not an array of numbers"),
        (
            lambda: CLIENT.reach({"points": POINTS}),
            "The target is a dict and not an array of numbers. Give a Shape",
        ),
        (lambda: CLIENT.reach(np.zeros((16, 3))), "All points of the cloud coincide"),
        (lambda: CLIENT.follow([[0.0, 0.0, 0.1]]), r"The path is a list, .* Say it: PointPath\(points\)"),
        (lambda: CLIENT.follow(np.ones((4, 9))), r"The path is a ndarray, .* ActuatorPath\(values\)"),
        (lambda: CLIENT.follow("path.csv"), "The path is a str"),
        (lambda: CLIENT.follow([]), "The path is a list"),
        (lambda: CLIENT.follow(PointPath(np.ones((4, 2)))), r"points of shape \(4, 2\)"),
        (lambda: CLIENT.follow(ShapePath(("a.ply",))), "The waypoint 1 is given as a path"),
        (lambda: CLIENT.follow(ActuatorPath([[1, 2], [3]])), "The path is a list and not an array of numbers"),
        (lambda: CLIENT.follow([SHAPE], times="soon"), "The times is a str .* Give one number for each waypoint"),
        (lambda: _packing("x.ply"), "is given as a path"),
        (lambda: _packing([[1, 2], [3]]), "The target is a list and not an array of numbers"),
        (lambda: _packing("abc"), "is given as a path"),
        (lambda: _packing(["a", "b", "c"]), "The target is a list and not an array of numbers"),
        (lambda: _packing(np.ones(9)), r"has shape \(9,\)"),
    ],
)
def test_what_is_not_clear_is_said_before_anything_is_sent(sent, call, complaint):
    with pytest.raises(SoftformError, match=complaint):
        call()
    assert not sent


@pytest.mark.parametrize(
    ("target", "topic"),
    [
        *((np.zeros(3), "target_tip"), ([0, 0, 0.1], "target_tip"), (POINTS, "target_shape"), (SHAPE, "target_shape")),
        (MESH, "target_mesh"),
        (FeaturePoints.of([[0.5, 0.5]], [[0.0, 0.0, 0.1]]), "target_points"),
    ],
)
def test_each_kind_of_target_has_its_topic(target, topic):
    assert _packing(target)[0] == topic


def test_paths_and_shapes_pass_as_they_are():
    assert as_shape(SHAPE) is SHAPE and as_path((SHAPE,)).shapes == (SHAPE,)
