"""Motions of pages: obstacles as the planner takes them, and that a motion runs as it was planned."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest

from softform_console import goal_runner
from softform_console.goal_runner import GoalRunner
from softform_console.motion_messages import GoHome, Obstacle, PlanMotion, PlanPath, RunMotion
from softform_console.motions import Motions
from softform_console.obstacle_shapes import mesh_of
from softform_core.errors import SoftformError
from softform_core.forward.history import History
from softform_core.planning.obstacles import obstacle_of
from softform_core.robots import load_robot

ROBOT = load_robot("membrane")
BALL = Obstacle(kind="ball", centre=(0.0, 0.0, 0.1), edges=(0.04, 0.04, 0.04))
VALUES = lambda: np.full(9, 1000.0)  # noqa: E731
BOX = Obstacle(kind="box", centre=(0.1, 0.0, 0.1), edges=(0.02, 0.04, 0.06))


class Client:
    """Solves a path by a line from low to high values, and notes what it is to follow."""

    connects = staticmethod(lambda: None)

    def __init__(self, namespace, frame, permit):
        self.followed, self.cancels, self.permit = [], 0, permit
        self.cancelled = threading.Event()
        Client.opened = self

    def connect_moving(self):
        self.connects()
        return self

    def close(self):
        pass

    def cancel(self):
        self.cancels += 1
        if self.cancels > self.lost:
            self.cancelled.set()

    def plan(self, target, obstacle, clearance, on_feedback):
        on_feedback(SimpleNamespace(stage="planning", elapsed=0.1, states_checked=3))
        self.meanwhile()
        values = np.linspace(np.zeros(9), target, 4)
        return self._result(values, [0.0, 1.0, 2.0, 3.0], clearances=[0.02, 0.01, 0.01, 0.03], margins=[0.005] * 4)

    def follow(self, path, times=None, plan_only=False, epoch=0, **more):
        if plan_only:
            values = np.linspace(100.0, 2000.0, len(path.points))[:, None] * np.ones(9)
            return self._result(values, [], errors=[0.001] * len(values))
        self.permit()
        self.followed.append((path.values, times, epoch))
        if len(self.followed) == 1 and self.blocks:
            assert self.cancelled.wait(5.0)
        return None

    def home(self, epoch, on_feedback):
        self.permit()
        on_feedback(SimpleNamespace(waypoint=3))
        self.followed.append(("home", epoch))

    blocks, lost, meanwhile = False, 0, staticmethod(lambda: None)

    def _result(self, values, times, **more):
        return SimpleNamespace(actuators=SimpleNamespace(value=values.ravel()), times=times, **more)


@pytest.fixture
def desk(monkeypatch):
    monkeypatch.setattr(goal_runner, "ShapeClient", Client)
    told, ended, clock = [], threading.Semaphore(0), SimpleNamespace(now=100.0)
    runner = GoalRunner("/softform", ROBOT.base_frame, told.append, ended.release, lambda: clock.now)

    def done():
        assert ended.acquire(timeout=5.0)
        runner._thread.join(5.0)
        return told[-1] if told else None

    past = [(1.0, 0.0)]  # s, Pa: turns of the first chamber
    motions = Motions(ROBOT, runner, history=lambda: History((tuple(past), *((),) * 8), True))
    yield SimpleNamespace(motions=motions, past=past, runner=runner, told=told, done=done, clock=clock)
    runner.close()


def test_obstacles_are_closed_meshes_that_hold_what_they_stand_for():
    shape = obstacle_of(mesh_of([BALL, BOX]))
    directions = np.random.default_rng(0).normal(size=(500, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    on_ball = 1000.0 * (np.array(BALL.centre) + 0.02 * directions)
    assert shape.contains(on_ball - 1e-3 * directions).all()
    assert shape.distances(on_ball).max() < 0.02 * 20.0
    corners = 1000.0 * np.array(BOX.centre) + 0.5 * 1000.0 * np.array(BOX.edges) * np.sign(directions)
    assert shape.distances(corners).max() < 1e-9
    assert not shape.contains(np.array([[0.0, 0.0, 75.0], [85.0, 0.0, 100.0]])).any()
    assert shape.contains(np.array([[100.0, 0.0, 100.0]])).all()


def test_a_motion_past_obstacles_is_told_and_runs_as_it_was_planned(desk):
    with pytest.raises(SoftformError, match="no obstacle"):
        desk.motions.plan(PlanMotion(values=[1000.0] * 9), VALUES)
    desk.motions.place([BALL])
    desk.motions.plan(PlanMotion(values=[1000.0] * 9), VALUES)
    state = desk.done()
    motion = desk.told[-2]
    assert [one.stage for one in desk.told if one.type == "motion_state"] == ["planning", "planning", "planned"]
    assert "10.0 mm clear" in state.text and motion.actuators[-1] == [1000.0] * 9
    with pytest.raises(SoftformError, match="not the newest"):
        desk.motions.run(RunMotion(epoch="7", stamp=1.0, motion=motion.id + 1))
    desk.motions.run(RunMotion(epoch="7", stamp=1.0, motion=motion.id))
    assert desk.done().stage == "reached"
    ((values, times, epoch),) = Client.opened.followed
    assert np.array_equal(values, motion.actuators) and list(times) == motion.times and epoch == 7


def planned(desk):
    desk.motions.place([BALL])
    desk.motions.plan(PlanMotion(values=[1000.0] * 9), VALUES)
    desk.done()
    return RunMotion(epoch="7", stamp=1.0, motion=next(one for one in reversed(desk.told) if one.type == "motion").id)


@pytest.mark.parametrize(
    "change",
    [
        lambda desk: desk.motions.place([BALL, BOX]),
        lambda desk: desk.motions.place([]),
        lambda desk: desk.motions.outdate("Another model is used"),
        lambda desk: desk.past.append((2.0, 1000.0)),
    ],
)
def test_a_motion_past_obstacles_of_before_with_another_model_or_history_is_not_run(desk, change):
    run = planned(desk)
    desk.motions.place([BALL])  # as it was: of no matter
    desk.past.append((1.5, 60.0))  # what is measured at rest wavers
    assert not desk.motions._has_turned(desk.motions._motion)
    change(desk)
    with pytest.raises(SoftformError, match=r"not the newest|was moved since"):
        desk.motions.run(run)
    assert desk.told[-1].stage == ("planned" if len(desk.past) == 3 else "outdated")
    assert Client.opened.followed == []


def test_a_motion_during_whose_planning_the_obstacles_changed_is_not_kept(desk, monkeypatch):
    monkeypatch.setattr(Client, "meanwhile", staticmethod(lambda: desk.motions.place([BOX])))
    desk.motions.place([BALL])
    desk.motions.plan(PlanMotion(values=[1000.0] * 9), VALUES)
    assert "while it was planned" in desk.done().text and "motion" not in [one.type for one in desk.told]


def test_while_a_motion_runs_it_is_said_to_run_whatever_becomes_of_the_obstacles(desk, monkeypatch):
    monkeypatch.setattr(Client, "blocks", True)
    run = planned(desk)
    desk.motions.run(run)
    desk.motions.place([BOX])
    assert "outdated" not in [one.stage for one in desk.told if one.type == "motion_state"]
    desk.runner.cancel()
    desk.done()
    with pytest.raises(SoftformError, match="not the newest"):
        desk.motions.run(run)


def test_a_path_which_keeps_clear_of_nothing_outlives_other_obstacles(desk):
    places = [(0.0, 0.0, 0.01), (0.0, 0.0, 0.02)]
    desk.motions.plan_path(PlanPath(output="sheet", places=places, seconds=1.0))
    desk.done()
    desk.motions.place([BOX])
    desk.past.append((2.0, 1000.0))
    desk.motions.run(RunMotion(epoch="7", stamp=1.0, motion=desk.told[-2].id))
    assert desk.done().stage == "reached"


def test_a_path_begins_at_its_first_place_and_is_no_faster_than_the_robot(desk):
    places = [(0.0, 0.0, 0.01), (0.0, 0.0, 0.02), (0.0, 0.0, 0.05)]
    desk.motions.plan_path(PlanPath(output="sheet", u=0.5, v=0.5, places=places, seconds=40.0))
    desk.done()
    slow = desk.told[-2]
    assert slow.path == places and slow.times == pytest.approx([0.0, 10.0, 40.0])
    desk.motions.plan_path(PlanPath(output="sheet", u=0.5, v=0.5, places=places, seconds=0.001))
    desk.done()
    motion = desk.told[-2]
    rates = np.abs(np.diff(motion.actuators, axis=0)) / np.diff(motion.times)[:, None]
    assert rates.max() == pytest.approx(ROBOT.slew_rate.max(), rel=1e-6)
    desk.motions.run(RunMotion(epoch="7", stamp=1.0, motion=motion.id))
    desk.done()
    (first, none, _), (values, times, _) = Client.opened.followed
    assert none is None and np.array_equal(first, values[:1]) and list(times) == motion.times


def test_a_path_that_is_cancelled_before_its_first_place_goes_no_further(desk, monkeypatch):
    monkeypatch.setattr(Client, "blocks", True)
    places = [(0.0, 0.0, 0.01), (0.0, 0.0, 0.02)]
    desk.motions.plan_path(PlanPath(output="sheet", places=places, seconds=1.0))
    desk.done()
    desk.motions.run(RunMotion(epoch="7", stamp=1.0, motion=desk.told[-2].id))
    desk.runner.cancel()
    assert desk.done().type == "notice" and desk.told[-2].stage == "failed"
    assert len(Client.opened.followed) == 1


def test_a_goal_that_is_cancelled_while_its_connection_is_opened_is_not_begun(desk, monkeypatch):
    opened = threading.Event()
    monkeypatch.setattr(Client, "connects", staticmethod(lambda: opened.wait(5.0)))
    begun = []
    desk.runner.begin(begun.append, "reach")
    desk.runner.cancel()
    opened.set()
    assert "cancelled" in desk.done().text and begun == []
    desk.runner.begin(begun.append, "reach")
    desk.done()
    assert len(begun) == 1


def test_a_cancel_that_comes_before_the_goal_is_known_is_repeated_until_it_has_ended(desk, monkeypatch):
    monkeypatch.setattr(Client, "lost", 2)
    begun = threading.Event()
    desk.runner.begin(lambda client: (begun.set(), client.cancelled.wait(5.0)), "reach")
    assert begun.wait(5.0)
    desk.runner.cancel()
    desk.done()
    assert Client.opened.cancels == 3


@pytest.mark.parametrize("moves", [True, False])
def test_what_moves_the_robot_is_not_begun_where_the_connection_was_long_in_coming(desk, monkeypatch, moves):
    monkeypatch.setattr(Client, "connects", staticmethod(lambda: setattr(desk.clock, "now", 102.5)))
    begun = []
    desk.runner.begin(begun.append, "reach", moves)
    desk.done()
    assert len(begun) == (not moves) and bool(desk.told) == moves


def test_the_way_home_is_told_and_begins_in_the_epoch_that_was_seen(desk):
    desk.motions.go_home(GoHome(epoch="7", stamp=1.0))
    assert desk.done().stage == "reached" and Client.opened.followed == [("home", 7)]
    assert [(one.stage, one.text) for one in desk.told[:-1]] == [("moving", "home: move 3")]


def test_an_obstacle_of_the_wrong_size_is_refused_and_those_before_stay(desk):
    desk.motions.place([BALL])
    with pytest.raises(SoftformError, match="obstacle is"):
        desk.motions.place([BOX, Obstacle(kind="box", centre=(0.0, 0.0, 0.1), edges=(90.0, 90.0, 90.0))])
    assert desk.motions.obstacles == (BALL,)
