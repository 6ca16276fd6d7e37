"""Core's sections of `softform bench ik` at small sizes: what they print, and that their figures belong together."""

import time

import numpy as np
import pytest

from softform_core.inverse.closest_points import closest_points_on
from softform_core.networks.mlp_weights import extract_mlp
from softform_core.networks.store import load_forward_kinematics
from softform_core.robots import load_robot
from softform_studies.ik import ik_algorithm2, ik_solver, race
from softform_studies.ik.autograd_pipeline import AutogradPipeline
from softform_studies.ik.ik_prediction import prediction, shipped_pipeline
from softform_studies.ik.ik_scaling import fastest_iteration_ms, random_pipeline
from softform_studies.ik.ik_solver import reachable_targets


def test_prediction_is_of_the_shipped_ensemble():
    figures = prediction(points=49)
    assert figures["points"] == 49 and figures["kernels"] == 100 and figures["degrees_of_freedom"] == 9
    assert figures["predict_and_jacobian_ms"] > figures["predict_ms"] > 0.0


def test_targets_are_the_shapes_of_their_pressures_and_the_same_for_any_count():
    robot = load_robot("membrane")
    pipeline = shipped_pipeline(robot, 100)
    few, more = (list(reachable_targets(robot, pipeline, count, points=3000)) for count in (1, 2))
    assert np.array_equal(few[0].cloud.points, more[0].cloud.points) and len(more) == 2
    for target in more:
        assert target.cloud.points.shape == (3000, 3) and target.cloud.normals is None
        distances = closest_points_on(target.cloud).query(pipeline.points(target.actuation)).distances
        assert distances.mean() < 0.2


def test_solves_from_rest_reach_the_best_error_known(monkeypatch):
    monkeypatch.setattr(ik_solver, "REFERENCE_STARTS", 3)
    figures = ik_solver.solver(points=100, targets=2)
    assert figures["targets"] == 2 and figures["points"] == 100 and figures["target_points"] == 20_000
    assert figures["share_at_best_error_known"] == 1.0
    assert figures["best_mean_error_mm_p50"] <= figures["mean_error_mm_p50"] < 0.1
    assert figures["ms_per_solve_p99"] >= figures["ms_per_solve_p50"] > figures["ms_per_iteration"] > 0.0
    assert figures["ms_per_solve_p50"] > figures["of_it_ms_to_prepare_the_target_p50"] > 0.0
    assert figures["processor_ms_per_solve_p95"] >= figures["processor_ms_per_solve_p50"] > 0.0


@pytest.mark.long
def test_other_robots_are_solved_for_too(monkeypatch):
    monkeypatch.setattr(ik_solver, "REFERENCE_STARTS", 1)
    figures = ik_solver.solver(points=100, targets=1, robot_name="manipulator")
    assert figures["degrees_of_freedom"] == 6 and figures["mean_error_mm_p50"] < 0.1


def test_a_solve_that_ends_elsewhere_does_not_count_as_best():
    assert ik_solver.is_best(0.02, 0.011) and ik_solver.is_best(1.009, 1.0)
    assert not ik_solver.is_best(0.03, 0.011) and not ik_solver.is_best(1.02, 1.0)


OPPONENTS = ("algorithm_2", "algorithm_2_compiled", "lm_autograd")


def limit_solves(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """End solves after so much time of the processor: ours, too, would end early where others keep it busy."""
    monkeypatch.setattr(race, "LIMIT_S", seconds)
    monkeypatch.setattr(time, "perf_counter", time.process_time)


@pytest.mark.long
def test_algorithm_2_has_the_same_targets_and_is_given_time(monkeypatch):
    limit_solves(monkeypatch, 0.1)
    figures = ik_algorithm2.algorithm2(points=49, targets=1)
    assert set(figures["reachable"]) == {"reachable_0", "reachable_0_moved"}
    assert set(figures["out_of_reach"]) == {"dem", "dem_free", "stretched_0"}
    for kind in ("reachable", "out_of_reach"):
        for case in figures[kind].values():
            ours = case["ours"]
            for name in OPPONENTS:
                ruled, patient = case[name]["same_rule"], case[name]["equal_error"]
                assert name == "lm_autograd" or ours["objective_mm2"] <= 1.05 * ruled["objective_mm2"] + 0.1
                equal = patient["mean_error_mm"] <= 1.01 * ours["mean_error_mm"]
                assert equal == (patient["termination"] == "tolerance_reached") == case[name]["reached_equal_error"]
                assert ruled["time_ratio"] == pytest.approx(ruled["solve_ms"] / ours["solve_ms"])
        speedups = figures["speedups"][kind]
        ratios = [case["algorithm_2_compiled"]["equal_error"]["time_ratio"] for case in figures[kind].values()]
        assert speedups["algorithm_2_compiled"]["equal_error"] == pytest.approx(np.prod(ratios) ** (1 / len(ratios)))
        for rule, strongest in figures["speedup_vs_strongest"][kind].items():
            assert list(strongest.values()) == [min(one[rule] for one in speedups.values())]
        medians = figures["medians"][kind]
        assert set(medians) == {"ours", *OPPONENTS}
        errors = [case["algorithm_2"]["same_rule"]["mean_error_mm"] for case in figures[kind].values()]
        assert medians["algorithm_2"]["same_rule"]["mean_error_mm_p50"] == pytest.approx(np.median(errors))
    assert figures["speedup_vs_algorithm2"] == figures["speedups"]["reachable"]["algorithm_2"]["equal_error"]


def test_no_landscape_lies_on_a_tube(monkeypatch):
    limit_solves(monkeypatch, 0.02)
    figures = ik_algorithm2.algorithm2(points=49, targets=1, robot_name="manipulator")
    assert set(figures["reachable"]) == {"reachable_0", "reachable_0_moved"}
    assert set(figures["out_of_reach"]) == {"stretched_0"}
    medians = figures["medians"]["reachable"]
    assert medians["ours"]["mean_error_mm_p50"] < medians["algorithm_2"]["same_rule"]["mean_error_mm_p50"]


def test_the_derivatives_of_automatic_differentiation_are_ours():
    """Or LM by automatic differentiation would be no opponent."""
    robot = load_robot("membrane")
    pipeline = shipped_pipeline(robot, 49)
    network, _ = load_forward_kinematics(robot)
    autograd = AutogradPipeline(extract_mlp(network), pipeline.uv, pipeline.sim_to_real, robot.patches)
    state = autograd.forward(np.linspace(1e3, 4e3, 9)[None])
    exact = pipeline.jacobian(pipeline.forward(np.linspace(1e3, 4e3, 9)[None]))
    np.testing.assert_allclose(autograd.jacobian(state), exact, atol=1e-4 * np.abs(exact).max())


def test_scaling_measures_networks_of_any_size():
    pipeline = random_pipeline(100, 34, 6)
    assert pipeline.degrees_of_freedom == 6 and pipeline.warp_coefficients(np.full(6, 1e3)).shape == (38, 3)
    moved = pipeline.points(np.full(6, 4000.0)) - pipeline.points(np.zeros(6))
    assert np.isfinite(moved).all() and np.abs(moved).max() > 1.0
    assert fastest_iteration_ms(points=100, kernels=34, degrees_of_freedom=6) > 0.0
