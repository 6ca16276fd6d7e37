"""The frames of a tip whose body is imported, and of a surface's named points."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from tf2_msgs.msg import TFMessage

from softform_core.bodies.imported.description import ImportedBody
from softform_core.forward.history import History
from softform_core.forward.memory import FRAME_S, PrandtlIshlinskii
from softform_core.forward.robot_models import ModelRequest, TipModels, open_models
from softform_core.forward.robot_pipeline import load_pipeline
from softform_core.forward.tip_model import load_tip_model
from softform_core.paths import models_dir
from softform_core.robots import load_robot
from softform_core.robots.description import SurfacePoint
from softform_core.robots.outputs import LineLearning, TubeLine
from softform_inference import tip_predictions
from softform_inference.centre_line import CentreLineTopic
from softform_inference.point_frames import PointFrames
from softform_ros.conversions import points_from_cloud, values_from_cloud
from softform_ros.frames import place_from_message


def test_the_axes_of_an_imported_tip_stay_those_of_the_base():
    simulated = load_robot("three_chamber")
    model = load_tip_model(simulated, models_dir() / "three_chamber")
    body = ImportedBody(kind="imported", inputs_count=3, width=0.042, length=0.042, height=0.116)
    told = []
    node = SimpleNamespace(create_publisher=lambda *_: SimpleNamespace(publish=told.append))
    predictions = tip_predictions.TipPredictions(
        node, simulated.model_copy(update={"body": body}), TipModels(model, "none")
    )
    actuation = np.array([3e4, 0.0, 1e4])
    predictions.publish(History(), actuation, Time(), stale=False)
    ((frame,),) = (message.transforms for message in told)
    turn, place = frame.transform.rotation, frame.transform.translation
    assert (turn.x, turn.y, turn.z, turn.w) == (0.0, 0.0, 0.0, 1.0)
    np.testing.assert_allclose([place.x, place.y, place.z], model.tip(actuation) / 1e3, atol=1e-12)


def test_the_elements_of_a_body_are_published_for_skins_with_its_tip_at_their_end():
    robot = load_robot("tendon_rod")
    told = {}

    def publisher(kind, topic, profile):
        told[topic] = []
        return SimpleNamespace(publish=told[topic].append, get_subscription_count=lambda: 1)

    model = load_tip_model(robot, models_dir() / "tendon_rod")
    predictions = tip_predictions.TipPredictions(
        SimpleNamespace(create_publisher=publisher), robot, TipModels(model, "none")
    )
    ((topology,),) = (told["predicted_topology"],)
    actuation = 0.5 * robot.actuation_max
    predictions.publish(History(), actuation, Time(sec=5), stale=False)
    (mesh,) = told["predicted_mesh"]
    bones = np.frombuffer(mesh.vertices, np.float32).reshape(-1, 3, 3)
    assert mesh.topology == topology.id and list(topology.vertices) == [bones.size // 3] and not mesh.stale
    np.testing.assert_allclose(bones[0, 0], 0.0, atol=1e-9)
    np.testing.assert_allclose(bones[-1, 1], model.tip(actuation) / 1e3, atol=0.002)
    across = np.einsum("bx,bx->b", bones[:, 1] - bones[:, 0], bones[:, 2] - bones[:, 0])
    assert np.abs(across).max() < 0.05 * 0.01**2, "the third point is beside the element"


def test_a_tip_that_remembers_stands_where_its_history_has_left_it():
    robot = load_robot("three_chamber")
    model = load_tip_model(robot, models_dir() / "three_chamber")
    play = PrandtlIshlinskii.play(np.full(3, 2e3))
    told = []

    def publisher(kind, *_):
        heard = told.append if kind is TFMessage else lambda _: None
        return SimpleNamespace(publish=heard, get_subscription_count=lambda: 0)

    node = SimpleNamespace(create_publisher=publisher)
    predictions = tip_predictions.TipPredictions(node, robot, TipModels(replace(model, memory=play), "in use"))
    actuation = np.array([3e4, 1e4, 1e4])
    came = tuple(((0.0, 0.0), (1.0, beyond)) for beyond in (5e4, 1e4, 0.0))
    predictions.publish(History(came, True), actuation, Time(), stale=False)
    place = told[0].transforms[0].transform.translation
    # The first turned back at 50 kPa, so that 2 kPa more are in effect; the others have come up.
    expected = model.tip(actuation + [2e3, -2e3, -2e3]) / 1e3
    np.testing.assert_allclose([place.x, place.y, place.z], expected, atol=1e-9)


def test_what_creeps_has_crept_by_the_stamp_and_no_further_for_being_looked_at():
    robot = load_robot("three_chamber")
    model = load_tip_model(robot, models_dir() / "three_chamber")
    memory = PrandtlIshlinskii(np.empty((0, 3)), np.empty((0, 3)), np.array([0.5]), np.full((1, 3), 0.2))
    told = []

    def publisher(kind, *_):
        heard = told.append if kind is TFMessage else lambda _: None
        return SimpleNamespace(publish=heard, get_subscription_count=lambda: 0)

    node = SimpleNamespace(create_publisher=publisher)
    predictions = tip_predictions.TipPredictions(node, robot, TipModels(replace(model, memory=memory), "in use"))
    actuation = np.array([3e4, 1e4, 1e4])
    predictions.publish(History((((0.0, 0.0),),) * 3, True), actuation, Time(sec=int(FRAME_S)), stale=False)
    place = told[0].transforms[0].transform.translation
    np.testing.assert_allclose([place.x, place.y, place.z], model.tip(0.9 * actuation) / 1e3, atol=1e-9)


def test_named_points_of_a_surface_stand_and_turn_where_it_is_predicted():
    robot = load_robot("compressible")
    robot = robot.model_copy(update={"frames": robot.frames | {"side": SurfacePoint(patch="skin", u=0.5, v=0.5)}})
    pipeline, told = load_pipeline(robot, 100), []
    node = SimpleNamespace(create_publisher=lambda *_: SimpleNamespace(publish=told.append))
    actuation = np.array([-2e4, 0.0, 0.0] * 3)
    PointFrames(node, robot).publish(pipeline, actuation, Time(sec=5))
    (tip, side), base = told[0].transforms, np.eye(3)
    names = [(one.header.frame_id, one.child_frame_id, one.header.stamp.sec) for one in (tip, side)]
    assert names == [("compressible/base_link", f"compressible/{name}", 5) for name in ("tip", "side")]
    rim, point = (pipeline.at(robot.point_parameters(name)).points(actuation) for name in robot.frames)
    frames = [place_from_message(one) for one in (tip, side)]
    np.testing.assert_allclose(frames[0].translation, rim.mean(axis=0) / 1e3, atol=1e-9)
    np.testing.assert_allclose(frames[1].translation, point[0] / 1e3, atol=1e-9)
    # The axis of the arm is normal to its rim; one point alone tells no turn.
    assert np.ptp((rim - rim.mean(axis=0)) @ frames[0].rotation[:, 2]) < 3.0 < np.ptp(rim @ base[2])
    np.testing.assert_allclose(frames[1].rotation, base, atol=1e-12)


class _Listened:
    """A publisher with a subscriber."""

    def __init__(self):
        self.sent = []
        self.publish = self.sent.append

    def get_subscription_count(self):
        return 1


@pytest.mark.parametrize("name", ["three_chamber", "manipulator"])
def test_the_centre_line_of_a_rod_and_of_a_tube_lies_where_it_is_predicted(name):
    line = TubeLine(patch="tube") if name == "manipulator" else LineLearning(control_points=8, forward_kinematics=[20])
    robot = load_robot(name).model_copy(update={"centre_line": line})
    model = load_pipeline(robot, 100) if name == "manipulator" else open_models("fem", ModelRequest(robot, 9)).current
    listened = _Listened()
    topic = CentreLineTopic(SimpleNamespace(create_publisher=lambda *_: listened), robot)
    actuation = robot.actuation_min + 0.5 * (robot.actuation_max - robot.actuation_min)
    topic.publish(model, actuation, Time(sec=5))
    (cloud,) = listened.sent
    assert cloud.header.frame_id == f"{name}/base_link" and cloud.header.stamp.sec == 5
    points, along = points_from_cloud(cloud), values_from_cloud(cloud, ("v",))[:, 0]
    np.testing.assert_allclose(along, np.linspace(0.0, 1.0, len(points)), atol=1e-6)
    places = robot.line_parameters(0.5)
    middle = np.asarray(model.at(places).forward(actuation[None]).points[0]).mean(axis=0) / 1e3
    np.testing.assert_allclose(points[len(points) // 2], middle, atol=1e-4)
    ways = np.linalg.norm(np.diff(points, axis=0), axis=1).sum()
    assert 0.9 < ways / robot.body.size < 1.6
