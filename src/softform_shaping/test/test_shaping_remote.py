"""The loop over topics: arms behind a driver, a camera, the truth; and ways in which the path to the arms breaks."""

import time
from pathlib import Path

import numpy as np
import pytest
from held_block import BENT
from sensor_msgs.msg import CameraInfo, Image
from std_msgs.msg import Header

from softform_client.capture_watch import Capture
from softform_client.driver_watch import MeasuredValues
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform
from softform_core.paths import config_dir
from softform_core.robots import load_robot
from softform_ros.conversions import stamp_from_seconds
from softform_ros.goal_error import GoalCode, GoalError
from softform_shaping.arms_of import arms_of
from softform_shaping.camera import Intrinsics, Picture
from softform_shaping.guard import StressError, StressGuard
from softform_shaping.ours import Ours, OursController
from softform_shaping.pictures import Pair, PictureWatch, camera_info, image_messages, unpacked
from softform_shaping.remote_rig import RemoteRig, RemoteSettings, Topics
from softform_shaping.scene import make_scene
from softform_shaping.session import shape_object

ROBOT = load_robot(config_dir() / "arms" / "two_arms.yaml")
NEAR = 0.3 * BENT


class Driver:
    """Arms that are where they were sent last; what breaks, breaks at the n-th command."""

    def __init__(self, start: Array) -> None:
        self.values, self.now = start, 0.0
        self.held: list[tuple[float, Array]] = []
        self.stop_reason: str | None = None
        self.at: dict[int, object] = {}
        self.driver = self

    def check_ready(self) -> None:
        if self.stop_reason is not None:
            raise GoalError(GoalCode.DRIVER_FAULT, "The driver is at fault.")

    def hold(self, point: Array, permitted) -> bool:
        if not permitted():
            return False
        self.held.append((self.now, point))
        self.values = point
        self.at.get(len(self.held), lambda: None)()
        return True

    def wait_until_settled(self, command, tolerance, timeout, since, should_stop):
        return None if should_stop() else MeasuredValues(self.values, True, time.time(), time.monotonic())

    def wait(self, seconds: float) -> None:
        self.now += seconds


class Lab:
    """A remote rig over a driver, a scene and watches that answer at once."""

    def __init__(self, block, model, limit: float = np.inf, scene=None, robot=ROBOT) -> None:
        self.arms = arms_of(robot, block)
        self.driver, self.scene, self.code = Driver(self.arms.joints.ravel()), scene, GoalCode.NONE
        self.stops, self.said, self.has_camera = 0, [], True
        topics = Topics(self, lambda pair: self.scene.believed, self, lambda: True)
        self.rig = RemoteRig(
            robot, self.arms, self.driver, topics, StressGuard(model, limit), self.stop, lambda: self.code,
            RemoteSettings(0.004), lambda stage, poses: self.said.append(stage), lambda: self.driver.now,
            self.driver.wait,
        )  # fmt: skip

    def stop(self) -> None:
        self.stops += 1
        self.driver.stop_reason = "stopped"

    def cancel(self) -> None:
        self.code = GoalCode.CANCELLED

    def wait_for_one_after(self, moment, timeout, should_stop):
        """Pictures and truth in one: the camera is asked first."""
        if not self.has_camera:
            return None
        if self.said and self.said[-1] == "looking":
            self.said.append("looked")
            self.scene.truth.move(self.rig.poses)
            header = Header(stamp=stamp_from_seconds(time.time()), frame_id="camera")
            colour, depth = image_messages(self.scene.look(), header)
            return Capture(Pair(colour, depth, camera_info(self.scene.intrinsics, header)), time.time(), 0.0)
        truth = self.scene.truth
        return Capture(np.where(truth.has[:, None], truth.nodes, np.nan), time.time(), 0.0)


@pytest.fixture
def lab(block, model) -> Lab:
    return Lab(block, model)


def test_the_loop_over_topics_is_that_in_one_process(block, model, task):
    scene = make_scene(block, model, 3)
    lab = Lab(block, model, scene=scene)
    shaped = shape_object(OursController(task, Ours()), lab.rig, 2)
    assert [shaped.ended, len(shaped.iterations)] == ["iterations", 2], shaped.ended
    rms = [each.true_rms for each in shaped.iterations]
    assert rms[1] < 0.8 * rms[0] and shaped.last.true_rms == pytest.approx(scene.truth.errors(task.target)[0])
    assert np.abs(lab.rig.poses - scene.truth.poses).max() < 1e-9 and shaped.travel > 0.005
    assert lab.arms.poses_at(lab.driver.values.reshape(2, 6)) == pytest.approx(lab.rig.poses)


def test_points_come_in_their_time_and_within_the_limits(lab):
    assert lab.rig.move(NEAR) == pytest.approx(NEAR, abs=1e-3)
    times, points = np.array([at for at, _ in lab.driver.held]), np.array([point for _, point in lab.driver.held])
    points = np.vstack([lab.arms.joints.ravel(), points])
    speeds = np.abs(np.diff(points, axis=0)) / 0.04
    assert (np.diff(times) > 0.0399).all() and (speeds <= ROBOT.slew_rate + 1e-9).all() and len(times) > 5
    assert lab.said.count("moving") > 1


def test_a_delay_midway_is_not_made_up_for(lab):
    lab.driver.at[3] = lambda: lab.driver.wait(0.8)
    lab.rig.move(NEAR)
    times = np.array([at for at, _ in lab.driver.held])
    assert np.diff(times)[2] > 0.79 and np.diff(times)[3:].min() > 0.0399


@pytest.mark.parametrize("how", ["fault", "cancel"])
def test_a_driver_that_stops_and_a_cancelled_goal_end_the_motion_with_that_point(lab, how):
    lab.driver.at[3] = lab.stop if how == "fault" else lab.cancel
    with pytest.raises(GoalError) as caught:
        lab.rig.move(NEAR)
    assert caught.value.code is (GoalCode.DRIVER_FAULT if how == "fault" else GoalCode.CANCELLED)
    assert len(lab.driver.held) == 3
    with pytest.raises(GoalError):
        lab.rig.move(NEAR)
    assert len(lab.driver.held) == 3, "nothing moves by itself afterwards"


def stress_at(model, poses: Array) -> float:
    return float(model.stresses(model.shape(poses)).max())


def test_a_way_that_would_stress_the_object_is_not_begun(block, model):
    lab = Lab(block, model, 0.5 * stress_at(model, NEAR))
    with pytest.raises(StressError, match="are allowed"):
        lab.rig.move(NEAR)
    assert not lab.driver.held and not lab.stops


def test_arms_that_go_where_the_object_is_stressed_are_stopped(block, model):
    lab = Lab(block, model, 1.2 * stress_at(model, NEAR))
    lab.rig.move(0.2 * NEAR)
    begun = len(lab.driver.held)
    beyond = lab.arms.way(2.0 * NEAR).joints[-1].ravel()
    lab.driver.at[begun + 1] = lambda: setattr(lab.driver, "values", beyond)
    with pytest.raises(StressError):
        lab.rig.move(NEAR)
    assert lab.stops == 1 and len(lab.driver.held) == begun + 1


def test_arms_that_sink_as_they_settle_are_stopped_too(block, model):
    lab = Lab(block, model, 1.2 * stress_at(model, NEAR))
    beyond = lab.arms.way(2.0 * NEAR).joints[-1].ravel()

    def sink(command, tolerance, timeout, since, should_stop):
        lab.driver.values = beyond
        lab.driver.wait(1.0)
        should_stop()
        raise AssertionError("the guard did not look")

    lab.driver.wait_until_settled = sink
    with pytest.raises(StressError):
        lab.rig.move(NEAR)
    assert lab.stops == 1


def test_a_joint_at_the_end_of_its_range_is_told_and_nothing_moves(block, model, tmp_path: Path):
    text = (config_dir() / "arms" / "two_arms.yaml").read_text(encoding="utf-8")
    (tmp_path / "arms.yaml").write_text(text.replace("-3.1, -2.0, -3.1, -2.9", "-3.1, -0.9, -3.1, -2.9"))
    lab = Lab(block, model, robot=load_robot(tmp_path / "arms.yaml"))
    with pytest.raises(GoalError, match="left_5 at the end of the range") as caught:
        lab.rig.move(BENT)
    assert caught.value.code is GoalCode.UNREACHABLE and not lab.driver.held


def test_a_camera_that_is_silent_is_told(lab):
    lab.has_camera = False
    with pytest.raises(GoalError, match="No picture of the resting object") as caught:
        lab.rig.look()
    assert caught.value.code is GoalCode.CAPTURE_TIMEOUT
    assert np.isnan(lab.rig.errors(np.zeros((4, 3)))).all(), "nor is the truth known"


def test_images_of_one_moment_are_a_pair_and_come_back_as_they_were():
    random, intrinsics = np.random.default_rng(0), Intrinsics(6, 4, 300.0, (3.2, 2.1))
    depth = random.integers(0, 900, (4, 6)).astype(np.float32) / np.float32(1000.0)
    picture, watch = Picture(random.integers(0, 255, (4, 6, 3)).astype(np.uint8), depth), PictureWatch()
    headers = [Header(stamp=stamp_from_seconds(at), frame_id="camera") for at in (5.0, 6.0)]
    before = MeasuredValues(np.zeros(0), False, 4.0, 0.0)
    watch.taker("colour")(image_messages(picture, headers[0])[0])
    watch.taker("depth")(image_messages(picture, headers[1])[1])
    watch.take_info(camera_info(intrinsics, headers[1]))
    assert watch.wait_for_one_after(before, 0.0, lambda: False) is None
    watch.taker("colour")(image_messages(picture, headers[1])[0])
    found, seen_by = unpacked(watch.wait_for_one_after(before, 0.0, lambda: False).cloud)
    assert (found.colour == picture.colour).all() and np.abs(found.depth - picture.depth).max() < 1e-6
    assert seen_by == intrinsics


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda pair: setattr(pair.colour, "encoding", "mono8"), "is 'mono8'"),
        (lambda pair: setattr(pair.depth, "height", 9), "fewer bytes"),
        (lambda pair: setattr(pair.depth, "step", 1), "fewer bytes"),
        (lambda pair: setattr(pair.info, "k", [0.0] * 9), "focal lengths are 0 and 0"),
        (lambda pair: setattr(pair.info, "d", [0.1] * 5), "are distorted"),
    ],
)
def test_images_that_cannot_be_used_are_told(change, words):
    size = {"height": 4, "width": 6}
    pair = Pair(
        Image(**size, encoding="rgb8", step=18, data=bytes(72)),
        Image(**size, encoding="16UC1", step=12, data=bytes(48)),
        CameraInfo(k=[300.0, 0.0, 3.0, 0.0, 300.0, 2.0, 0.0, 0.0, 1.0]),
    )
    assert unpacked(pair)[0].depth.shape == (4, 6)
    change(pair)
    with pytest.raises(SoftformError, match=words):
        unpacked(pair)


def test_arms_that_do_not_begin_at_the_grasp_are_told(block, tmp_path: Path):
    text = (config_dir() / "arms" / "two_arms.yaml").read_text(encoding="utf-8")
    (tmp_path / "arms.yaml").write_text(text.replace("start: [0.0, 0.16", "start: [0.0, 0.2"), encoding="utf-8")
    with pytest.raises(SoftformError, match=r"do not start where they grasp.*Give start: \["):
        arms_of(load_robot(tmp_path / "arms.yaml"), block)
    assert isinstance(arms_of(ROBOT, block).grasps[0], RigidTransform)
