"""Figs. 21, 22, 24: what the true robot becomes at a solution, and the study without its solves."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from softform_core.forward.live_pipeline import LivePipeline
from softform_core.forward.robot_pipeline import load_pipeline
from softform_core.paths import models_dir
from softform_core.robots import load_robot
from softform_core.shapes.shape import Shape
from softform_rig.live_body import LiveBody
from softform_rig.reality import load_reality
from softform_studies.sim_to_real.judge import search_tree
from softform_studies.studies import torsos as study
from softform_studies.studies.catalogue import BEFORE, OURS, Scale
from softform_studies.studies.study import by_series, carry_out
from softform_studies.studies.torsos import ALL, AT_REST, HELD, Reached, _reached
from softform_studies.torsos.targets import SCALE, Bodies, TorsoTarget

LIFT = 0.004


@pytest.fixture(scope="module")
def reached():
    """A true shape of the membrane, lifted, as target: each way to it."""
    robot = load_robot("membrane")
    reality = load_reality("default", robot)
    live = LiveBody(robot, reality)
    actuation = 0.6 * robot.actuation_max
    lifted = live.commanded_shape(actuation) + [0.0, 0.0, LIFT]
    target = TorsoTarget("B1", Shape.from_mesh(lifted, live.faces), np.zeros(3), 1.7, True)
    models = LivePipeline(robot, 400, sim_to_real=str(models_dir() / robot.name / "rig_default"))
    ways = {AT_REST: models.simulated, BEFORE: models.simulated, HELD: models.current, OURS: models.current}
    found = {way: _reached(robot, reality, model, target, way) for way, model in ways.items()}
    return found, search_tree(lifted - [0.0, 0.0, LIFT], live.faces)


@pytest.mark.long
def test_sim_to_real_brings_the_true_robot_to_a_shape_of_its_own(reached):
    found, own = reached
    assert found[AT_REST].mean > 5.0 and len(found[AT_REST].history) >= 1
    assert found[OURS].mean < 0.5 * found[BEFORE].mean < found[AT_REST].mean
    assert own.query(found[OURS].points).distances.mean() < 0.8


def test_without_icp_a_displaced_target_stays_out_of_reach(reached):
    found, _ = reached
    assert found[HELD].mean > 2.0 * found[OURS].mean


def test_each_torso_is_reached_once_and_drawn(tmp_path, monkeypatch):
    robot = load_robot("mannequin")
    pipeline, samples = load_pipeline(robot, 225), 900
    shape = pipeline.at(robot.patches.samples(samples)).points(0.5 * robot.actuation_max) / 1000.0 / SCALE
    shape -= [0.0, 0.0, shape[:, 2].max()]
    person = Bodies(shape[None], robot.patches.triangles(samples), np.array([-0.55]), np.array([1.8]))
    made = []

    def invented(robot, reality, model, target, way):
        made.append(way)
        points = pipeline.points(robot.actuation_min)
        error = 4.0 - len(made)
        covered = np.arange(len(points)) > 20
        return Reached(np.array([5.0, error]), points, np.full(len(points), error), covered, error, 2.0 * error)

    monkeypatch.setattr(study, "SURFACE_POINTS", 225)
    monkeypatch.setattr(study, "draw_bodies", lambda count, seed: person)
    monkeypatch.setattr(study, "_reached", invented)
    monkeypatch.setattr(study, "learn", lambda setting, frames, held_out: study)
    monkeypatch.setattr(study, "pipeline", lambda robot, points: pipeline, raising=False)
    reality = load_reality("default", robot)
    carry_out("torsos", robot, reality, Scale(True), 0, tmp_path)
    assert (tmp_path / "torsos.png").read_bytes().startswith(b"\x89PNG")
    monkeypatch.setattr(study, "_draw", lambda *arguments: Figure())
    carry_out("torsos", robot, reality, Scale(True), 0, tmp_path)
    assert made == [AT_REST, BEFORE, HELD, OURS]
    figures = by_series(tmp_path / "torsos.json")
    assert [figures[way]["B1"]["mean_mm"] for way in made] == [3.0, 2.0, 1.0, 0.0]
    assert figures[BEFORE][ALL] == figures[BEFORE]["B1"] and figures[BEFORE][ALL]["iterations"] == 1.0
