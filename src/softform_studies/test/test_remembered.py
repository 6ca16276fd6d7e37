"""`softform bench memory`: what is felt is learned better than by one play, and its form."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from softform_core.errors import SoftformError
from softform_core.robots import load_robot
from softform_rig.draw_reality import draw_reality
from softform_studies.cli_memory import memory
from softform_studies.sim_to_real.remembered import felt_actuations, felt_errors, law_of, remembered_figures

pytestmark = pytest.mark.slow


def test_what_is_felt_depends_on_what_was_before() -> None:
    robot = load_robot("membrane")
    reality = draw_reality(robot, 306)
    assert law_of(reality) == "bouc_wen"
    up, down = np.linspace(0.0, 2500.0, 5), np.linspace(5000.0, 2500.0, 5)
    risen, fallen = (felt_actuations(robot, reality, way[:, None] * np.ones(9))[-1] for way in (up, down))
    assert (fallen - risen > 100.0).all()


@pytest.mark.parametrize("seed", [302, 306, 307])
def test_several_plays_leave_less_than_one_whatever_the_law(seed: int) -> None:
    """Of several plays with creep and sensors that remember, Bouc and Wen's law, and plays with creep."""
    robot = load_robot("membrane")
    left, moved = felt_errors(robot, draw_reality(robot, seed), 40, seed)
    assert left["learned"] < 0.75 * left["one_play"] < 0.75 * left["memory_free"]
    assert moved["state"] < 0.6 * moved["memory_free"]  # after one move to what is wanted


@pytest.mark.long
def test_the_command_prints_medians_and_goes_on_where_it_stopped(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("SOFTFORM_RUNS", str(tmp_path))
    command = ["--draws", "3", "--frames", "30", "--seed", "100", "--jobs", "1", "--json", "-"]
    result = CliRunner().invoke(memory, command)
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    assert figures["draws"] == 3 and [one["seed"] for one in figures["each"]] == [100, 101, 102]
    assert figures["felt"]["memory_free"] == pytest.approx(
        np.median([one["felt"]["memory_free"] for one in figures["each"]]), abs=1e-5
    )
    monkeypatch.setattr("softform_studies.sim_to_real.remembered.felt_errors", None)
    assert json.loads(CliRunner().invoke(memory, command).stdout) == figures


def test_half_of_what_a_memory_is_worth_is_a_half() -> None:
    def draw(free: float, learned: float, told: float) -> dict:
        errors = {"before_mm": 4.0, "memory_free_mm": free, "learned_mm": learned, "told_mm": told}
        felt = dict.fromkeys(("memory_free", "one_play", "learned"), 0.01)
        return {"law": "none", "felt": felt, "one_move": {"memory_free": 0.01, "state": 0.01}, **errors}

    figures = remembered_figures([draw(1.0, 0.75, 0.5), draw(1.0, 0.95, 0.9), {"error": "no"}])
    assert figures["closed"] == {"draws": 1, "median": 0.5}
    assert figures["mean_reduction"]["learned"] == pytest.approx(0.7875)
    with pytest.raises(SoftformError, match="No reality"):
        remembered_figures([{"error": "no"}])


def test_what_is_felt_is_told_by_law() -> None:
    """The plays that a learner has, too, say nothing of Bouc and Wen's law."""

    def draw(law: str, left: float) -> dict:
        moved = {"memory_free": left, "state": 0.25 * left}
        return {"law": law, "felt": dict.fromkeys(("memory_free", "one_play", "learned"), left), "one_move": moved}

    laws = ("plays, 1 creep", "plays", "bouc_wen, 2 creep by Eyring, sensors", "1 creep")
    figures = remembered_figures([draw(law, left) for law, left in zip(laws, (0.01, 0.03, 0.05, 0.002), strict=True)])
    assert figures["one_move"]["fall"] == 0.75
    found = {law: (one["draws"], one["learned"]) for law, one in figures["felt_by_law"].items()}
    assert found == {"bouc_wen": (1, 0.05), "none": (1, 0.002), "plays": (2, 0.02)}
