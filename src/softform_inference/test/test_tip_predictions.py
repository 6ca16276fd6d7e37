"""The frames of a tip whose body is imported, and of a surface's named points."""

from types import SimpleNamespace

import numpy as np
from builtin_interfaces.msg import Time

from softform_core.bodies.imported.description import ImportedBody
from softform_core.forward.history import History
from softform_core.forward.robot_models import TipModels
from softform_core.forward.robot_pipeline import load_pipeline
from softform_core.forward.tip_model import load_tip_model
from softform_core.paths import models_dir
from softform_core.robots import load_robot
from softform_core.robots.description import SurfacePoint
from softform_inference import tip_predictions
from softform_inference.point_frames import PointFrames
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
