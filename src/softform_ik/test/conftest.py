"""A running `inverse_kinematics` process, and stand-ins in the test process for driver and scanner."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import rclpy
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rclpy.executors import ExternalShutdownException, ShutdownException, SingleThreadedExecutor
from sensor_msgs.msg import PointCloud2

from softform_actuation.clock import Clock
from softform_actuation.commands import check_age
from softform_actuation.lease import Asked, Grant, LeaseCode, LeasedCommands, LeaseError
from softform_client.client import Code, GoalFailedError, Mode, ShapeClient
from softform_core.errors import SoftformError
from softform_core.forward.memory import PrandtlIshlinskii
from softform_core.forward.rbf_warp import ActuationCorrection
from softform_core.forward.robot_pipeline import load_pipeline, pipeline_of
from softform_core.forward.sim_to_real_store import load_sim_to_real
from softform_core.networks.mlp_weights import extract_mlp, perceptron_of
from softform_core.networks.store import load_forward_kinematics
from softform_core.paths import models_dir
from softform_core.robots import load_robot
from softform_core.shapes.shape import Shape
from softform_core.surface.patch_set import SHEET
from softform_core.units import MM_PER_M
from softform_interfaces.msg import ActuatorCommand, ActuatorState, DriverState, MarkerFrame
from softform_interfaces.srv import Lease
from softform_ros import qos
from softform_ros.asked import age_of
from softform_ros.conversions import cloud_from_points, marker_message
from softform_ros.service_calls import call_service

sys.path.insert(0, str(Path(__file__).parent))  # for the helper beside this file

NAMESPACE = "/softform"
PATIENCE = 30.0
AT_REST = 100.0
"""Pa."""
LEASE_TIMEOUT = 3.0
COMMAND_AGE_LIMIT = 0.5
COMMAND_TIMEOUT = 1.5
"""s; longer than the driver's, for machines that run several tests at once."""
MARKED = SHEET.samples(49)


@pytest.fixture(scope="session")
def robot():
    return load_robot("membrane")


@pytest.fixture(scope="session")
def pipeline(robot):
    return load_pipeline(robot)


PLAY = PrandtlIshlinskii.play(np.full(9, 150.0))
"""Pa."""


@pytest.fixture(scope="session")
def remembering(robot):
    """A model of sim-to-real whose body remembers."""
    learned = load_sim_to_real(robot, models_dir() / robot.name / "rig_default").sim_to_real
    correction = ActuationCorrection(perceptron_of([np.eye(9)], [np.zeros(9)], "tanh"), PLAY)
    weights = extract_mlp(load_forward_kinematics(robot)[0])
    return pipeline_of(robot, weights, SHEET.samples(1000), replace(learned, actuation=correction))


@pytest.fixture
def body(remembering):
    """What such a body does: the shape (P, 3) mm under values, one after the other."""
    state = PLAY.at_rest(np.zeros(9))

    def shape(values):
        nonlocal state
        state = PLAY.advance(state, values)
        return remembering.points(PLAY.now(state))

    return shape


@pytest.fixture(scope="session")
def shape_of(pipeline):
    """The mesh that the pipeline predicts for values, m."""

    def shape(values):
        points = pipeline.points(np.asarray(values, dtype=float)) / MM_PER_M
        return Shape.from_mesh(points, SHEET.triangles(len(points)))

    return shape


@pytest.fixture(scope="session")
def wait_for():
    def wait(condition, what, seconds=PATIENCE):
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"waited in vain: {what}"
            time.sleep(0.02)

    return wait


class StandIn:
    """Driver and scanner of a robot that follows commands as quickly as the test says."""

    def __init__(self, robot, pipeline):
        self.robot, self.pipeline, self.marked = robot, pipeline, pipeline.at(MARKED)
        self.context = rclpy.Context()
        rclpy.init(context=self.context)
        self.node = rclpy.create_node("stand_in", namespace=NAMESPACE, context=self.context)
        self.lock = threading.RLock()
        self.commands = []
        self.leased = LeasedCommands(Clock(), LEASE_TIMEOUT, robot.command_fingerprint())
        self.state, self.reason, self.rejection = DriverState.SAFE, "", ""
        self.reset_behaviour()
        self.states = self.node.create_publisher(ActuatorState, "actuator_state", qos.ACTUATOR_STATE)
        self.driver = self.node.create_publisher(DriverState, "driver_state", qos.LATCHED_STATE)
        self.markers = self.node.create_publisher(MarkerFrame, "captured_markers", qos.CAPTURED_MARKERS)
        self.clouds = self.node.create_publisher(PointCloud2, "captured_cloud", qos.CAPTURED_CLOUD)
        self.node.create_subscription(ActuatorCommand, "actuator_command", self.on_command, qos.ACTUATOR_COMMAND_LOG)
        self.node.create_service(Lease, "lease", self.on_lease)
        self.node.create_timer(0.05, self.tick)
        self.node.create_timer(0.2, self.tell)
        self.node.create_timer(0.2, self.scan)
        self.node.create_timer(0.1, self.mark)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        self.thread = threading.Thread(target=self.spin, daemon=True)
        self.thread.start()
        self.announce(DriverState.SAFE, "waiting for commands")

    def reset_behaviour(self):
        with self.lock:
            self.values = np.zeros(self.robot.degrees_of_freedom)
            self.target = None
            self.part_a_tick = 0.5
            self.publishes_values = True
            self.scan_offset = 0.0
            self.response = 1.0
            self.scan_frame = "membrane/base_link"
            self.scans = True
            self.commands.clear()
            self.rejected = []
            self.rejection = ""

    def spin(self):
        with contextlib.suppress(ExternalShutdownException, ShutdownException):
            self.executor.spin()

    @property
    def holder(self):
        return self.leased.holder[0]

    @property
    def is_at_rest(self):
        return self.target is None and np.abs(self.values).max() < AT_REST

    def announce(self, state, reason):
        """Be in a state; as in the driver, each way there but to RUNNING ends the lease, and what was asked for."""
        with self.lock:
            if state != DriverState.RUNNING and (state, reason) != (self.state, self.reason):
                self.target = None
                self.leased.end(reason)
                self.leased.begin_epoch()
            self.state, self.reason = state, reason
            self.tell()

    def tell(self):
        with self.lock:
            holder, lease = self.leased.holder
            is_venting = self.state == DriverState.SAFE and not self.is_at_rest
            message = DriverState(
                state=DriverState.MAKING_SAFE if is_venting else self.state,
                reason=self.reason,
                holder=holder,
                lease=lease,
                epoch=self.leased.epoch,
                fingerprint=self.leased.fingerprint,
            )
            self.driver.publish(message)

    def on_command(self, message):
        with self.lock:
            values, grant = np.array(message.value), Grant(message.lease, message.key)
            try:
                self.leased.require_same_robot(message.fingerprint)
                check_age(age_of(message.header.stamp, time.time()), COMMAND_AGE_LIMIT)
                self.leased.put(message.source, grant, values)
            except SoftformError:
                self.rejected.append(values)
                return
            self.commands.append(values)
            self.follow()

    def follow(self):
        command = self.leased.look()
        if command is None:
            return
        if time.monotonic() - command[1] > COMMAND_TIMEOUT:
            self.announce(DriverState.SAFE, "no command came")
            return
        if self.state == DriverState.SAFE and self.is_at_rest:
            self.announce(DriverState.RUNNING, "following commands")
        if self.state == DriverState.RUNNING:
            self.target = command[0]

    def on_lease(self, request, response):
        with self.lock:
            try:
                if request.request == Lease.Request.RELEASE:
                    response.epoch = self.release(request.source, Grant(request.lease, request.key))
                elif self.rejection or self.state in (DriverState.FAULT, DriverState.OFFLINE):
                    raise LeaseError(LeaseCode.FAULT, self.rejection or self.reason, "Reset it.")
                else:
                    asked = Asked(age_of(request.asked.stamp, time.time()), request.asked.epoch)
                    response.lease, response.key = self.leased.acquire(
                        request.source, request.client, asked, request.fingerprint
                    )
                    self.tell()
                response.success = True
            except LeaseError as error:
                response.error_code, response.message = int(error.code), str(error)
            return response

    def release(self, source, grant):
        self.leased.require(source, grant)
        if self.state == DriverState.RUNNING:
            self.announce(DriverState.SAFE, f"'{source}' gave its lease up")
        else:
            self.leased.end("given up")
            self.tell()
        return self.leased.epoch

    def stop_and_reset(self):
        """As an operator does; returns before a node has heard of either."""
        self.announce(DriverState.FAULT, "stopped by request")
        self.announce(DriverState.SAFE, "ready after a reset")

    def take_lease_away(self, reason):
        """As a driver does whose commander fell silent."""
        self.announce(DriverState.SAFE, reason)

    def tick(self):
        with self.lock:
            if self.leased.expire(time.monotonic()):
                self.tell()
            self.follow()
            goal = np.zeros_like(self.values) if self.target is None else self.target
            self.values = self.values + self.part_a_tick * (goal - self.values)
            settled = self.target is not None and np.abs(goal - self.values).max() < 50.0
            status = ActuatorState.SETTLED if settled else ActuatorState.MOVING
            if self.target is None:
                status = ActuatorState.SAFE
            if not self.publishes_values:
                return
            message = ActuatorState(
                name=self.robot.actuators, value=self.values.tolist(), status=[status] * len(self.values)
            )
            message.header.stamp = self.node.get_clock().now().to_msg()
            self.states.publish(message)

    def scan(self):
        with self.lock:
            if not self.scans:
                return
            points = self.pipeline.points(self.response * np.clip(self.values, 0.0, 5000.0)) / MM_PER_M
            points[:, 2] += self.scan_offset
            self.clouds.publish(cloud_from_points(points, self.scan_frame, self.node.get_clock().now().to_msg()))

    def mark(self):
        """Markers in rows of seven on the surface; the second of them is hidden."""
        with self.lock:
            points = self.marked.points(np.clip(self.values, 0.0, 5000.0)) / MM_PER_M
            points[:, 2] += self.scan_offset
            points[1] = np.nan
            names = [f"m{number}" for number in range(len(points))]
            stamp = self.node.get_clock().now().to_msg()
            self.markers.publish(marker_message(names, points, self.scan_frame, stamp, 0))

    def is_silent(self):
        """Whether no command comes within three periods."""
        before = len(self.commands)
        time.sleep(0.3)
        return len(self.commands) == before

    def in_executor(self, work):
        """Do something in the executor's thread: what is destroyed under its hands would end it."""
        done = threading.Event()

        def run():
            work()
            done.set()

        self.executor.create_task(run)
        assert done.wait(PATIENCE), "the stand-in does not spin"

    def close(self):
        rclpy.shutdown(context=self.context)
        self.thread.join()
        self.node.destroy_node()


class NodeProcess:
    """The node as it is launched."""

    def __init__(self, stand_in, *parameters, name="inverse_kinematics"):
        self.stand_in, self.name = stand_in, name
        command = [
            sys.executable,
            "-m",
            f"softform_ik.{name}_node",
            "--ros-args",
            "-r",
            f"__ns:={NAMESPACE}",
        ]
        for parameter in parameters:
            command += ["-p", parameter]
        environment = os.environ | {"PYTHONFAULTHANDLER": "1"}
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        self.log = []
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stderr:
            self.log.append(line)

    def change_state(self, transition):
        request = ChangeState.Request(transition=Transition(id=transition))
        service = f"{self.name}/change_state"
        answer = call_service(self.stand_in.node, self.name, ChangeState, service, request, 2 * PATIENCE)
        assert answer is not None, "".join(self.log)
        return answer.success

    def start(self):
        """Configure and activate. One that fails is ended: beside it, its successor would share its services."""
        try:
            assert self.change_state(Transition.TRANSITION_CONFIGURE)
            assert self.change_state(Transition.TRANSITION_ACTIVATE)
        except BaseException as error:
            self.process.send_signal(signal.SIGABRT)  # faulthandler tells what its threads are doing
            self.process.wait()
            self.reader.join()
            error.add_note("".join(self.log))
            raise

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        self.reader.join()
        return code


@pytest.fixture(scope="module")
def stand_in(robot, pipeline):
    one = StandIn(robot, pipeline)
    yield one
    one.close()


@pytest.fixture(scope="module")
def start_node(stand_in):
    """Start a process of the node with parameters; ended with the module at the latest."""
    running = []

    def start(*parameters, name="inverse_kinematics"):
        running.append(NodeProcess(stand_in, *parameters, name=name))
        return running[-1]

    yield start
    for node in running:
        if node.process.poll() is None:
            node.close()


@pytest.fixture(scope="module")
def client(node):
    """Of the module's `node`."""
    with ShapeClient(timeout=PATIENCE) as one:
        yield one


@pytest.fixture
def fresh_robot(request, stand_in, wait_for):
    """Each test meets a vented robot, and a driver that answers."""
    if "client" in request.fixturenames:
        stand_in.announce(DriverState.FAULT, "between two tests")
        wait_for(stand_in.is_silent, "the node to hold nothing")
        time.sleep(0.6)  # a stream that comes sooner is the one from before
    stand_in.reset_behaviour()
    stand_in.announce(DriverState.SAFE, "waiting for commands")
    if "client" in request.fixturenames:
        epochs = request.getfixturevalue("client")._reaching._epochs
        wait_for(lambda: epochs._epoch == stand_in.leased.epoch, "the client to hear of the driver's new epoch")


@pytest.fixture
def moving_client(client, fresh_robot, wait_for):
    """Until the node has heard of the driver's new state it does not move."""
    target = Shape.from_cloud(np.random.default_rng(0).uniform(-0.1, 0.1, (50, 3)))

    def accepted():
        try:
            client.reach(target, Mode.PLAN_AND_MOVE, max_time=1e-6)
        except GoalFailedError as error:
            return error.code not in (Code.DRIVER_NOT_READY, Code.DRIVER_FAULT)
        return True

    wait_for(accepted, "the node to know that the driver is ready")
    return client
