"""Targets of an object that arms hold: the newest is asked for, what was looked at is sent, and nothing else."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest
from rclpy.task import Future

from softform_client.client import GoalFailedError
from softform_console.object_goals import ObjectGoals, ObjectRunner
from softform_console.object_messages import PreviewObject, ShapeObject
from softform_console.protocol import Actuators, Cancel, Point
from softform_console.robot_desk import RobotDesk
from softform_console.scene_frames import Kind
from softform_console.scene_store import PREVIEWS, SceneStore
from softform_core.errors import SoftformError
from softform_core.paths import config_dir
from softform_core.robots import load_robot
from softform_interfaces.action import ShapeObject as Action
from softform_interfaces.srv import PredictObject
from softform_ros.conversions import cloud_from_points

ARMS = load_robot(config_dir() / "arms" / "two_arms.yaml")
TRIANGLES = np.array([[0, 1, 2], [0, 2, 3]], dtype=np.uint32)
POSES = [0.0] * 12


class Service:
    """Answers when it is told to."""

    def __init__(self):
        self.asked, self.is_there = [], True

    def service_is_ready(self):
        return self.is_there

    def call_async(self, request):
        self.asked.append((request, Future()))
        return self.asked[-1][1]

    def answer(self, **fields):
        request, future = self.asked[-1]
        target = cloud_from_points(np.full((4, 3), len(self.asked)), "", PredictObject.Response().target.header.stamp)
        given = {"success": True, "gripper_poses": request.gripper_poses, "target": target, "off": float("nan")}
        future.set_result(PredictObject.Response(**{**given, **fields}))
        future._executor = None
        for callback in future._callbacks:
            callback(future)


class Client:
    """What `ObjectClient` is to the goals."""

    def __init__(self, permit):
        self.permit, self.shaped, self.fails_with, self.cancelled = permit, [], None, threading.Event()

    def close(self):
        pass

    def cancel(self):
        self.cancelled.set()

    def shape(self, *, on_feedback, **asked):
        self.permit()
        self.shaped.append(asked)
        on_feedback(Action.Feedback(stage="moving", iteration=2, reported_rms=0.004, true_rms=float("nan")))
        if self.fails_with is not None:
            raise GoalFailedError("It failed.", 610, self.fails_with)
        return Action.Result(ended="done", iterations=3, reported_rms=0.001, true_rms=0.002)


@pytest.fixture
def held(monkeypatch):
    told, ended, service, store, clients = [], threading.Semaphore(0), Service(), SceneStore(), []
    monkeypatch.setattr(ObjectRunner, "open_client", lambda self, permit: clients.append(Client(permit)) or clients[-1])
    runner = ObjectRunner("/softform", ARMS.base_frame, told.append, ended.release)
    node = SimpleNamespace(create_client=lambda kind, name: service, destroy_client=lambda client: None)
    goals = ObjectGoals(node, 0, runner, lambda: TRIANGLES, store)
    runner._connected()
    one = SimpleNamespace(goals=goals, runner=runner, told=told, ended=ended, service=service, store=store)
    one.client = clients[0]
    yield one
    runner.close()


def point(place=(0.0, 0.0, 0.1), u=0.25, v=0.25):
    return Point(id=1, output="object", u=u, v=v, target=place)


def shape(preview=1):
    return ShapeObject(epoch="7", stamp=1.0, preview=preview, iterations=4, stress_limit=2e5)


def test_of_targets_that_wait_the_newest_is_asked_for_and_only_what_was_seen_is_sent(held):
    for x in (0.01, 0.02, 0.03):
        held.goals.preview(PreviewObject(poses=POSES, points=[point((x, 0.0, 0.1))]))
    assert len(held.service.asked) == 1
    held.service.answer(off=0.001)
    assert held.told[-1].id == 1 and held.told[-1].off == 0.001
    with pytest.raises(SoftformError, match="previewed last"):  # another one is asked for already
        held.goals.begin(shape())
    assert [request.places[0].x for request, _ in held.service.asked] == [0.01, 0.03]
    request = held.service.asked[-1][0]
    assert set(request.nodes) <= {0, 1, 2} and sum(request.weights) == pytest.approx(1.0)
    held.service.answer(stress=3e5, stress_limit=4e5)
    assert (held.told[-1].id, held.told[-1].stress_limit, held.told[-1].off) == (2, 4e5, None)
    assert {(key.kind, key.variant) for key in held.store.entries()} == {(Kind.TARGET, PREVIEWS)}
    with pytest.raises(SoftformError, match="previewed last"):
        held.goals.begin(shape(1))
    held.goals.begin(shape(2))
    assert held.ended.acquire(timeout=5.0)
    (asked,) = held.client.shaped
    assert (asked["nodes"] == 2.0).all() and (asked["epoch"], asked["iterations"]) == (7, 4)
    assert asked["stress_limit"] == 2e5
    moving, ended = held.told[-2:]
    assert (moving.stage, moving.look, moving.reported_rms, moving.true_rms) == ("moving", 2, 0.004, None)
    assert (ended.stage, ended.look, ended.true_rms) == ("ended", 3, 0.002) and ended.text


def test_numbers_of_a_goal_that_never_looked_are_not_told(held):
    held.goals.preview(PreviewObject(poses=POSES))
    held.service.answer()
    held.client.fails_with = Action.Result()
    held.goals.begin(shape())
    assert held.ended.acquire(timeout=5.0)
    assert held.told[-1].stage == "failed" and "failed" in held.told[-1].text
    assert {held.told[-1].reported_rms, held.told[-1].true_rms, held.told[-1].stress} == {None}


def test_a_target_that_is_refused_is_told_and_leaves_nothing_to_be_sent(held):
    held.goals.preview(PreviewObject(poses=POSES))
    held.service.answer()
    held.goals.preview(PreviewObject(poses=POSES))
    held.service.answer(success=False, message="The object finds no shape.")
    assert held.told[-1].about == "preview_object" and "no shape" in held.told[-1].text
    with pytest.raises(SoftformError, match="previewed last"):
        held.goals.begin(shape())
    held.goals.preview(PreviewObject(poses=POSES))
    held.service.answer()
    with pytest.raises(SoftformError, match="no point"):
        held.goals.preview(PreviewObject(poses=POSES, points=[point(u=0.9, v=0.9)]))
    held.service.is_there = False
    with pytest.raises(SoftformError, match="object_shaper"):
        held.goals.preview(PreviewObject(poses=POSES))


def test_arms_that_hold_an_object_are_moved_by_its_targets_alone(held):
    free = SimpleNamespace(is_running=False, thread=None)
    cancelled = []
    link = SimpleNamespace(
        check_epoch=lambda epoch: None, check_alone=lambda: None, cancel_goal=lambda: cancelled.append(1)
    )
    modes = SimpleNamespace(begin_goal=lambda: None, end_goal=lambda: None, mode="goal")
    ports = None, modes, link, held.runner, None, print, free, None, None, held.store, held.told.append
    arms = RobotDesk(ARMS, 0, *ports, held.goals)
    assert arms.info.holds and [output.name for output in arms.info.outputs] == ["object"]
    assert arms.info.size == pytest.approx(0.22)
    with pytest.raises(SoftformError, match="hold an object"):
        arms.handle(Actuators(epoch="7", stamp=1.0, values=[0.0] * 12))
    arms.handle(PreviewObject(poses=POSES))
    held.service.answer()
    arms.handle(shape())
    assert held.ended.acquire(timeout=5.0) and len(held.client.shaped) == 1
    arms.handle(Cancel())
    assert cancelled
    sheet = RobotDesk(load_robot("membrane"), 1, *ports)
    for message in (PreviewObject(poses=POSES), shape()):
        with pytest.raises(SoftformError, match="holds no object"):
            sheet.handle(message)
    for one in (arms, sheet):
        one.close()
