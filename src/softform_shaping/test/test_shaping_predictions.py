"""Targets that are drawn: points lead the grippers, and a goal ends as who promised beats falls silent."""

from types import SimpleNamespace

import numpy as np
import pytest
from geometry_msgs.msg import Point
from held_block import BENT, LENGTH
from scipy.sparse import csr_matrix

from softform_core.errors import SoftformError
from softform_interfaces.msg import SteeringBeat
from softform_interfaces.srv import PredictObject
from softform_ros.conversions import points_from_cloud, values_from_cloud
from softform_ros.goal_error import GoalCode
from softform_shaping import object_shaper_node
from softform_shaping.led_points import led_shape
from softform_shaping.object_shaper_node import ObjectShaperNode
from softform_shaping.poses import pose_variation
from softform_shaping.predictions import ObjectPredictions

LIMIT = 5e5


def node_near(model, place) -> int:
    return int(np.argmin(np.linalg.norm(model.rest_nodes - place, axis=1)))


def led(model, which, by, base=None, **more):
    """The shape that leads nodes by so much, and how far each stays off, m."""
    weights = csr_matrix((np.ones(len(which)), (np.arange(len(which)), which)), (len(which), len(model.rest_nodes)))
    base = np.zeros(12) if base is None else base
    places = weights @ model.shape(base).nodes + np.asarray(by)
    shape = led_shape(model, weights, places, np.ones(len(which)), base, model.shape(base), **more)
    return shape, np.linalg.norm(weights @ shape.nodes - places, axis=1)


def test_points_come_where_they_are_led_in_a_shape_that_the_grippers_can_make(model):
    middle, end = node_near(model, [0.05, 0.0, 0.5 * LENGTH]), node_near(model, [0.05, 0.0, 0.75 * LENGTH])
    shape, off = led(model, [middle, end], [[0.015, 0.0, 0.0], [0.0, 0.0, 0.0]])
    assert off.max() < 2e-4
    again = model.shape(shape.poses, shape)
    assert np.abs(again.nodes - shape.nodes).max() < 1e-5 * LENGTH


def test_the_grippers_leave_where_they_were_no_farther_than_they_must(model):
    middle = node_near(model, [0.05, 0.0, 0.5 * LENGTH])
    shape, off = led(model, [middle], [[0.01, 0.0, 0.0]], BENT)
    left = pose_variation(shape.poses, BENT).reshape(2, 2, 3)
    assert off.max() < 1e-4
    assert np.linalg.norm(left[:, 0], axis=1).max() < 0.01  # as both would go that carried it all
    unmoved, off = led(model, [middle], [[0.0, 0.0, 0.0]], BENT)
    assert off.max() < 1e-9 and np.abs(unmoved.poses - BENT).max() < 1e-9


def test_a_point_that_cannot_be_led_so_far_is_led_as_far_as_can_be(model):
    middle = node_near(model, [0.05, 0.0, 0.5 * LENGTH])
    shape, off = led(model, [middle, middle], [[0.02, 0.0, 0.0], [-0.01, 0.0, 0.0]])
    assert off == pytest.approx([0.015, 0.015], abs=1e-4)
    assert np.isfinite(shape.nodes).all()


def request_of(model, **change) -> PredictObject.Request:
    """One that leads the middle of a triangle by 5 mm, with fields changed."""
    nodes = model.skin[model.faces[0]]
    place = model.rest_nodes[nodes].mean(axis=0) + [0.005, 0.0, 0.0]
    given = {
        "nodes": nodes.tolist(),
        "weights": [1.0 / 3.0] * 3,
        "places": [Point(**dict(zip("xyz", place, strict=True)))],
    }
    return PredictObject.Request(**{**given, **change})


def test_an_answer_has_the_whole_target_with_its_stress(model):
    predictions = ObjectPredictions(model, "block", LIMIT)
    answer = predictions.predict(request_of(model), PredictObject.Response())
    assert answer.success and answer.stress_limit == LIMIT and answer.off < 2e-4
    there = model.shape(np.array(answer.gripper_poses))
    assert np.abs(points_from_cloud(answer.target) - there.nodes).max() < 1e-5
    stress = values_from_cloud(answer.target, ["stress"])[:, 0]
    assert stress.max() == pytest.approx(model.stresses(there).max(), rel=1e-3) == pytest.approx(answer.stress)
    posed = predictions.predict(PredictObject.Request(gripper_poses=BENT.tolist()), PredictObject.Response())
    assert np.isnan(posed.off) and np.abs(points_from_cloud(posed.target) - model.shape(BENT).nodes).max() < 1e-6


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"gripper_poses": [0.0] * 11}, "poses"),
        ({"gripper_poses": [np.nan] * 12}, "poses"),
        ({"gripper_poses": [12.0, *[0.0] * 11]}, "poses"),  # mm
        ({"nodes": [0, 1]}, "no points"),
        ({"nodes": [0, 1, 1 << 20]}, "unknown nodes"),
        ({"weights": [1.0, 1.0, 1.0]}, "not 1"),
        ({"weights": [2.0, -1.0, 0.0]}, "no points"),
        ({"importance": [0.0]}, "no points"),
        ({"places": [Point(x=np.inf)]}, "no points"),
        ({"places": [Point(x=15.0)]}, "far from"),
    ],
)
def test_what_cannot_be_meant_is_told(model, change, words):
    with pytest.raises(SoftformError, match=words):
        ObjectPredictions(model, "block", np.inf).predict(request_of(model, **change), PredictObject.Response())


def test_a_goal_ends_as_who_promised_beats_falls_silent_and_no_target_is_predicted_meanwhile(monkeypatch, model):
    """Of the node's own callbacks, without ROS: frozen or killed, a console says nothing either."""
    now, ended = SimpleNamespace(value=100.0), []
    node = SimpleNamespace(
        _accepted=object(),
        get_logger=lambda: SimpleNamespace(warning=lambda *words, **more: None),
        _request_stop=ended.append,
        _goal_client=None,
        _predictions=ObjectPredictions(model, "block", np.inf),
    )
    node._watch = object_shaper_node.SteeringWatch(
        lambda reason: ObjectShaperNode._end_unsteered(node, reason),
        lambda: node._accepted is not None,
        lambda: True,
        lambda: now.value,
    )

    def look() -> list[GoalCode]:
        ObjectShaperNode._look_for_client(node)
        ObjectShaperNode._look_for_client(node)
        return ended

    ObjectShaperNode._on_beat(node, SteeringBeat(sender="page", dead_man=1.0, of_goal=True))
    now.value += 0.9
    assert look() == []
    answer = ObjectShaperNode._predict(node, request_of(model), PredictObject.Response())
    assert not answer.success and "Wait" in answer.message
    now.value += 0.2
    assert look() == [GoalCode.CANCELLED]
    node._accepted = None
    assert ObjectShaperNode._predict(node, request_of(model), PredictObject.Response()).success
    answer = ObjectShaperNode._predict(node, request_of(model, weights=[]), PredictObject.Response())
    assert not answer.success and "weights" in answer.message
