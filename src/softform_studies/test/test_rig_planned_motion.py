"""Scenes of planned motions, and one of them planned both ways and carried out."""

import json
from dataclasses import replace

import numpy as np
import pytest
import trimesh

from softform_core.errors import SoftformError
from softform_core.files import write_figure
from softform_core.forward.live_pipeline import LivePipeline
from softform_core.kept import kept_arrays
from softform_core.paths import models_dir
from softform_core.planning.motion_plan import MotionSettings
from softform_core.planning.surface_margins import MarginedSurface
from softform_core.robots import load_robot
from softform_rig.reality import load_reality
from softform_studies.planned_motion.bench import CLEARANCE, Comparison, Trial, carry_out, figures_of
from softform_studies.planned_motion.picture import draw_comparison, pictured
from softform_studies.planned_motion.scene import Stick, scene_of, spread_over

SETTINGS = MotionSettings(goal_starts=1, waypoint_spacing=0.006)


@pytest.fixture(scope="module")
def robot():
    return load_robot("membrane")


@pytest.fixture(scope="module")
def reality(robot):
    return load_reality("default", robot)


@pytest.fixture(scope="module")
def scene(robot, reality):
    return scene_of(robot, reality, 0)


@pytest.fixture(scope="module")
def surfaces(robot):
    models = LivePipeline(robot, 41**2, sim_to_real=str(models_dir() / robot.name / "rig_default"))
    return MarginedSurface(models.simulated, None), MarginedSurface(models.current, models.models.uncertainty)


@pytest.fixture(scope="module")
def comparison(robot, reality, scene, surfaces):
    return Comparison(0, scene, *(carry_out(surface, robot, reality, scene, SETTINGS) for surface in surfaces))


def test_the_mesh_of_a_stick_holds_the_stick_and_hardly_more():
    stick = Stick(np.array([[0.0, 0.1, 0.2], [0.2, -0.1, 0.3]]), 0.004)
    mesh = stick.mesh()
    surface = trimesh.Trimesh(mesh.points, mesh.faces, process=False)
    assert surface.is_watertight
    off = stick.distances(np.asarray(surface.sample(5000, seed=0)))
    assert off.min() > -1e-6 and off.max() < 0.0002
    assert stick.distances(stick.ends) == pytest.approx(-0.004)
    assert stick.distances(np.array([0.1, 0.0, 0.25])) == pytest.approx(-0.004)


def test_a_scene_is_its_seeds(robot, reality, scene):
    again, other = scene_of(robot, reality, 0), scene_of(robot, reality, 1, gap=0.02)
    assert np.array_equal(again.start, scene.start) and np.array_equal(again.stick.ends, scene.stick.ends)
    assert not np.allclose(other.start, scene.start)
    for one, gap in ((scene, 0.005), (other, 0.02)):
        distances = one.stick.distances(spread_over(one.goal.points, one.goal.faces))
        assert distances.min() == pytest.approx(gap, abs=1e-6)
        robot.check_commands(robot.actuators_of(one.start))


def test_planned_by_the_simulation_it_collides_and_by_the_learned_reality_not(comparison):
    without, learned = comparison.without, comparison.with_sim_to_real
    assert without.motion.collides and without.motion.predicted_clearances.min() > 0.002
    assert not learned.motion.collides and learned.motion.clearances.min() > CLEARANCE
    # What was predicted is what happens, within the uncertainty that was kept beside the clearance.
    off = learned.motion.clearances - learned.motion.predicted_clearances
    near = learned.motion.predicted_clearances < 0.03
    assert (off[near] > -(learned.motion.margins[near] - CLEARANCE)).all()


def test_figures_are_json(comparison):
    figures = json.loads(json.dumps(figures_of([comparison])))
    assert figures["without_sim_to_real"]["collide_share"] == 1.0
    assert figures["with_sim_to_real"]["collide_share"] == 0.0
    assert figures["with_sim_to_real"]["keep_clearance"] == 1
    assert figures["of_each"][0]["with"]["least_true_clearance_mm"] > 1.0


def test_a_motion_is_read_as_it_was_written(comparison, tmp_path):
    trial = comparison.with_sim_to_real
    again = Trial.of(kept_arrays(tmp_path, {"seed": 0}, lambda: trial.values))
    assert again.figures() == trial.figures()
    assert again.motion.shapes == pytest.approx(trial.motion.shapes, abs=1e-7)
    assert again.motion.drawn[again.motion.worst] == trial.motion.clearances.argmin()


def test_the_picture_is_drawn(comparison, tmp_path):
    write_figure(tmp_path / "plan.png", draw_comparison(pictured([comparison])))
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")


def test_a_rejected_motion_is_reported(robot, reality, surfaces, comparison, tmp_path):
    touching = scene_of(robot, reality, 0, gap=0.0005)
    trial = carry_out(surfaces[1], robot, reality, touching, SETTINGS)
    assert trial.figures()["planned"] is False and "GOAL_IN_COLLISION" in trial.rejection
    with pytest.raises(SoftformError, match="rejected"):
        trial.drawable()
    assert Trial.of(kept_arrays(tmp_path, {"seed": 1}, lambda: trial.values)) == trial
    with pytest.raises(SoftformError, match="more seeds"):
        pictured([Comparison(0, touching, comparison.without, trial)])


def test_a_scene_is_found_among_others_of_its_seed(comparison):
    other = replace(comparison, scene=replace(comparison.scene))
    assert [comparison, other].index(other) == 1
