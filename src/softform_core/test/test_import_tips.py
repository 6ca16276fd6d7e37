"""Tables of tips: what is imported, what is rejected, what `train fk` makes of it."""

import shutil
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from equilibria import simulate_tips

from softform_core.bodies.rod.equilibrium import RodProblem
from softform_core.bodies.rod.model import build_rod
from softform_core.cli.main import main
from softform_core.errors import SoftformError
from softform_core.forward.tip_model import load_tip_model
from softform_core.halton import halton_actuations
from softform_core.importing.checks import far_off
from softform_core.networks.store import TIP_KINEMATICS
from softform_core.paths import models_of
from softform_core.robots import load_robot
from softform_core.simulation.store import SampleStatus, open_simulation
from softform_core.stores.past import REMEMBERED
from softform_core.training.tip_samples import read_tip_samples
from softform_core.training.tips import train_kinematics

DESCRIPTION = """
name: foreign
title: Tips from elsewhere
source: a table
body: {kind: imported, inputs_count: 3, width: 0.042, length: 0.042, height: 0.116}
actuators: {minimum: 0.0, maximum: 60000.0, slew_rate: 20000.0}
devices: [{name: board, channels: [0, 1, 2]}]
frames: {tip: {segments: 2, forward_kinematics: [20, 20], jacobian: [20, 20]}}
"""
COLUMNS = ["--actuation", "p1,p2,p3", "--tip", "x,y,z", "--unit", "mm", "--actuation-unit", "kPa"]


@pytest.fixture(scope="module")
def samples():
    """400 actuations, Pa, and tips, m, of the three-chamber actuator."""
    robot = load_robot("three_chamber")
    actuations = halton_actuations(robot.actuation_min, robot.actuation_max, 400, 0)
    return actuations, simulate_tips(RodProblem(build_rod(robot.body)), robot, actuations)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "foreign.yaml").write_text(DESCRIPTION, encoding="utf-8")
    return tmp_path


def write(path, actuations, tips):
    rows = np.concatenate([actuations / 1e3, tips * 1e3], axis=1)
    np.savetxt(path, rows, delimiter=",", header="p1,p2,p3,x,y,z", comments="", fmt="%.12g")
    return path


def bring(folder, table, *options):
    arguments = ["import", "tips", str(table), "--robot", str(folder / "foreign.yaml"), *COLUMNS]
    return CliRunner().invoke(main, [*arguments, "--output", str(folder / "tips.zarr"), *options])


def test_a_table_becomes_a_store_and_a_model_whose_jacobian_is_that_of_n_fk(folder, samples, monkeypatch):
    for steps in ("forward_kinematics_steps", "jacobian_steps"):
        monkeypatch.setitem(train_kinematics.__kwdefaults__, steps, 600)
    actuations, tips = samples
    table = write(folder / "fem.csv", np.concatenate([actuations, actuations[:3]]), np.concatenate([tips, tips[:3]]))
    result = bring(folder, table)
    assert result.exit_code == 0, result.output
    assert "400 tips; 3 rows that came twice" in result.output
    robot = load_robot(folder / "foreign.yaml")
    store = open_simulation(folder / "tips.zarr", robot)
    assert store.outputs == ("tip",) and (store.status == SampleStatus.CONVERGED).all()
    np.testing.assert_allclose(store.converged()[1], tips, atol=1e-9)
    assert store.attributes["source"] == "fem.csv" and len(store.attributes["source_sha256"]) == 64

    monkeypatch.setenv("SOFTFORM_CONFIG_PATH", str(folder))
    asked = ["train", "fk", "--robot", str(folder / "foreign.yaml"), "--data", str(store.path)]
    trained = CliRunner().invoke(main, asked)
    assert trained.exit_code == 0, trained.output
    assert f"softform launch robot:={folder / 'foreign.yaml'}, then ./softform follow" in trained.output
    learned = models_of(robot.name)
    model = load_tip_model(robot, learned)
    here, step = actuations[7], 100.0
    differences = [(model.tip(here + change) - model.tip(here - change)) / (2 * step) for change in step * np.eye(3)]
    expected = np.stack(differences, axis=1)
    np.testing.assert_allclose(model.tip_and_jacobian(here)[1], expected, atol=0.05 * np.abs(expected).max())
    _, card = TIP_KINEMATICS.load(learned, robot)
    assert card.data.segments is None and "Jacobians: the derivative of N_fk" in card.to_markdown()
    assert card.forward_kinematics.test_mean_percent < 0.5


def test_the_same_command_again_goes_on_and_other_data_are_rejected(folder, samples):
    actuations, tips = samples
    write(folder / "fem.csv", actuations[:60], tips[:60])
    assert bring(folder, folder / "fem.csv").exit_code == 0
    store = open_simulation(folder / "tips.zarr", writable=True)
    store._array("status")[20:] = SampleStatus.PENDING  # as a kill leaves it
    assert bring(folder, folder / "fem.csv").exit_code == 0
    assert not len(open_simulation(folder / "tips.zarr").pending)
    write(folder / "fem.csv", actuations[:61], tips[:61])
    assert "holds other data than this import" in bring(folder, folder / "fem.csv").output


def _contradiction(actuations, tips):
    actuations[5] = actuations[2]


def _unmeasured(actuations, tips):
    tips[:21, 1] = np.nan


def _at_rest(actuations, tips):
    tips[:] = tips[0]


def _outside(actuations, tips):
    actuations[4, 1] = 61e3


def _constant(actuations, tips):
    actuations[:, 2] = 0.0


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (_unmeasured, "has no tip, or one and the same under other actuations, in 21 lines (2, 3, 4, 5, 6, …)"),
        (_at_rest, "one and the same under other actuations, in 40 lines"),
        (_contradiction, "mm apart: line 7 against an earlier one (line 4). Say --in-order if rows follow"),
        (_outside, "c2 is 61000 Pa in line 6, outside 0 … 60000 Pa"),
        (_constant, "each must change"),
    ],
)
def test_rows_that_cannot_be_are_named(folder, samples, spoil, says):
    actuations, tips = (array[:40].copy() for array in samples)
    spoil(actuations, tips)
    result = bring(folder, write(folder / "fem.csv", actuations, tips))
    assert result.exit_code == 2 and says in result.output
    assert not (folder / "tips.zarr").exists()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--unit", "m"], "Check --unit"),
        (["--actuation-unit", "Pa"], "Check --actuation-unit"),
        (["--actuation-unit", "mm"], "the robot takes Pa"),
        (["--tip", "x,y,height"], "has no column 'height'. Its columns are p1, p2, p3, x, y, z"),
        (["--tip", "x,x,z"], "--actuation and --tip name column 'x' twice"),
        (["--tip", "p1,y,z"], "--actuation and --tip name column 'p1' twice"),
        (["--tip", "x,y"], "--tip names 2 columns, 'foreign' has 3"),
    ],
)
def test_wrong_units_and_columns_are_named(folder, samples, options, says):
    result = bring(folder, write(folder / "fem.csv", samples[0][:40], samples[1][:40]), *options)
    assert result.exit_code == 2 and says in result.output


@pytest.mark.parametrize("column", [0, 3])
def test_a_unit_that_the_header_contradicts_is_refused(folder, samples, column):
    path = write(folder / "fem.csv", samples[0][:40], samples[1][:40])
    names, units = ["p1", "p2", "p3", "x", "y", "z"], ["kPa"] * 3 + ["mm"] * 3
    units[column] = {"kPa": "psi", "mm": "cm"}[units[column]]
    path.write_text(path.read_text().replace("\n", f"\n{','.join(units)}\n", 1))
    result = bring(folder, path)
    assert result.exit_code == 2
    assert f"Column '{names[column]}'" in result.output and f"is in {units[column]} by its header" in result.output


def store_of(folder):
    return open_simulation(folder / "tips.zarr", load_robot(folder / "foreign.yaml"))


@pytest.mark.parametrize(
    "mark",
    [np.zeros(3), np.full(3, np.nan), np.full(3, -9.999), "the last that was seen"],
    ids=["0", "nan", "-9999", "held"],
)
def test_what_stands_for_no_tip_is_left_out(folder, samples, mark):
    actuations, tips = (array.copy() for array in samples)
    tips[::20] = tips[7] if isinstance(mark, str) else mark
    result = bring(folder, write(folder / "fem.csv", actuations, tips))
    # Of tips that are held nobody can tell which was seen.
    told = "21 lines (2, 9, 22, 42, 62, …)" if isinstance(mark, str) else "20 lines (2, 22, 42, 62, 82, …)"
    assert f"left out: {told}" in result.output, result.output
    kept = np.delete(np.arange(400), [*np.arange(0, 400, 20), *([7] if isinstance(mark, str) else [])])
    np.testing.assert_allclose(store_of(folder).converged()[1], tips[kept], atol=1e-12)


def test_one_zero_is_no_tip_and_coarse_digits_and_dead_zones_are_tips(folder, samples):
    actuations, tips = (array.copy() for array in samples)
    tips[5] = 0.0
    assert "left out: line 7\n" in bring(folder, write(folder / "fem.csv", actuations, tips)).output
    shutil.rmtree(folder / "tips.zarr")
    tips = 5e-3 * np.round(samples[1] / 5e-3)
    assert len(np.unique(tips, axis=0)) < 390
    tips[np.linalg.norm(actuations, axis=1) < 2e4] = tips[0]
    assert "left out: " not in bring(folder, write(folder / "fem.csv", actuations, tips)).output
    assert len(store_of(folder)) == 400


@pytest.mark.parametrize(
    "names", ["U1,U2,U3", "x,y,z", "disp_x,disp_y,disp_z", "U:U1,U:U2,U:U3", "u (mm),v (mm),w (mm)"]
)
def test_displacements_are_added_to_the_place_at_rest_or_refused(folder, samples, names):
    actuations, tips = samples[0].copy(), samples[1] - [0, 0, 0.116]
    actuations[0] = tips[0] = 0.0
    table = write(folder / "fem.csv", actuations, tips)
    table.write_text(table.read_text().replace("x,y,z", names, 1))
    refused = bring(folder, table, "--tip", names)
    assert refused.exit_code == 2 and "displacements" in refused.output and "by --displaced-from" in refused.output
    result = bring(folder, table, "--tip", names, "--displaced-from", "0, 0, 116")
    assert result.exit_code == 0, result.output
    np.testing.assert_allclose(store_of(folder).converged()[1], tips + [0, 0, 0.116], atol=1e-12)
    wrong = bring(folder, table, "--tip", names, "--displaced-from", "0,116")
    assert "--displaced-from names 2 columns" in wrong.output
    for given in ("nan,0,116", "0,0,x"):
        assert f"'{given}' are no numbers" in bring(folder, table, "--tip", names, "--displaced-from", given).output


@pytest.mark.parametrize("repeats", ["mean", "first", "keep"])
def test_of_repeated_actuations_the_spread_is_told(folder, samples, repeats):
    actuations, tips = (array[:60] for array in samples)
    again = tips[:20] + np.array([3e-3, 0.0, -4e-3])
    table = write(folder / "fem.csv", np.concatenate([actuations, actuations[:20], actuations[:5]]),
                  np.concatenate([tips, again, tips[:5]]))  # fmt: skip
    refused = bring(folder, table)
    assert (
        "different tips, up to 5 mm apart: 20 lines (62, 63," in refused.output and "--repeats mean" in refused.output
    )
    result = bring(folder, table, "--repeats", repeats)
    assert (
        "20 actuations came again with another tip, 3.54 mm" in result.output and "5 mm apart at most" in result.output
    )
    found = store_of(folder).converged()[1]
    assert len(found) == (80 if repeats == "keep" else 60)
    assert store_of(folder).attributes["repeats"]["actuations"] == 20
    middle = tips[5:20] + np.array([1.5e-3, 0.0, -2e-3])
    np.testing.assert_allclose(found[5:20], middle if repeats == "mean" else tips[5:20], atol=1e-12)
    shutil.rmtree(folder / "tips.zarr")
    plain = bring(folder, write(folder / "fem.csv", actuations, tips), "--repeats", repeats)
    assert "--repeats had nothing to do" in plain.output


def test_rows_in_order_are_each_kept_with_what_was_before_them(folder, samples):
    actuations, tips = samples[0][[0, 1, 2, 1, 3, 1] * 10], samples[1][[0, 1, 2, 1, 3, 1] * 10]
    tips = tips + 1e-4 * np.random.default_rng(0).standard_normal(tips.shape)
    tips[2] = np.nan  # one that was gone through without being seen
    table = write(folder / "fem.csv", actuations, tips)
    assert "--repeats" in bring(folder, table, "--in-order", "--repeats", "mean").output
    assert bring(folder, table, "--in-order").exit_code == 0
    store, seen = store_of(folder), np.delete(np.arange(60), 2)
    np.testing.assert_allclose(store.actuation, actuations[seen], rtol=1e-9)
    np.testing.assert_allclose(store.converged()[1], tips[seen], atol=1e-12)
    padded = np.concatenate([np.full((REMEMBERED, 3), np.nan), actuations])
    expected = np.stack([padded[row : row + REMEMBERED] for row in seen])
    np.testing.assert_allclose(store.past, expected, rtol=1e-9)
    assert "different tips" in bring(folder, table).output and "--in-order" in bring(folder, table).output


def test_captured_tips_become_what_s2r_learns_from_each_row_a_measurement_with_its_past(folder, samples):
    actuations, tips = samples[0][[0, 1, 2, 1, 3, 1] * 10], samples[1][[0, 1, 2, 1, 3, 1] * 10]
    tips = tips + 1e-4 * np.random.default_rng(0).standard_normal(tips.shape)
    tips[2] = np.nan  # one that was gone through without being seen
    table, robot = write(folder / "mocap.csv", actuations, tips), load_robot(folder / "foreign.yaml")
    assert "nothing to choose" in bring(folder, table, "--captured", "--repeats", "mean").output
    brought = bring(folder, table, "--captured", "--in-order")
    assert brought.exit_code == 0 and "59 captured tips, with their past" in brought.output
    assert "left out: line 4" in brought.output and "train s2r" in brought.output
    found, provenance = read_tip_samples(folder / "tips.zarr", robot)
    seen = np.delete(np.arange(60), 2)
    np.testing.assert_allclose(found.actuation, actuations[seen], rtol=1e-9)
    np.testing.assert_allclose(found.tips, tips[seen], atol=1e-12)
    padded = np.concatenate([np.full((REMEMBERED, 3), np.nan), actuations])
    np.testing.assert_allclose(found.past, np.stack([padded[row : row + REMEMBERED] for row in seen]), rtol=1e-9)
    assert provenance["source"].startswith("mocap.csv")
    again = bring(folder, table, "--captured")
    assert again.exit_code != 0 and "is there already" in again.output  # what was captured is never written over
    shutil.rmtree(folder / "tips.zarr")
    assert "without their past" in bring(folder, table, "--captured").output
    assert read_tip_samples(folder / "tips.zarr", robot)[0].past is None


@pytest.mark.parametrize("captured", [False, True])
def test_ranges_are_told_and_tips_far_from_those_nearby(folder, samples, captured):
    actuations, tips = samples[0][:100], samples[1][:100].copy()
    options = ["--captured"] if captured else []
    result = bring(folder, write(folder / "good.csv", actuations, tips), *options)
    assert f"c1 {actuations[:, 0].min() / 1e3:.4g} … " in result.output
    assert f"tip z {1e3 * tips[:, 2].min():.4g} … " in result.output
    assert "far from those" not in result.output
    shutil.rmtree(folder / "tips.zarr")
    tips[[11, 40]] /= 1e3  # metres among millimetres
    result = bring(folder, write(folder / "mixed.csv", actuations, tips), *options)
    assert "far from those under actuations nearby: 2 lines (13, 42)" in result.output


def test_repeats_are_no_neighbours_of_each_other(samples):
    actuations, tips = samples[0][:60], samples[1][:60]
    again = np.repeat(np.arange(60), np.where(np.arange(60) < 30, 6, 1))
    noise = 1e-5 * np.random.default_rng(0).standard_normal((len(again), 3))
    assert not len(far_off(load_robot("three_chamber"), actuations[again], tips[again] + noise))


def test_columns_with_commas_in_their_names_are_named_in_quotes(folder, samples):
    table = write(folder / "fem.csv", samples[0][:40], samples[1][:40])
    names = [f'"{name}, mm"' for name in "xyz"]
    table.write_text(table.read_text().replace("x,y,z", ",".join(names), 1))
    refused = bring(folder, table)
    assert f"Its columns are p1, p2, p3, {', '.join(names)}." in refused.output
    assert bring(folder, table, "--tip", ", ".join(names)).exit_code == 0


def test_arrays_are_read(folder, samples):
    np.savez(folder / "fem.npz", p=samples[0][:40] / 1e3, **dict(zip("xyz", samples[1][:40].T * 1e3, strict=True)))
    assert bring(folder, folder / "fem.npz").exit_code == 0


def test_parquet_is_read_by_pyarrow(folder, samples):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = dict(zip(["p1", "p2", "p3"], samples[0][:40].T / 1e3, strict=True))
    columns |= dict(zip("xyz", samples[1][:40].T * 1e3, strict=True))
    parquet.write_table(arrow.table(columns), folder / "fem.parquet")
    assert bring(folder, folder / "fem.parquet").exit_code == 0
    store = open_simulation(folder / "tips.zarr", load_robot(folder / "foreign.yaml"))
    np.testing.assert_allclose(store.converged()[1], samples[1][:40], atol=1e-12)

    holes = {**columns, "z": [None, *columns["z"][1:]]}
    parquet.write_table(arrow.table(holes), folder / "holes.parquet")
    shutil.rmtree(folder / "tips.zarr")
    assert "left out: row 0" in bring(folder, folder / "holes.parquet").output
    (folder / "damaged.parquet").write_bytes(b"PAR1 and nothing more")
    assert "is damaged or no such table" in bring(folder, folder / "damaged.parquet").output


def test_without_pyarrow_it_is_named(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)  # as where it is not installed
    (folder / "fem.parquet").write_bytes(b"PAR1")
    result = bring(folder, folder / "fem.parquet")
    assert result.exit_code == 2 and "-m pip install pyarrow" in result.output


def test_what_needs_a_simulator_says_that_the_body_is_imported(folder):
    result = CliRunner().invoke(main, ["simulate", "--robot", str(folder / "foreign.yaml")])
    assert result.exit_code == 2 and "The body is imported" in result.output and "softform import" in result.output
    robot = load_robot(folder / "foreign.yaml")
    for ask in (robot.body.simulator, robot.body.sampled, lambda: robot.body.drawn_reality(np.random.default_rng(0))):
        with pytest.raises(SoftformError, match="imported"):
            ask()


def test_too_few_rows_are_rejected(samples):
    with pytest.raises(SoftformError, match="too few"):
        train_kinematics(load_robot("three_chamber"), samples[0][:9], samples[1][:9], None, 0, progress=False)
