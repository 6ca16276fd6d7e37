"""What pages ask of a robot: what takes long is not done in the server's thread, which carries stop and beats."""

import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from softform_console import goal_runner, robot_desk
from softform_console.goal_runner import GoalRunner
from softform_console.motion_messages import Obstacle, Obstacles, PlanMotion
from softform_console.motions import Motions
from softform_console.protocol import Reach
from softform_console.robot_desk import RobotDesk
from softform_core.errors import SoftformError
from softform_core.robots import load_robot
from softform_core.shapes.shape import Shape

ROBOT = load_robot("membrane")
SHAPE = Shape(np.random.default_rng(0).normal(size=(50, 3)))


class Targets:
    """One target, whose posing is noted with its thread."""

    def __init__(self):
        self.posed_by = []

    def file(self, number):
        if number != 1:
            raise SoftformError("That target is not kept any more.")

    def posed(self, number, pose):
        self.posed_by.append(threading.current_thread())
        return SHAPE


class Client:
    goes_on = threading.Event()

    def __init__(self, namespace, frame, permit):
        Client.asked = []

    def connect_moving(self):
        return self

    def close(self):
        pass

    def cancel(self):
        if self.heeds:
            self.goes_on.clear()

    heeds = True

    def reach(self, target, mode, **more):
        Client.asked.append(target)
        while self.goes_on.is_set():
            time.sleep(0.01)
        raise SoftformError("Reached.")

    def plan(self, target, obstacle, **more):
        Client.asked.append(target)
        raise SoftformError("Planned.")


@pytest.fixture
def desk(monkeypatch):
    monkeypatch.setattr(goal_runner, "ShapeClient", Client)
    told, ended, shown = [], threading.Semaphore(0), threading.Semaphore(0)
    runner = GoalRunner("/softform", ROBOT.base_frame, told.append, ended.release)
    idle = SimpleNamespace(is_running=False, thread=None)
    steering = SimpleNamespace(begin_goal=lambda: None, end_goal=lambda: None, mode="goal")
    link = SimpleNamespace(check_epoch=lambda epoch: None, check_alone=lambda: None, cancel_goal=runner.cancel)
    link.call_stop = lambda: (stops.append(None), Client.goes_on.clear())
    stops, targets, puts = [], Targets(), []
    store = SimpleNamespace(put=lambda *item: (puts.append((threading.current_thread(), *item)), shown.release()))
    motions = Motions(ROBOT, runner)
    ports = None, steering, link, runner, motions, print, idle, None, targets, store, told.append
    one = RobotDesk(ROBOT, 0, *ports)
    yield SimpleNamespace(
        desk=one, motions=motions, targets=targets, ended=ended, shown=shown, puts=puts, told=told, stops=stops
    )
    Client.goes_on.clear()
    one.close()
    runner.close()


def test_a_target_is_posed_by_the_goals_thread_and_made_to_be_shown_by_a_worker(desk):
    reach = Reach(epoch="7", stamp=1.0, target=1, pose="place", mode="move")
    with pytest.raises(SoftformError, match="not kept"):
        desk.desk.handle(reach.model_copy(update={"target": 2}))
    desk.desk.handle(reach)
    assert desk.ended.acquire(timeout=5.0) and Client.asked == [SHAPE]
    assert all(desk.shown.acquire(timeout=5.0) for _ in range(2))
    threads = [*desk.targets.posed_by, *(put[0] for put in desk.puts)]
    assert len(threads) == 3 and threading.current_thread() not in threads


def test_the_goal_of_a_motion_is_posed_by_the_goals_thread(desk):
    desk.motions.place([Obstacle(kind="ball", centre=(0.0, 0.0, 0.1), edges=(0.04, 0.04, 0.04))])
    desk.desk.handle(PlanMotion(target=1, pose="place"))
    assert desk.ended.acquire(timeout=5.0) and Client.asked == [SHAPE]
    assert [one.name for one in desk.targets.posed_by] == ["goal"]


BALL = Obstacle(kind="ball", centre=(0.0, 0.0, 0.1), edges=(0.04, 0.04, 0.04))
OTHER = BALL.model_copy(update={"centre": (0.05, 0.0, 0.1)})


@pytest.mark.parametrize(
    ("before", "placed", "ends"),
    [([], [BALL], True), ([BALL], [OTHER], True), ([BALL], [BALL, OTHER], True), ([BALL, OTHER], [BALL], False)],
)
def test_an_obstacle_that_comes_ends_what_moves_and_one_that_goes_does_not(desk, before, placed, ends):
    desk.motions.place(before)
    Client.goes_on.set()
    desk.desk.handle(Reach(epoch="7", stamp=1.0, target=1, pose="place", mode="move"))
    desk.desk.handle(Obstacles(obstacles=placed))
    assert desk.ended.acquire(timeout=0.5) == ends and desk.stops == []
    assert [one.text[:26] for one in desk.told if one.about == "obstacles"] == ["An obstacle was placed whi"] * ends


def test_a_motion_that_does_not_end_where_an_obstacle_was_placed_is_stopped(desk, monkeypatch):
    monkeypatch.setattr(robot_desk, "_END_SECONDS", 0.3)
    monkeypatch.setattr(Client, "heeds", False)
    Client.goes_on.set()
    desk.desk.handle(Reach(epoch="7", stamp=1.0, target=1, pose="place", mode="move"))
    desk.desk.handle(Obstacles(obstacles=[BALL]))
    assert desk.ended.acquire(timeout=5.0) and len(desk.stops) == 1


def test_an_obstacle_ends_nothing_where_nothing_moves(desk):
    desk.desk._steering.mode = "none"
    desk.desk.handle(Obstacles(obstacles=[BALL]))
    assert desk.told == [] and desk.stops == []
