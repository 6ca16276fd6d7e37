"""Scenes of an arm past a stick, and the study of Fig. 20 without its solves."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from softform_core.errors import SoftformError
from softform_core.forward.robot_pipeline import load_pipeline
from softform_core.planning.goals import goal_solutions
from softform_core.planning.motion import plan_motion
from softform_core.planning.motion_plan import MotionRequest, MotionSettings
from softform_core.planning.obstacles import obstacle_of
from softform_core.planning.surface_margins import MarginedSurface
from softform_core.robots import load_robot
from softform_rig.reality import load_reality
from softform_studies.planned_motion import scene as scenes
from softform_studies.planned_motion.bench import CLEARANCE, Motion, Trial
from softform_studies.planned_motion.picture import _mark_nearest
from softform_studies.planned_motion.scene import BALL_RADIUS, BEYOND, KINDS, LEAST_ROOM, arm_scene
from softform_studies.studies import stick as study
from softform_studies.studies.catalogue import BEFORE, OURS, Scale, Setting
from softform_studies.studies.study import by_series, carry_out


@pytest.fixture(scope="module")
def robot():
    return load_robot("manipulator")


@pytest.fixture(scope="module")
def surface(robot):
    return MarginedSurface(load_pipeline(robot, 21**2), None)


@pytest.fixture(scope="module")
def scene(robot, surface):
    return arm_scene(robot, surface.pipeline, 2, "in the way")


@pytest.fixture(scope="module")
def plan(robot, surface, scene):
    request = MotionRequest(scene.start, scene.goal, obstacle_of(scene.stick.mesh()), CLEARANCE)
    return plan_motion(surface, robot, request, MotionSettings(waypoint_spacing=0.02))


def test_the_stick_stands_in_the_way_and_clear_of_start_and_goal(robot, surface, scene):
    again = arm_scene(robot, surface.pipeline, 2, "in the way")
    assert np.array_equal(again.stick.ends, scene.stick.ends) and np.array_equal(again.ball, scene.ball)
    goals = goal_solutions(surface.pipeline, robot, scene.goal, scene.start, 1, 2.0, 2.0, lambda: False)
    way = scene.start + np.linspace(0.0, 1.0, 21)[:, None] * (goals[0].actuation - scene.start)
    least = scene.stick.distances(surface.pipeline.points(way) / 1000.0).min(axis=1)
    assert least[0] >= LEAST_ROOM and least.min() < 0.0
    assert np.linalg.norm(scene.ball - scene.goal.place) == pytest.approx(BALL_RADIUS)


def test_a_stick_beyond_the_goal_is_just_not_met(robot, surface, scene):
    beyond = arm_scene(robot, surface.pipeline, 2, "beyond the goal")
    assert np.array_equal(beyond.start, scene.start) and np.array_equal(beyond.goal.place, scene.goal.place)
    goals = goal_solutions(surface.pipeline, robot, beyond.goal, beyond.start, 1, 2.0, 2.0, lambda: False)
    way = beyond.start + np.linspace(0.0, 1.0, 41)[:, None] * (goals[0].actuation - beyond.start)
    least = beyond.stick.distances(surface.pipeline.points(way) / 1000.0).min(axis=1)
    assert 0.0 < least.min() < 3.0 * BEYOND and least.argmin() > 30


def test_the_arm_goes_around_and_its_tip_touches_the_ball(robot, surface, scene, plan):
    assert len(plan.corners) > 2 and (plan.clearances >= plan.margins).all()
    tip = surface.pipeline.at(robot.point_parameters("tip")).points(plan.actuations[-1]).mean(axis=0)
    assert tip / 1000.0 == pytest.approx(scene.goal.place, abs=1e-5)


def test_an_arm_that_hardly_moves_has_no_scene(robot, surface, monkeypatch):
    monkeypatch.setattr(scenes, "LEAST_ROOM", 1.0)
    monkeypatch.setattr(scenes, "_MOST_DRAWS", 3)
    with pytest.raises(SoftformError, match="Of 3 .* none has room"):
        arm_scene(robot, surface.pipeline, 0, KINDS[0])


@pytest.mark.long
def test_the_study_keeps_its_motions_and_draws_one(robot, surface, scene, plan, tmp_path, monkeypatch):
    motion = Motion(
        times=plan.times,
        margins=plan.margins,
        predicted_clearances=plan.clearances,
        clearances=plan.clearances - plan.clearances.min() - 0.002,
        drawn=np.array([0, len(plan.times) // 2, int(plan.clearances.argmin())]),
        predicted=surface.pipeline.points(plan.actuations[[0, 1, 2]]) / 1000.0,
        predicted_faces=surface.faces,
        shapes=surface.pipeline.points(plan.actuations[[0, 1, 2]]) / 1000.0,
        faces=surface.faces,
        predicted_goal_error=0.0,
        goal_error=0.004,
        corners=3,
        seconds=1.0,
        states_checked=100,
    )
    made = []

    def invented(model, *arguments):
        made.append(model)
        clear = replace(motion, clearances=plan.clearances, goal_error=0.001)
        return Trial(motion if model.side == surface.side else clear)

    monkeypatch.setattr(study, "SURFACE_POINTS", 21**2)
    monkeypatch.setattr(study, "carry_out", invented)
    monkeypatch.setattr(study, "_learned", lambda setting: MarginedSurface(load_pipeline(robot, 11**2), None))
    reality = load_reality("default", robot)
    carry_out("stick", robot, reality, Scale.of(robot, True), 0, tmp_path)
    picture, figures = (tmp_path / "stick.png").read_bytes(), by_series(tmp_path / "stick.json")
    assert picture.startswith(b"\x89PNG")
    monkeypatch.setattr(study, "draw_comparison", lambda comparison: Figure())
    carry_out("stick", robot, reality, Scale.of(robot, True), 0, tmp_path)
    assert len(made) == 4 and by_series(tmp_path / "stick.json") == figures
    assert figures[BEFORE]["in the way"]["collide"] == 1 and figures[OURS]["in the way"]["collide"] == 0
    assert figures[BEFORE]["beyond the goal"]["mean_tip_miss_mm"] == 4.0
    assert figures[OURS]["in the way 0"]["least_clearance_mm"] == pytest.approx(
        1000.0 * plan.clearances.min(), abs=0.01
    )


@pytest.mark.parametrize("collides", [True, False])
def test_a_collision_is_marked_where_it_is(scene, collides):
    axes, view = Figure().subplots(), np.eye(3)[:2]
    shape = scene.stick.ends.mean(axis=0) + np.array([[0.0, 0.0, 0.03], [0.0, 0.0, 0.002], [0.05, 0.0, 0.0]])
    _mark_nearest(axes, shape, scene.stick, view, collides)
    assert {line.get_marker() for line in axes.lines} == {"x" if collides else "o"}
    nearest = shape[scene.stick.distances(shape).argmin(), :2]
    assert axes.lines[-1].get_xydata()[0] == pytest.approx(1000.0 * nearest)
    assert (axes.get_facecolor() != (1.0, 1.0, 1.0, 1.0)) == collides


def test_a_robot_without_a_tip_is_told(tmp_path):
    membrane = load_robot("membrane")
    setting = Setting(membrane, load_reality("default", membrane), Scale(True), 0, tmp_path, False)
    with pytest.raises(SoftformError, match="no point 'tip'"):
        study.stick(setting)
