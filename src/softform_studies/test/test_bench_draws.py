"""`softform bench sim2real --draws`: its form, that it goes on where it stopped, what memory leaves nobody to know."""

import json
import re
from dataclasses import replace
from typing import cast

import numpy as np
import pytest
from click.testing import CliRunner

from softform_core.bodies.membrane.simulator import RealMembrane
from softform_core.cli.main import main
from softform_core.paths import home
from softform_core.robots import load_robot
from softform_core.training.displacement_prior import load_displacement_prior
from softform_core.training.marker_learning import MARKER_RECIPES
from softform_core.training.recipe import DEFAULT, RECIPES
from softform_rig.draw_reality import HELD_OUT_SEED
from softform_rig.reality import Reality
from softform_studies.sim_to_real import draws
from softform_studies.sim_to_real.draws import draw_figures
from softform_studies.sim_to_real.reality_floors import memory_floor

TINY = replace(DEFAULT, epochs=5, patience=5, members=1, kernels=25, surface_points=225)


def test_no_recipe_was_chosen_on_what_is_published() -> None:
    for recipe in {**RECIPES, **MARKER_RECIPES}.values():
        assert all(0 <= seed < HELD_OUT_SEED for seed in recipe.chosen_on), recipe.name
    prior = load_displacement_prior(load_robot("membrane"))
    assert prior is not None and set(cast(list[int], prior.card["seeds"])) <= set(DEFAULT.chosen_on)


def test_the_recipe_names_every_seed_that_the_docs_choose_by() -> None:
    page = (home() / "docs" / "notes" / "sim-to-real-as-printed.md").read_text(encoding="utf-8")
    draws = re.findall(r"^\| (\d+)(?:,[^|]*)? \|", page, re.MULTILINE)
    of_refresh = re.findall(
        r"^\| (\d+) \|", (home() / "docs/notes/refresh.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len(draws) >= 10 and len(of_refresh) >= 7
    seeds = {int(seed) for seed in draws + of_refresh}
    assert {seed for seed in seeds if seed < HELD_OUT_SEED} <= set(DEFAULT.chosen_on)


@pytest.mark.long
def test_draws_are_measured_once_and_their_figures_have_the_form(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("SOFTFORM_RUNS", str(tmp_path))
    monkeypatch.setitem(RECIPES, "default", TINY)
    sizes = ["--frames", "5", "--held-out", "1", "--points", "200", "--seed", "100", "--json", "-"]
    command = ["bench", "sim2real", "--draws", "1", *sizes]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    assert figures["draws"] == 1
    spread = {"median", "p10", "worst"}
    cuts = {"mean_reduction", "max_reduction"}
    for part in (figures, figures["fixed_confidence"], figures["without_prior"]):
        assert all(set(part[cut]) == spread for cut in cuts)
    assert figures["by_kind"]
    assert all(kind["draws"] == 1 for kind in figures["by_kind"].values())
    assert set(figures["floors"]) == {"memory", "spline", "forward_kinematics", "warp"}
    assert figures["floors"]["spline"]["mean_mm"] < 0.2 < figures["before"]["mean_mm"]
    assert figures["left_out"] == 0

    def never(*_: object) -> None:
        raise AssertionError("measured again")

    monkeypatch.setattr(draws, "make_captured", never)
    again = CliRunner().invoke(main, command)
    assert json.loads(again.stdout) == figures


def test_cuts_are_of_each_reality_and_failed_ones_do_not_count() -> None:
    def draw(after: float, kinds: list[str], missing: float) -> dict:
        errors = {name: {"mean_mm": mm, "max_mm": 2.0 * mm} for name, mm in (("before", 2.0), ("memory", 1.0))}
        learned = {name: {"mean_mm": after, "max_mm": 3.0} for name in ("after", "fixed")}
        floor = {"mean_mm": 0.1, "max_mm": 0.2, "mean_reduction": 0.95, "max_reduction": 0.95}
        floors = dict.fromkeys(("spline", "forward_kinematics", "warp"), floor)
        return {"kinds": kinds, "missing": missing, "left_out": 2, "floors": floors, **errors, **learned}

    measured = [draw(1.0, ["creep"], 0.1), draw(1.5, ["creep", "prestretch"], 0.4), {"kinds": ["creep"], "error": "no"}]
    figures = draw_figures(measured)
    assert figures["draws"] == 2
    assert figures["mean_reduction"] == {"median": 0.375, "p10": 0.275, "worst": 0.25}
    assert figures["max_reduction"]["worst"] == 0.25
    assert figures["by_kind"]["creep"]["draws"] == 2
    assert figures["by_kind"]["prestretch"]["mean_reduction"] == 0.25
    assert figures["by_kind"]["missing_above_0.3"]["draws"] == 1
    assert figures["left_out"] == 4
    assert figures["floors"]["memory"] == {"mean_mm": 1.0, "max_mm": 2.0, "mean_reduction": 0.5, "max_reduction": 0.5}
    assert figures["floors"]["warp"]["mean_reduction"] == 0.95
    assert "no_memory" not in figures["by_kind"] and "without_prior" not in figures
    of_markers = draw_figures([{key: value for key, value in one.items() if key != "fixed"} for one in measured])
    assert "fixed_confidence" not in of_markers and of_markers["mean_reduction"] == figures["mean_reduction"]


def test_memory_leaves_as_much_unknown_as_shapes_differ_by_their_history() -> None:
    robot = load_robot("membrane")
    actuation = np.full((1, 9), 2500.0)
    elastic = Reality(name="e", title="", body=RealMembrane())
    assert memory_floor(robot, elastic, actuation, 0).mean_mm == 0.0
    little, much = (
        memory_floor(robot, elastic.model_copy(update={"hysteresis": band}), actuation, 0).mean_mm
        for band in (50.0, 200.0)
    )
    assert 0.05 < little < 0.3
    assert much == pytest.approx(4.0 * little, rel=0.2)
