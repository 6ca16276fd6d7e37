"""Predictions as messages, and the node as a process."""

import dataclasses
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from sensor_msgs.msg import PointCloud2
from visualization_msgs.msg import Marker

from softform_core.errors import SoftformError
from softform_core.forward.live_pipeline import LivePipeline
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.forward.rbf_warp import SimToReal
from softform_core.forward.robot_pipeline import load_pipeline
from softform_core.forward.sim_to_real_export import SimToRealNetwork
from softform_core.forward.sim_to_real_store import SIM_TO_REAL, load_sim_to_real
from softform_core.forward.tip_model import load_tip_model
from softform_core.networks.mlp_weights import MlpWeights, extract_mlp
from softform_core.networks.model_files import sha256
from softform_core.networks.saved_network import export
from softform_core.networks.store import FORWARD_KINEMATICS, load_forward_kinematics
from softform_core.paths import models_dir
from softform_core.robots import load_robot
from softform_core.simulation.newton import find_equilibria
from softform_core.surface.bspline import evaluate
from softform_core.surface.patch import Patch
from softform_core.surface.patch_set import SHEET, PatchSet
from softform_core.units import MM_PER_M
from softform_inference.prediction import PredictedPoints, measured_values, predict_surface
from softform_interfaces.msg import ActuatorState, ActuatorValues, DriverState, Surface
from softform_interfaces.srv import PredictShape
from softform_ros import qos
from softform_ros.background_node import BackgroundNode
from softform_ros.conversions import cloud_from_points, points_from_cloud, values_from_cloud
from softform_ros.frames import Frames
from softform_ros.service_calls import call_service

PATIENCE = 30.0
SHIPPED = models_dir() / "membrane" / "rig_default"
VALUES = np.array([4000.0, 500.0, 3000.0, 800.0, 2500.0, 1500.0, 200.0, 3500.0, 1000.0])


@pytest.fixture(scope="module")
def robot():
    return load_robot("membrane")


@pytest.fixture(scope="module")
def pipeline(robot):
    return load_pipeline(robot)


def points_of(items):
    return np.array([[item.x, item.y, item.z] for item in items])


def test_the_surface_message_rebuilds_the_cloud(pipeline):
    surface = predict_surface(pipeline, ["sheet"], VALUES, "membrane/base_link", Time(sec=5))
    cloud = PredictedPoints.of(pipeline, None, VALUES).cloud("membrane/base_link", Time(sec=5))
    control_points = points_of(surface.patches[0].control_points).reshape(30, 30, 3)
    patch = surface.patches[0]
    assert (patch.name, patch.rows, patch.cols, patch.degree, patch.periodic) == ("sheet", 30, 30, 3, False)
    assert surface.header.stamp.sec == 5 and surface.header.frame_id == "membrane/base_link"
    assert np.allclose(evaluate(control_points, pipeline.uv), points_from_cloud(cloud), atol=1e-6)
    assert not surface.kernel_centers and not surface.warp_coefficients and surface.kernel_width == 0.0
    assert 0.01 < points_from_cloud(cloud)[:, 2].max() < 0.2
    assert [field.name for field in cloud.fields] == ["x", "y", "z"]


def test_the_warp_travels_in_si_units(robot):
    rng = np.random.default_rng(0)
    gamma = np.concatenate([rng.normal(size=(1, 3)), np.eye(3) * 1.01, rng.normal(size=(25, 3))])
    constant = MlpWeights(
        [np.zeros((gamma.size, 2700))],
        [np.zeros(gamma.size)],
        "relu",
        np.zeros(2700),
        np.ones(2700),
        gamma.ravel(),
        np.ones(gamma.size),
    )
    network, _ = load_forward_kinematics(robot)
    pipeline = ForwardPipeline(extract_mlp(network), SHEET.samples(100), SimToReal(SHEET.samples(25), constant))
    surface = predict_surface(pipeline, ["sheet"], VALUES, "membrane/base_link", Time())
    control_points = points_of(surface.patches[0].control_points).reshape(30, 30, 3)
    simulated, centers = evaluate(control_points, pipeline.uv), points_of(surface.kernel_centers)
    sent = points_of(surface.warp_coefficients)
    kernels = np.exp(-surface.kernel_width * ((simulated[:, None] - centers) ** 2).sum(-1))
    warped = sent[0] + simulated @ sent[1:4] + kernels @ sent[4:]
    assert len(centers) == 25
    assert np.allclose(warped, pipeline.points(VALUES) / MM_PER_M, atol=1e-9)


def test_measured_values_are_ordered(robot):
    order = np.random.default_rng(0).permutation(9)
    values = measured_values(robot, [robot.actuators[i] for i in order], VALUES[order])
    assert np.array_equal(values, VALUES)


@pytest.mark.parametrize(
    ("names", "values"),
    [(["c1"], [0.0]), ([], []), ([f"c{i + 1}" for i in range(9)], [np.nan] * 9), (["c1"] * 9, [0.0] * 9)],
)
def test_values_of_another_robot_are_rejected(robot, names, values):
    with pytest.raises(SoftformError):
        measured_values(robot, names, values)


class Bench:
    """A ROS participant in the test process."""

    def __init__(self):
        self._background = BackgroundNode("bench", "/softform")
        self.node = self._background.__enter__()
        self.received = {"surface": [], "cloud": [], "marker": [], "diagnostics": []}
        for name, kind, topic, profile in (
            ("surface", Surface, "predicted_surface", qos.PREDICTED_SURFACE),
            ("cloud", PointCloud2, "predicted_cloud", qos.PREDICTED_SURFACE),
            ("marker", Marker, "predicted_marker", qos.PREDICTED_SURFACE),
            ("diagnostics", DiagnosticArray, "/diagnostics", qos.DIAGNOSTICS),
        ):
            self.node.create_subscription(kind, topic, self.received[name].append, profile)
        self.values = self.node.create_publisher(ActuatorState, "actuator_state", qos.ACTUATOR_STATE)
        self.driver = self.node.create_publisher(DriverState, "driver_state", qos.LATCHED_STATE)
        self.processes = []

    def start(self, *parameters):
        command = [
            sys.executable,
            "-m",
            "softform_inference.shape_predictor_node",
            "--ros-args",
            "-r",
            "__ns:=/softform",
        ]
        for parameter in parameters:
            command += ["-p", parameter]
        self.processes.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))

    def activate(self):
        assert self.change_state(Transition.TRANSITION_CONFIGURE)
        assert self.change_state(Transition.TRANSITION_ACTIVATE)

    def call(self, kind, service, request):
        return call_service(self.node, "shape_predictor", kind, service, request, 2 * PATIENCE)

    def change_state(self, transition):
        request = ChangeState.Request(transition=Transition(id=transition))
        return self.call(ChangeState, "shape_predictor/change_state", request).success

    def stop(self):
        """End the newest process; returns its exit code and log."""
        process = self.processes.pop()
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=PATIENCE)
        return process.returncode, log

    def send(self, values, names):
        message = ActuatorState(name=names, value=list(values), status=[ActuatorState.SETTLED] * len(names))
        message.header.stamp = self.node.get_clock().now().to_msg()
        self.values.publish(message)
        return message.header.stamp

    def wait(self, condition, what):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, f"waited in vain: {what}"
            time.sleep(0.02)

    def said(self, text):
        return any(
            text in status.message
            for message in list(self.received["diagnostics"])
            for status in message.status
            if status.name == "/softform/shape_predictor"
        )

    def value(self, key):
        """Newest value of this key in the node's diagnostics."""
        values = [
            pair.value
            for message in list(self.received["diagnostics"])
            for status in message.status
            if status.name == "/softform/shape_predictor"
            for pair in status.values
            if pair.key == key
        ]
        return values[-1] if values else None

    def close(self):
        while self.processes:
            self.stop()
        self._background.close()


@pytest.fixture
def bench():
    one = Bench()
    yield one
    one.close()


@pytest.fixture(scope="module")
def copied_model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    for name in (FORWARD_KINEMATICS.weights_file, FORWARD_KINEMATICS.card_file):
        (folder / name).write_bytes((models_dir() / "membrane" / name).read_bytes())
    return folder


@pytest.fixture(scope="module")
def running(copied_model):
    """A node that predicts by N_fk alone, one for four tests: the first meets no driver yet, the last ends it."""
    one = Bench()
    one.start("surface_points:=400", "sim_to_real:=none", "state_timeout:=0.8", f"model_folder:={copied_model}")
    one.activate()
    yield one
    one.close()


def test_the_node_predicts_what_is_measured_and_what_is_asked(running, robot, pipeline):
    bench, stamps = running, []

    def predicted():
        stamps.append(bench.send(VALUES, robot.actuators))
        return bench.received["surface"] and bench.received["cloud"]

    bench.wait(predicted, "a prediction")
    surface, cloud = bench.received["surface"][0], bench.received["cloud"][0]
    expected = pipeline.control_points(VALUES).reshape(-1, 3) / MM_PER_M
    assert np.allclose(points_of(surface.patches[0].control_points), expected, atol=1e-9)
    assert surface.header.stamp in stamps and cloud.header.frame_id == "membrane/base_link"
    assert len(points_from_cloud(cloud)) == 400

    request = PredictShape.Request(actuators=ActuatorValues(value=VALUES[::-1].tolist()))
    answer = bench.call(PredictShape, "predict_shape", request)
    assert answer.success and answer.message == ""
    assert np.allclose(
        points_of(answer.surface.patches[0].control_points),
        pipeline.control_points(VALUES[::-1]).reshape(-1, 3) / MM_PER_M,
        atol=1e-9,
    )
    assert len(points_from_cloud(answer.cloud)) == 400
    for bad, reason in (([0.0] * 8, "9 pressures"), ([float("nan")] * 9, "finite"), ([9000.0] * 9, "outside")):
        answer = bench.call(PredictShape, "predict_shape", PredictShape.Request(actuators=ActuatorValues(value=bad)))
        assert not answer.success and reason in answer.message

    def complained():
        bench.send([0.0] * 6, [f"s{i}" for i in range(6)])
        return bench.said("Name each actuator of")

    bench.wait(complained, "a complaint about another robot's values")
    bench.wait(lambda: bench.said("no values come on actuator_state"), "a complaint about silence")

    assert bench.change_state(Transition.TRANSITION_DEACTIVATE)
    count = len(bench.received["surface"])
    for _ in range(5):
        bench.send(VALUES, robot.actuators)
        time.sleep(0.1)
    assert len(bench.received["surface"]) == count
    assert bench.change_state(Transition.TRANSITION_ACTIVATE)


def test_others_viewers_see_the_surface_at_most_five_times_a_second(running, robot, pipeline):
    surfaces, markers = running.received["surface"], running.received["marker"]

    def markers_of(*values):
        surfaces.clear()
        markers.clear()
        begun = time.monotonic()

        def predicted():
            running.send(values[len(surfaces) % len(values)], robot.actuators)
            return len(surfaces) >= 20 and markers

        running.wait(predicted, "predictions")
        return len(markers), time.monotonic() - begun

    count, lasted = markers_of(VALUES, 0.9 * VALUES)
    assert 3 <= count <= lasted / 0.2 + 1
    count, lasted = markers_of(VALUES)
    assert 1 <= count <= lasted + 2, "a surface that rests comes once a second"
    corners = points_of(markers[-1].points).reshape(-1, 3, 3)
    points = load_pipeline(robot, 400).points(VALUES) / MM_PER_M
    assert np.allclose(corners, points[robot.patches.triangles(400)], atol=1e-6)
    assert markers[-1].header.frame_id == "membrane/base_link" and markers[-1].header.stamp.sec > 0


@pytest.mark.parametrize("how", ["stop", "driver gone"])
def test_no_inflated_shape_stays_when_the_driver_measures_nothing(running, robot, pipeline, how):
    surfaces = running.received["surface"]
    surfaces.clear()

    def inflated():
        running.driver.publish(DriverState(state=DriverState.RUNNING))
        running.send(VALUES, robot.actuators)
        return surfaces and not surfaces[-1].stale

    running.wait(inflated, "an inflated surface")
    if how == "stop":
        running.driver.publish(DriverState(state=DriverState.FAULT, reason="stopped by request"))
    running.wait(lambda: surfaces[-1].stale, "the surface to be called stale")
    rest = pipeline.control_points(robot.rest_actuation).reshape(-1, 3) / MM_PER_M
    assert np.allclose(points_of(surfaces[-1].patches[0].control_points), rest, atol=1e-9)
    running.wait(inflated, "the measured surface again")


def test_a_corrupt_model_fails_configure_with_the_reason(running, copied_model):
    assert running.change_state(Transition.TRANSITION_DEACTIVATE)
    assert running.change_state(Transition.TRANSITION_CLEANUP)
    weights = copied_model / FORWARD_KINEMATICS.weights_file
    weights.write_bytes(weights.read_bytes()[:-100])
    assert not running.change_state(Transition.TRANSITION_CONFIGURE)
    running.wait(lambda: running.said("corrupt"), "the reason in the diagnostics")
    code, log = running.stop()
    assert code == 0 and "configure failed" in log and "corrupt" in log and "Traceback" not in log


@pytest.mark.parametrize("name", ["three_chamber", "planar_fingers"])
def test_the_frame_of_a_tip_stands_where_the_model_predicts(bench, name):
    robot, model = load_robot(name), load_tip_model(name)
    frames = Frames(bench.node)
    frames.listen()
    bench.start(f"robot:={name}", "sim_to_real:=none")
    bench.activate()
    shares = np.linspace(0.2, 0.6, robot.degrees_of_freedom)
    actuation = robot.actuation_min + shares * (robot.actuation_max - robot.actuation_min)
    values = robot.actuators_of(actuation)
    expected = np.zeros(3)
    expected[: model.dimensions] = model.tip(robot.nearest_actuation(values)) / MM_PER_M
    body = robot.body.simulator()
    turn = body.turns(find_equilibria(body, values[None]).unknowns)[0, 0]
    expected = np.stack([expected, *(expected + 0.01 * turn.T)])
    axes = 0.01 * np.vstack([np.zeros(3), np.eye(3)])

    def place():
        stamp = bench.send(values, robot.actuators)
        message = cloud_from_points(axes, f"{name}/tip", stamp)
        try:
            return points_from_cloud(frames.into(f"{name}/base_link", message))
        except SoftformError:
            return None

    bench.wait(lambda: (found := place()) is not None and np.allclose(found, expected, atol=1e-6), "the tip's frame")
    assert np.linalg.norm(expected[0]) > 0.01 and turn[0, 0] < 0.99 and not bench.received["surface"]
    code, log = bench.stop()
    assert code == 0 and "Traceback" not in log


def write_model(folder, raised_mm):
    """The shipped sim-to-real model, its predictions raised by so much (alpha_0 of Eq. 2)."""
    shipped = load_sim_to_real("membrane", SHIPPED)
    members = []
    for member in shipped.members:
        offset = member.coefficients.output_offset.copy()
        offset[2] += raised_mm
        coefficients = dataclasses.replace(member.coefficients, output_offset=offset)
        members.append(dataclasses.replace(member, coefficients=coefficients))
    weights = export(SimToRealNetwork(members, shipped.spread_factor, shipped.spread_floor_mm))
    identity = {"weights_sha256": sha256(weights), "weights_bytes": len(weights)}
    card = shipped.card.model_copy(update=identity)
    SIM_TO_REAL.save(folder, weights, card)
    return card


def test_a_new_sim_to_real_model_changes_the_prediction_while_the_node_runs_and_a_broken_one_does_not(bench, tmp_path):
    first = write_model(tmp_path, 0.0)
    bench.start("surface_points:=400", f"sim_to_real:={tmp_path}")
    bench.activate()

    def predicted(**options):
        request = PredictShape.Request(actuators=ActuatorValues(value=VALUES.tolist()), **options)
        answer = bench.call(PredictShape, "predict_shape", request)
        assert answer.success, answer.message
        return answer

    corrected, simulated = predicted(), predicted(without_sim_to_real=True)
    live = LivePipeline(load_robot("membrane"), 400, sim_to_real=str(tmp_path))
    before = points_from_cloud(corrected.cloud)
    assert np.allclose(before, live.current.points(VALUES) / MM_PER_M, atol=1e-6)
    sigma = values_from_cloud(corrected.cloud, ["uncertainty"])[:, 0]
    assert np.allclose(sigma, live.models.uncertainty.along_normals(VALUES) / MM_PER_M, atol=1e-7)
    assert len(corrected.surface.warp_coefficients) == len(corrected.surface.kernel_centers) + 4
    assert np.allclose(points_from_cloud(simulated.cloud), live.simulated.points(VALUES) / MM_PER_M, atol=1e-6)
    assert not simulated.surface.warp_coefficients and len(simulated.cloud.fields) == 3
    bench.wait(lambda: bench.value("sim-to-real sha256") == first.weights_sha256[:12], "the model in the diagnostics")

    second = write_model(tmp_path, 5.0)
    bench.wait(lambda: bench.value("sim-to-real sha256") == second.weights_sha256[:12], "the new model")
    assert np.allclose(points_from_cloud(predicted().cloud) - before, [0.0, 0.0, 0.005], atol=1e-6)

    weights = tmp_path / SIM_TO_REAL.weights_file
    weights.write_bytes(weights.read_bytes()[:1000])
    bench.wait(lambda: bench.said("corrupt or truncated"), "a warning about the broken model")
    assert bench.value("sim-to-real sha256") == second.weights_sha256[:12]
    assert np.allclose(points_from_cloud(predicted().cloud) - before, [0.0, 0.0, 0.005], atol=1e-6)
    time.sleep(2.5)  # two more looks at the same broken file, which are no news
    code, log = bench.stop()
    assert code == 0 and "Traceback" not in log
    assert log.count("sim-to-real model rejected") == 1 and log.count("is in use instead of") == 1


def test_the_message_has_the_control_points_of_each_patch():
    patches = PatchSet((Patch(4, 6), Patch(5, 4, 2, periodic=True)))
    numbers = patches.control_points * 3
    weights = np.random.default_rng(0).normal(size=(numbers, 2))
    ends = np.zeros(2), np.full(2, 1000.0), np.zeros(numbers), np.ones(numbers)
    kinematics = MlpWeights([np.eye(2), weights], [np.zeros(2), np.zeros(numbers)], "relu", *ends)
    pipeline = ForwardPipeline(kinematics, patches.samples(50), None, patches)
    surface = predict_surface(pipeline, ["front", "back"], VALUES[:2], "twin/base_link", Time())
    assert [(one.name, one.rows, one.cols, one.degree, one.periodic) for one in surface.patches] == [
        ("front", 4, 6, 3, False),
        ("back", 5, 4, 2, True),
    ]
    sent = np.concatenate([points_of(one.control_points) for one in surface.patches])
    assert np.allclose(sent, pipeline.control_points(VALUES[:2]) / MM_PER_M)
