"""`softform bench sim2real` on tiny settings: its form, its floors, what it rejects; the judge against trimesh."""

import json
from dataclasses import replace

import numpy as np
import pytest
import trimesh
from click.testing import CliRunner

from softform_core.cli.main import main
from softform_core.errors import SoftformError
from softform_core.networks.mlp_weights import extract_mlp
from softform_core.networks.store import load_forward_kinematics
from softform_core.paths import reality_file
from softform_core.robots import Robot, load_robot
from softform_core.training.recipe import DEFAULT, RECIPES
from softform_rig.reality import Reality, load_reality
from softform_studies.sim_to_real.bench_sim_to_real import BenchSettings, bench
from softform_studies.sim_to_real.judge import Judge
from softform_studies.sim_to_real.make_frames import make_frames

TINY = replace(DEFAULT, epochs=20, patience=20, members=1, kernels=25, surface_points=225, confidence="learned")
SEED = 100


@pytest.fixture(scope="module")
def robot() -> Robot:
    return load_robot("membrane")


@pytest.fixture(scope="module")
def judge(robot: Robot) -> Judge:
    _, held_out, _ = make_frames(robot, load_reality("default", robot), 1, 2, seed=SEED)
    return Judge(robot, extract_mlp(load_forward_kinematics(robot)[0]), held_out)


@pytest.fixture(scope="module")
def figures(robot: Robot) -> dict:
    settings = BenchSettings(frames=6, held_out=2, points=300, seed=SEED, recipe=TINY, baselines=False)
    return bench(robot, load_reality("default", robot), settings, lambda line: None)


def test_the_judge_agrees_with_trimesh(judge: Judge) -> None:
    predicted = judge.predicted(None)[:, ::25]
    for shape, points, measured in zip(judge.held_out.vertices, predicted, judge.before.distances, strict=True):
        corners = 1000.0 * shape[judge.held_out.faces]
        closest = [trimesh.triangles.closest_point(corners, np.tile(point, (len(corners), 1))) for point in points]
        nearest = [np.linalg.norm(each - point, axis=1).min() for each, point in zip(closest, points, strict=True)]
        assert np.allclose(measured[::25], nearest, atol=1e-6)


def test_normal_errors_see_a_tilt_but_no_lift(judge: Judge) -> None:
    flat = np.column_stack([320.0 * judge.uv - 160.0, np.zeros(len(judge.uv))])
    surface = judge.predicted(None)
    lifted = judge.normal_errors(surface + [0.0, 0.0, 0.5]) - judge.normal_errors(surface)
    assert np.abs(lifted).mean() < 2e-3
    tilt = np.radians(20.0)
    tilted = surface + flat[:, :1] * [0.0, 0.0, np.tan(tilt)]
    assert judge.normal_errors(tilted).mean() > 0.5 * (1.0 - np.cos(tilt))


@pytest.mark.long
def test_figures_follow_from_each_other_and_no_floor_is_above_what_was_reached(figures: dict) -> None:
    assert {"reality", "frames", "mean_before_mm", "mean_after_mm", "floors", "baselines", "train_s"} <= set(figures)
    cut = 1.0 - figures["mean_after_mm"] / figures["mean_before_mm"]
    assert figures["mean_reduction"] == pytest.approx(cut, abs=1e-3)
    assert 0.0 < figures["mean_reduction"] < 1.0
    assert figures["gap"]["mean_mm"] == pytest.approx(figures["mean_before_mm"], rel=0.1)
    assert figures["baselines"]["simulation_only"]["mean_mm"] == figures["mean_before_mm"]
    for floor in figures["floors"].values():
        assert floor["mean_mm"] < 0.5 * figures["mean_after_mm"]
        assert floor["mean_reduction"] > figures["mean_reduction"]
    assert 0.0 < figures["confidence_auc"] < 1.0


@pytest.mark.long
def test_the_same_seed_gives_the_same_figures_from_a_file_and_only_json_is_printed(
    figures: dict, tmp_path, monkeypatch
) -> None:
    monkeypatch.setitem(RECIPES, "default", TINY)
    elsewhere = tmp_path / "mine.yaml"
    elsewhere.write_text(reality_file("default", "membrane").read_text(encoding="utf-8"), encoding="utf-8")
    sizes = ["--frames", "6", "--held-out", "2", "--points", "300", "--seed", str(SEED), "--no-baselines"]
    command = ["bench", "sim2real", "--reality", str(elsewhere), "--json", "-", *sizes]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert {**printed, "train_s": 0.0} == {**figures, "train_s": 0.0}


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--reality", "nowhere.yaml"], "does not exist"),
        (["--reality", "no_such"], "Known: default"),
        (["--reality", "default", "--frames", "4"], "--frames"),
        (["--reality", "default", "--recipe", "magic"], "none of default, paper"),
    ],
)
def test_bad_arguments_are_rejected_before_anything_is_done(arguments: list[str], reason: str) -> None:
    result = CliRunner().invoke(main, ["bench", "sim2real", *arguments])
    assert result.exit_code == 2
    assert reason in result.output
    assert not result.stdout


def test_a_reality_that_is_no_description_is_rejected(tmp_path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text("name: broken\ntitle: x\nbody: {kind: membrane, cells: 3}\n", encoding="utf-8")
    result = CliRunner().invoke(main, ["bench", "sim2real", "--reality", str(broken)])
    assert result.exit_code == 2
    assert "body.cells" in result.output


def test_a_reality_that_fails_does_not_cost_the_figures_of_the_others(monkeypatch) -> None:
    def one_fails(robot: Robot, reality: Reality, *_: object) -> dict[str, object]:
        if reality.name == "sluggish":
            raise SoftformError("It has no shape.")
        return {"reality": reality.name}

    monkeypatch.setattr("softform_studies.sim_to_real.bench_sim_to_real.bench", one_fails)
    result = CliRunner().invoke(main, ["bench", "sim2real", "--json", "-"])
    printed = {figures["reality"]: figures.get("error") for figures in json.loads(result.stdout)}
    assert result.exit_code == 1
    assert printed.pop("sluggish") == "It has no shape."
    assert len(printed) >= 4
    assert not any(printed.values())
