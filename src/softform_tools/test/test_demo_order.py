"""A demo gives its results as soon as they are measured, and keeps them whatever ends it."""

import json
from contextlib import contextmanager

import numpy as np
import pytest
from click.testing import CliRunner

from softform_client.client import Code, GoalFailedError, Mode
from softform_core.cli.main import main
from softform_core.forward.robot_pipeline import load_pipeline
from softform_core.robots import load_robot
from softform_core.units import MM_PER_M
from softform_interfaces.action import ReachShape
from softform_interfaces.msg import ActuatorValues
from softform_rig.best_fit import BestFit
from softform_ros.conversions import cloud_from_points
from softform_tools import demo

ROBOT = load_robot("membrane")


class Client:
    """Answers as a stack would whose robot is at rest, until it is told to fail."""

    def __init__(self, ends):
        self._ends, self.asked = list(ends), []

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def reach(self, target, mode, **options):
        self.asked.append(mode)
        end = self._ends.pop(0)
        if isinstance(end, BaseException):
            raise end
        result = ReachShape.Result(actuators=ActuatorValues(name=ROBOT.actuators, value=[0.0] * 9, unit="Pa"))
        result.measured.valid, result.measured.mean_error = True, end * 1e-3
        points = load_pipeline(ROBOT, 400).points(ROBOT.rest_actuation) / MM_PER_M
        result.measured.shape = cloud_from_points(points, "membrane/base_link", result.measured.shape.header.stamp)
        result.round_mean_errors = [end * 1e-3] if mode is Mode.CLOSED_LOOP else []
        return result


@contextmanager
def no_stack(*arguments, **options):
    yield None


def run(monkeypatch, tmp_path, ends, *words, best_fit=0.5, draws=False):
    """The command with a stack that answers `ends` (mm, or what is raised), and a search that ends in `best_fit`."""
    client = Client(ends)

    def search(robot, reality, target, on_start, **options):
        if isinstance(best_fit, BaseException):
            raise best_fit
        for number in range(1, demo.STARTS + 1):
            on_start(number, best_fit)
        return BestFit(best_fit, best_fit, np.zeros(9), np.full(demo.STARTS, best_fit), 0.0)

    monkeypatch.setenv("SOFTFORM_RUNS", str(tmp_path))
    for name, stand_in in {
        "LaunchedStack": no_stack,
        "ShapeClient": lambda namespace: client,
        "wait_until_active": lambda *arguments: None,
        "enter_domain_of_its_own": lambda: None,
        "find_best_fit": search,
        "make_executor": lambda: None,
    }.items():
        monkeypatch.setattr(demo, name, stand_in)
    if not draws:
        monkeypatch.setattr(demo, "draw_run", lambda run, figures, *others: figures.report.touch())
    return CliRunner().invoke(main, ["demo", "--headless", "--json", str(tmp_path / "figures.json"), *words])


def figures(tmp_path):
    return json.loads((tmp_path / "figures.json").read_text())


def test_the_table_comes_before_the_best_fit_and_how_long_that_takes_is_told(monkeypatch, tmp_path):
    result = run(monkeypatch, tmp_path, [3.0, 2.0, 1.0])
    assert result.exit_code == 0, result.output
    first, search, last = (result.output.index(word) for word in ("closed loop, 0", "searching", "best fit of"))
    assert first < result.output.index("report:") < search < last
    assert "start 3 of 4: 0.50 mm; about 0 s left" in result.output
    assert figures(tmp_path)["best_fit_mean_mm"] == 0.5


def test_without_the_best_fit_the_rest_is_the_same(monkeypatch, tmp_path):
    result = run(monkeypatch, tmp_path, [3.0, 2.0, 1.0], "--no-best-fit", best_fit=AssertionError("searched"))
    assert result.exit_code == 0 and "best fit" not in result.output, result.output
    found = figures(tmp_path)
    assert found["best_fit_mean_mm"] is None and found["measured_closed_loop_mean_mm"] == found["measured_mean_mm"] == 1
    assert list(tmp_path.rglob("report.png"))


def test_ctrl_c_in_the_search_leaves_all_that_was_measured(monkeypatch, tmp_path):
    result = run(monkeypatch, tmp_path, [3.0, 2.0, 1.0], best_fit=KeyboardInterrupt())
    assert result.exit_code == 130 and "closed loop, 0 rounds" in result.output
    assert figures(tmp_path)["measured_closed_loop_mean_mm"] == 1.0 and list(tmp_path.rglob("report.png"))


@pytest.mark.long
@pytest.mark.parametrize("ways", [1, 2])
@pytest.mark.parametrize("how", ["Ctrl-C", "failure"])
def test_what_ends_a_later_way_leaves_those_before_it(monkeypatch, tmp_path, ways, how):
    failed = GoalFailedError("The driver is at fault.", Code.DRIVER_FAULT, ReachShape.Result())
    end = KeyboardInterrupt() if how == "Ctrl-C" else failed
    result = run(monkeypatch, tmp_path, [3.0, 2.0][:ways] + [end], draws=ways == 1)
    assert result.exit_code == (130 if how == "Ctrl-C" else 1), result.output
    assert (
        ("driver is at fault" in result.output)
        == ("launch.log" in result.output.split("report:")[1])
        == (how != "Ctrl-C")
    )
    found = figures(tmp_path)
    assert found["measured_without_sim_to_real_mean_mm"] == 3.0
    assert found["measured_mean_mm"] == [3.0, 2.0][ways - 1] and found["measured_closed_loop_mean_mm"] is None
    assert found["best_fit_mean_mm"] is None and "searching" not in result.output
    assert found["measured_open_loop_mean_mm"] == [None, 2.0][ways - 1]
    assert ("planned with sim-to-real" in result.output) == (ways == 2)
    assert list(tmp_path.rglob("report.png")) and list(tmp_path.rglob("target.ply"))


def test_before_the_first_result_there_is_nothing_to_keep(monkeypatch, tmp_path):
    result = run(monkeypatch, tmp_path, [KeyboardInterrupt()])
    assert result.exit_code == 130 and "before anything was measured" in result.output
    assert not (tmp_path / "figures.json").exists()
