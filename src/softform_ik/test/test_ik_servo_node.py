"""The stream to the node as a process: followed, rejected with reasons, handed over, stopped, killed midway."""

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import Point
from lifecycle_msgs.msg import Transition
from sensor_msgs.msg import PointCloud2
from std_msgs.msg import Header

from softform_client.client import Code, GoalFailedError, Mode
from softform_client.reach_messages import triangles_to_message
from softform_core.surface.patch_set import SHEET
from softform_core.units import MM_PER_M
from softform_interfaces.msg import DriverState, ServoState, TargetMesh, TargetPoints
from softform_ros import qos
from softform_ros.conversions import cloud_from_points, nanoseconds_from_stamp, packed_vertices, stamp_from_seconds

HIDDEN = np.array([4000.0, 500.0, 3000.0, 800.0, 2500.0, 1500.0, 200.0, 3500.0, 1000.0])
LARGEST_STEP = 400.0
"""Pa: what the slew rate allows in the longest time that one command makes up for."""

CAMERA_DRIVER = qos.profile(depth=5, reliable=False)

pytestmark = pytest.mark.usefixtures("fresh_robot")


@pytest.fixture(scope="module")
def node(start_node):
    one = start_node("settle_timeout:=4.0", "sim_to_real:=none")
    one.start()
    return one


class Controller:
    """Streams targets from the test process, and hears what the servo says."""

    def __init__(self, stand_in, wait_for):
        self.node, self.stand_in, self.wait_for = stand_in.node, stand_in, wait_for
        self.streaming = threading.Lock()
        self.states, self.health, self.target, self.period = [], [], None, 0.02
        self.publishers = {
            kind: self.node.create_publisher(kind, topic, qos.TARGET_SHAPE)
            for kind, topic in (
                (PointCloud2, "target_shape"),
                (TargetMesh, "target_mesh"),
                (TargetPoints, "target_points"),
            )
        }
        self.subscriptions = [
            self.node.create_subscription(ServoState, "servo_state", self.states.append, qos.SERVO_STATE),
            self.node.create_subscription(DiagnosticArray, "/diagnostics", self.health.append, qos.DIAGNOSTICS),
        ]
        wait_for(
            lambda: all(one.get_subscription_count() for one in self.publishers.values()), "the node to hear targets"
        )
        self.ends = threading.Event()
        self.thread = threading.Thread(target=self.stream, daemon=True)
        self.thread.start()

    def now(self):
        return self.node.get_clock().now().to_msg()

    def stream(self):
        while not self.ends.wait(self.period):
            with self.streaming:
                if self.target is not None:
                    self.publish(self.target())

    def publish(self, message):
        self.publishers[type(message)].publish(message)

    def follow(self, points):
        """Stream a cloud of (N, 3) m from now on, or nothing."""
        with self.streaming:
            self.target = (
                None if points is None else lambda: cloud_from_points(points, "membrane/base_link", self.now())
            )

    def wait_for_state(self, state, what=lambda one: True):
        """Wait until the servo says so from now on; returns that message."""
        count = len(self.states)

        def found():
            return [one for one in self.states[count:] if one.state == state and what(one)]

        self.wait_for(lambda: found(), f"servo_state {state}, the last being {self.states[-1:]}")
        return found()[0]

    def close(self):
        self.ends.set()
        self.thread.join()
        self.stand_in.in_executor(self.destroy)

    def destroy(self):
        for subscription in self.subscriptions:
            self.node.destroy_subscription(subscription)
        for publisher in self.publishers.values():
            self.node.destroy_publisher(publisher)


@pytest.fixture
def controller(node, stand_in, wait_for):
    one = Controller(stand_in, wait_for)
    yield one
    one.close()


@pytest.fixture(scope="module")
def cloud(pipeline):
    """Dense predicted points of values, m."""
    dense = pipeline.at(SHEET.samples(4000))
    return lambda values: dense.points(np.asarray(values, dtype=float)) / MM_PER_M


@pytest.fixture
def following(client, controller, stand_in, cloud, wait_for):
    """A controller whose stream has brought the robot near the hidden values."""
    controller.follow(cloud(HIDDEN))
    controller.wait_for_state(ServoState.TRACKING, lambda one: one.converged)
    wait_for(lambda: np.abs(stand_in.values - HIDDEN).max() < 150.0, "the robot to be there")
    return controller


def steps(commands):
    return np.abs(np.diff(np.array(commands), axis=0)).max(axis=1)


def test_a_stream_is_followed_smoothly_even_when_it_jumps(following, stand_in, cloud, wait_for):
    sent = list(stand_in.commands)
    assert sent[-1] == pytest.approx(HIDDEN, abs=40.0)
    assert sent[0].max() <= LARGEST_STEP and steps(sent).max() <= LARGEST_STEP
    following.follow(cloud(HIDDEN[::-1]))
    wait_for(lambda: np.abs(stand_in.commands[-1] - HIDDEN[::-1]).max() < 40.0, "the jump to be followed")
    state = following.wait_for_state(ServoState.TRACKING, lambda one: one.converged)
    sent = list(stand_in.commands)
    assert steps(sent).max() <= LARGEST_STEP and state.mean_error < 2e-4
    assert all((one >= 0.0).all() and (one <= 5000.0).all() for one in sent)
    assert state.commands > 20 and state.targets > 20 and state.targets_rejected == 0
    assert 0.0 < state.latency < 0.5 and state.max_error >= state.mean_error and state.reason == ""


def test_the_answer_names_its_target_exactly(following):
    stamps = set()
    points = np.frombuffer(following.target().data, dtype=np.float32).reshape(-1, 3)

    def target():
        stamp = following.now()
        stamps.add(nanoseconds_from_stamp(stamp))
        return cloud_from_points(points, "membrane/base_link", stamp)

    following.target = target
    following.wait_for_state(ServoState.TRACKING, lambda one: nanoseconds_from_stamp(one.target) in stamps)


def test_meshes_and_feature_points_are_followed_too(following, stand_in, pipeline, shape_of, wait_for):
    mesh = shape_of(HIDDEN[::-1])
    vertices, triangles = packed_vertices(mesh.points), triangles_to_message(mesh)
    following.target = lambda: TargetMesh(
        header=Header(stamp=following.now(), frame_id="membrane/base_link"),
        vertices=vertices,
        triangles=triangles,
    )
    # The triangles are chords of the surface: 50 Pa with so few.
    wait_for(lambda: np.abs(stand_in.commands[-1] - HIDDEN[::-1]).max() < 100.0, "the mesh to be followed")
    following.period = 0.02
    uv = np.random.default_rng(0).uniform(0.1, 0.9, (40, 2))
    wanted = pipeline.at(uv).points(HIDDEN) / MM_PER_M
    following.target = lambda: TargetPoints(
        header=Header(stamp=following.now(), frame_id="membrane/base_link"),
        u=uv[:, 0].tolist(),
        v=uv[:, 1].tolist(),
        position=[Point(x=float(x), y=float(y), z=float(z)) for x, y, z in wanted],
    )
    wait_for(lambda: np.abs(stand_in.commands[-1] - HIDDEN).max() < 40.0, "the feature points to be followed")


def bad_targets(points, now):
    """Messages that cannot be followed, with what the rejection says."""
    soon = stamp_from_seconds(time.time() + 60.0)
    return [
        (cloud_from_points(np.where(points > 0.1, np.nan, points), "membrane/base_link", now), "NaN"),
        (cloud_from_points(points[:0], "membrane/base_link", now), "0 points"),
        (cloud_from_points(points[:3], "membrane/base_link", now), "3 points"),
        (cloud_from_points(1000.0 * points, "membrane/base_link", now), "millimetres"),
        (cloud_from_points(points, "world", now), "'world'"),
        (cloud_from_points(points, "membrane/base_link", Time()), "no stamp"),
        (cloud_from_points(points, "membrane/base_link", stamp_from_seconds(1e9)), "stale"),
        (cloud_from_points(points, "membrane/base_link", soon), "future"),
        (
            TargetPoints(header=Header(stamp=now, frame_id="membrane/base_link"), u=[0.5]),
            "0 positions of feature points and 1 u",
        ),
        (TargetMesh(header=Header(stamp=now, frame_id="membrane/base_link")), "0 points"),
    ]


def test_bad_targets_are_rejected_and_the_last_good_command_kept(following, stand_in, cloud, wait_for):
    following.follow(None)
    count = len(bad_targets(cloud(HIDDEN), following.now()))
    for number in range(count):
        message, reason = bad_targets(cloud(HIDDEN), following.now())[number]
        following.publish(message)

        def told(reason=reason):
            values = [{pair.key: pair.value for pair in one.status[0].values} for one in following.health]
            return any(reason in one.get("last rejected target", "") for one in values)

        wait_for(told, f"the reason '{reason}' on /diagnostics")
    # States that were sent before the last rejection may come after its reason.
    state = following.wait_for_state(ServoState.HOLDING, lambda one: one.targets_rejected >= count)
    assert state.targets_rejected >= 9
    assert state.reason.startswith("No target came") and "newest target was rejected: " in state.reason
    assert stand_in.commands[-1] == pytest.approx(HIDDEN, abs=40.0) and not stand_in.is_silent()


def test_a_stream_that_is_rejected_from_its_start_is_told_why_at_once(controller, cloud, wait_for):
    count = len(controller.states)
    # Streamed: the first ones go by while the node does not know yet who sends.
    controller.target = lambda: cloud_from_points(cloud(HIDDEN), "world", controller.now())
    try:
        wait_for(lambda: controller.states[count:], "a state", seconds=5.0)
    finally:
        controller.target = None
    assert "The newest target was rejected: TF knows no frame 'world'" in controller.states[count].reason
    assert controller.states[count].state != ServoState.OFF or controller.states[count].reason.startswith("The newest")


def test_a_stream_of_best_effort_is_followed(controller, stand_in, cloud, wait_for):
    publisher = controller.node.create_publisher(PointCloud2, "target_shape", CAMERA_DRIVER)
    try:
        wait_for(publisher.get_subscription_count, "the node to hear it")
        time.sleep(0.8)  # longer than `stale_after`: what goes on from before the robot was fresh is not followed
        sent = len(stand_in.commands)
        for _ in range(100):
            publisher.publish(cloud_from_points(cloud(HIDDEN), "membrane/base_link", controller.now()))
            time.sleep(0.02)
        assert len(stand_in.commands) > sent + 20 and controller.states[-1].state == ServoState.TRACKING
    finally:
        stand_in.in_executor(lambda: controller.node.destroy_publisher(publisher))


def test_targets_may_change_their_size_from_one_to_the_next(following, stand_in, pipeline):
    clouds = [pipeline.at(SHEET.samples(count)).points(HIDDEN) / MM_PER_M for count in (400, 9000, 2500)]
    sizes = iter(range(10**9))
    following.target = lambda: cloud_from_points(clouds[next(sizes) % 3], "membrane/base_link", following.now())
    count = len(following.states)
    following.wait_for(lambda: len(following.states) > count + 50, "states")
    assert {one.state for one in following.states[count:]} == {ServoState.TRACKING}
    assert stand_in.commands[-1] == pytest.approx(HIDDEN, abs=150.0)


def test_an_unreachable_target_holds_the_robot(following, stand_in, cloud):
    following.follow(cloud(HIDDEN) + np.array([0.0, 0.0, 0.5]))
    state = following.wait_for_state(ServoState.HOLDING)
    assert "out of reach" in state.reason and "in the direction" in state.reason
    assert stand_in.commands[-1] == pytest.approx(HIDDEN, abs=40.0)


def test_a_killed_controller_leaves_the_robot_holding(client, controller, stand_in, cloud, tmp_path, wait_for):
    script, file = Path(__file__).with_name("streaming_process.py"), tmp_path / "points.npy"
    np.save(file, cloud(HIDDEN))
    process = subprocess.Popen([sys.executable, str(script), "/softform", str(file)])
    try:
        controller.wait_for_state(ServoState.TRACKING, lambda one: one.commands > 5)
        wait_for(lambda: stand_in.values.max() > 1000.0, "the robot to move")
    finally:
        process.kill()
        process.wait()
    state = controller.wait_for_state(ServoState.HOLDING)
    assert "No target came" in state.reason
    time.sleep(0.2)  # commands that were sent before it held may come after the state
    held = stand_in.commands[-1]
    time.sleep(0.3)
    assert (stand_in.commands[-1] == held).all() and not stand_in.is_silent()


def test_a_goal_takes_over_and_gives_back_without_a_bump(following, client, stand_in, shape_of, wait_for):
    sent = len(stand_in.commands)
    yielded = []

    def on_feedback(feedback):
        if feedback.stage == "settling":
            yielded.append(following.states[-1].state)

    count = len(following.states)
    result = client.reach(shape_of(HIDDEN[::-1]), Mode.PLAN_AND_MOVE, tolerance=1e-6, on_feedback=on_feedback)
    assert result.error_code == Code.NONE and yielded
    assert ServoState.YIELDED in {one.state for one in following.states[count:]}
    wait_for(lambda: np.abs(stand_in.commands[-1] - HIDDEN).max() < 40.0, "the stream to go on")
    goal = np.asarray(result.actuators.value)
    commands = np.array(stand_in.commands[sent - 5 :])  # and the stream's last ones before
    of_goal = np.flatnonzero((commands == goal).all(axis=1))
    assert (np.diff(of_goal) == 1).all(), "the stream must not command between two commands of the goal"
    assert steps(commands[: of_goal[0]]).max() <= LARGEST_STEP, "until the goal knows where to, the stream's is held"
    after = commands[of_goal[-1] :]
    assert steps(after).max() <= LARGEST_STEP, "from what the goal held, at the slew rate"


def test_a_planning_goal_does_not_disturb_the_stream(following, client, shape_of):
    count = len(following.states)
    client.reach(shape_of(HIDDEN[::-1]), Mode.PLAN_ONLY)
    assert {one.state for one in following.states[count:]} <= {ServoState.TRACKING}


def test_a_cancelled_goal_gives_the_robot_back_too(following, client, stand_in, shape_of, wait_for):
    stand_in.part_a_tick = 0.02
    with pytest.raises(GoalFailedError) as failure:
        client.reach(
            shape_of(HIDDEN[::-1]),
            Mode.PLAN_AND_MOVE,
            on_feedback=lambda feedback: feedback.stage == "settling" and client.cancel(),
        )
    assert failure.value.code == Code.CANCELLED
    stand_in.part_a_tick = 0.5
    wait_for(lambda: np.abs(stand_in.commands[-1] - HIDDEN).max() < 40.0, "the stream to go on")


def test_a_fault_releases_the_stream_and_a_reset_does_not_bring_it_back(following, stand_in, cloud, wait_for):
    following.follow(None)
    stand_in.announce(DriverState.FAULT, "burst hose")
    wait_for(stand_in.is_silent, "the commands to end")
    assert following.states[-1].state == ServoState.OFF
    stand_in.announce(DriverState.SAFE, "reset")
    late = cloud_from_points(cloud(HIDDEN), "membrane/base_link", following.now())
    assert stand_in.is_silent()
    stand_in.announce(DriverState.FAULT, "burst again")
    time.sleep(0.1)
    stand_in.announce(DriverState.SAFE, "reset")
    time.sleep(0.1)
    following.publish(late)
    assert stand_in.is_silent(), "a target that is stamped before the reset must not move the robot"
    time.sleep(0.6)
    count = len(stand_in.commands)
    following.follow(cloud(HIDDEN))
    wait_for(lambda: len(stand_in.commands) > count, "a new stream to be followed")
    assert stand_in.commands[count].max() <= LARGEST_STEP


def test_a_stream_that_lost_its_lease_is_not_followed_until_it_paused(following, stand_in, cloud, wait_for):
    stand_in.take_lease_away("no command came")
    wait_for(stand_in.is_silent, "the commands to end although targets go on")
    time.sleep(1.5)
    assert stand_in.is_silent() and not stand_in.holder, "nobody has asked again"
    following.follow(None)
    time.sleep(0.8)
    following.follow(cloud(HIDDEN))
    count = len(stand_in.commands)
    wait_for(lambda: len(stand_in.commands) > count, "the new stream to be followed")


def test_a_frozen_servo_that_wakes_up_moves_nothing(node, following, stand_in, wait_for):
    node.process.send_signal(signal.SIGSTOP)
    try:
        time.sleep(1.0)
        stand_in.take_lease_away("no command came for 1 s")
        time.sleep(1.0)
        count = len(stand_in.commands)
    finally:
        node.process.send_signal(signal.SIGCONT)
    time.sleep(2.0)
    assert len(stand_in.commands) == count and not stand_in.holder


def test_a_fault_midway_in_a_running_stream_ends_the_commands(following, stand_in, wait_for):
    stand_in.announce(DriverState.FAULT, "burst hose")
    wait_for(stand_in.is_silent, "the commands to end although targets go on")
    state = following.wait_for_state(ServoState.OFF) if following.states[-1].state else following.states[-1]
    assert "burst hose" in state.reason


def test_deactivating_ends_the_stream_and_activating_needs_a_new_target(node, following, stand_in, cloud, wait_for):
    assert node.change_state(Transition.TRANSITION_DEACTIVATE)
    wait_for(stand_in.is_silent, "the commands to end although targets go on")
    following.follow(None)
    time.sleep(0.1)
    assert node.change_state(Transition.TRANSITION_ACTIVATE)
    assert stand_in.is_silent()
    count = len(stand_in.commands)
    following.follow(cloud(HIDDEN))
    wait_for(lambda: len(stand_in.commands) > count, "a new target to be followed")


def test_sigkill_midway_ends_the_commands_at_once(start_node, node, following, stand_in, wait_for):
    node.process.kill()
    node.process.wait()
    wait_for(stand_in.is_silent, "the commands to end: the driver's watchdog then vents")
