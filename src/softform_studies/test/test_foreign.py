"""The real tentacle: its rod against closed forms and differences, and that nothing leaks from what is judged."""

from dataclasses import replace
from importlib.resources import files

import numpy as np
import pytest

from softform_core.errors import SoftformError
from softform_core.simulation.newton import find_equilibria
from softform_core.simulation.sensitivity import equilibrium_sensitivities
from softform_studies.foreign import bench
from softform_studies.foreign.identification import CANDIDATES, RIGID, Process, identify
from softform_studies.foreign.tentacle_poses import read_poses
from softform_studies.foreign.tentacle_rod import MODES, PRIORS, Tentacle

MEANS = {name: mean for name, (mean, _) in PRIORS.items()}
TWO = ["log_modulus", "log_tension"]


@pytest.fixture(scope="module")
def poses():
    return read_poses()


def test_the_poses_are_those_of_the_table(poses):
    assert len(poses) == 22 and poses.pulls_both.sum() == 8 and poses.is_later.sum() == 14
    assert poses.tensions.max() == pytest.approx(0.25 / 0.0325)


@pytest.mark.parametrize("spoilt", ["", "file,session\na,A\n", "broken \xff"])
def test_a_table_that_is_none_is_told(tmp_path, spoilt):
    path = tmp_path / "poses.csv"
    path.write_bytes(spoilt.encode("latin-1"))
    with pytest.raises(SoftformError):
        read_poses(path)


def test_a_marker_that_is_no_number_is_told(tmp_path):
    source = (files("softform_studies.foreign") / "tentacle" / "poses.csv").read_text(encoding="utf-8")
    path = tmp_path / "poses.csv"
    path.write_text(source.replace("0.0534472", "nan"), encoding="utf-8")
    with pytest.raises(SoftformError, match="finite"):
        read_poses(path)


def test_the_rods_derivatives_are_those_of_its_energy():
    rod = Tentacle.of(MEANS | {"drag": 0.3, "natural_x": 0.4, "tendon_taper": 0.2}).rod
    draw = np.random.default_rng(0)
    x = 0.03 * draw.standard_normal((1, len(rod.rest)))
    loads = np.array([[3.0, 5.0, 0.2, -0.1, 0.3, 0.1]])
    gradient, hessian = rod.derivatives(x, loads)
    along, step = draw.standard_normal(x.shape), 1e-6
    higher, lower = (rod.energy(x + sign * step * along, loads) for sign in (1.0, -1.0))
    assert (higher - lower)[0] / (2.0 * step) == pytest.approx(np.sum(gradient * along), rel=1e-6)
    changes = [rod.derivatives(x + sign * step * along, loads)[0] for sign in (1.0, -1.0)]
    np.testing.assert_allclose((changes[0] - changes[1]) / (2.0 * step), hessian.times(along), rtol=1e-5, atol=1e-7)


def test_sensitivities_are_differences_of_equilibria():
    rod = Tentacle.of(MEANS).rod
    loads = np.array([[3.0, 1.0, 0.2, -0.1, 0.3, 0.1]])
    bends = find_equilibria(rod, loads).unknowns
    found = equilibrium_sensitivities(rod, bends, loads)
    for column in range(loads.shape[1]):
        step = 1e-4 * np.eye(loads.shape[1])[column]
        both = [find_equilibria(rod, loads + sign * step, bends).unknowns for sign in (1.0, -1.0)]
        np.testing.assert_allclose((both[0] - both[1]) / 2e-4, found[:, :, column], rtol=1e-4, atol=1e-7)


def test_a_pose_is_mirrored_if_its_tensions_are_swapped(poses):
    tentacle = Tentacle.of(MEANS)
    tensions = np.array([[2.0, 5.0], [5.0, 2.0]])
    pair = poses.part(np.array([0, 1]))
    loads = np.hstack([tensions, np.zeros((2, 4))])
    tips = tentacle.markers(pair, find_equilibria(tentacle.rod, loads).unknowns)[:, -1]
    np.testing.assert_allclose(tips[0] * [1.0, -1.0, 1.0], tips[1], atol=1e-7)
    assert abs(tips[0, 1]) > 0.01


def test_what_is_left_out_is_not_looked_at(poses):
    """Neither its markers nor those of other poses that are not given change a prediction."""
    each = np.arange(len(poses))
    known, asked = poses.part(each != 3), poses.part(each == 3)
    asked.markers[:] = np.nan
    for predict in (bench.MODELS["cubic"], bench.MODELS["rod_two_parameters"]):
        assert np.isfinite(predict(known, asked)).all()
    process = identify(known, list(PRIORS), [Process()])
    assert np.isfinite(process.predict(asked)).all()


def test_a_tentacle_is_identified_from_its_own_poses(poses):
    """Poses of a tentacle whose parameters are known, without noise: they are found again."""
    true = MEANS | {"log_modulus": float(np.log(400e3)), "log_tension": 0.1}
    tentacle = Tentacle.of(true)
    loads = tentacle.loads(poses, np.zeros((len(poses), len(MODES))))
    markers = tentacle.markers(poses, find_equilibria(tentacle.rod, loads).unknowns)
    poses = replace(poses, markers=markers)
    found = identify(poses, TWO, [RIGID]).tentacle.values
    assert found["log_modulus"] == pytest.approx(true["log_modulus"], abs=2e-3)
    assert found["log_tension"] == pytest.approx(true["log_tension"], abs=2e-3)


def test_covariances_are_those_of_a_process(poses):
    for process in CANDIDATES[::29]:
        within = process.covariance_within(poses)
        np.testing.assert_allclose(within, within.T)
        assert np.linalg.eigvalsh(within).min() > 0.0


@pytest.mark.long
def test_two_tensions_are_foretold_from_one_within_the_bar(poses):
    known, asked = poses.part(~poses.pulls_both), poses.part(poses.pulls_both)
    tips = bench.MODELS["rod_and_process"](known, asked)
    rod = bench.MODELS["rod_two_parameters"](known, asked)
    truth = asked.markers[:, -1]
    ours, theirs = (1e3 * np.linalg.norm(one - truth, axis=1).mean() for one in (tips, rod))
    assert ours <= 12.0 < theirs


def test_the_split_of_the_authors_network_is_the_two_poses_that_it_had_not_seen(poses):
    asked_of: list[tuple[str, ...]] = []

    def predict(known, asked):
        asked_of.append(tuple(sorted(asked.names)))
        assert not set(known.names) & set(asked.names)
        off = np.zeros((len(asked), 3))
        off[:, 0] = 0.004 if len(asked) == 2 else 0.001
        return asked.markers[:, -1] + off

    figures = bench.judged(poses, predict)
    assert asked_of[-1] == ("m12_u001002.csv", "m1_u015.csv") and len(asked_of) == len(poses) + 2
    assert figures["authors_split_tip_mm"] == 4.0 and figures["leave_one_out_tip_mm"] == 1.0
