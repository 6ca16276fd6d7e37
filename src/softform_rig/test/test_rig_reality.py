"""Realities: read with clear errors, different from the simulator by the stated gap, live under changing pressures."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import yaml
from click.testing import CliRunner

from softform_core.bodies.membrane.simulator import RealMembrane, ThicknessField, build_membrane, thickness_factor
from softform_core.errors import SoftformError
from softform_core.plant import load_plant
from softform_core.robots import Robot, load_robot
from softform_core.simulation.simulated_body import equilibrium_points
from softform_rig import gap
from softform_rig.board_emulation import EMULATION, PressureSensors, board_sensors, make_board
from softform_rig.emulated_board import Sensors
from softform_rig.emulation import emulation_of
from softform_rig.gap import measure_gap
from softform_rig.live_body import LiveBody
from softform_rig.reality import Reality, known_realities, load_reality, true_values


@pytest.fixture(scope="module")
def robot() -> Robot:
    return load_robot("membrane")


def written(folder: Path, **changes) -> Path:
    file = folder / "mine.yaml"
    file.write_text(yaml.safe_dump({"name": "mine", "title": "Mine"} | changes))
    return file


@pytest.mark.parametrize("name", known_realities("membrane"))
def test_every_shipped_reality_reads_and_is_named_as_its_file(robot: Robot, name: str) -> None:
    assert load_reality(name, robot).name == name


def test_ideal_reality_is_the_simulator(robot: Robot) -> None:
    assert measure_gap(robot, load_reality("ideal", robot), 2).max() < 1e-6


def test_default_reality_has_the_stated_gap(robot: Robot) -> None:
    """Over 60 random actuations it is 3.3 mm on average; eight of them must already show it."""
    mean = measure_gap(robot, load_reality("default", robot), 8).mean(axis=1) * 1000.0
    assert 2.5 <= mean.mean() <= 3.5
    assert mean.min() > 1.0


@pytest.mark.long
@pytest.mark.parametrize("name", ["soft_batch", "worn", "sluggish"])
def test_other_realities_differ_too(robot: Robot, name: str) -> None:
    assert measure_gap(robot, load_reality(name, robot), 4).mean() > 1.5e-3


def test_gap_command_prints_json(robot: Robot) -> None:
    result = CliRunner().invoke(gap.main, ["ideal", "--samples", "1"])
    assert result.exit_code == 0
    assert '"gap_mean_mm": 0.0' in result.output
    assert CliRunner().invoke(gap.main, ["nowhere"]).exit_code == 1


def test_a_reality_without_viewpoints_looks_at_a_tube_from_around_it(robot: Robot, tmp_path: Path) -> None:
    arm = load_robot("compressible")
    scanner = load_reality(written(tmp_path, body={"kind": "bellows"}, scanner={"noise": 0.001}), arm).scanner
    off = np.array(scanner.viewpoints) - scanner.look_at
    assert np.linalg.norm(off, axis=1) == pytest.approx(np.full(3, 2.1 * arm.body.size))
    assert np.abs(off.sum(axis=0)).max() < 1e-9
    assert scanner.noise == 0.001
    of_sheet = load_reality(written(tmp_path, scanner={"noise": 0.001}), robot).scanner
    assert of_sheet.viewpoints == Reality(name="r", title="r", body=RealMembrane()).scanner.viewpoints


def test_a_reality_from_outside_the_repository(robot: Robot, tmp_path: Path) -> None:
    reality = load_reality(
        written(tmp_path, body={"kind": "membrane", "material": {"law": "neo_hookean", "coefficients": [1e5]}}), robot
    )
    assert robot.body.real_simulator(reality.body).membrane.material.law == "neo_hookean"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"body": {"kind": "membrane", "thicknes": {}}}, "body.thicknes"),
        ({"body": {"kind": "membrane", "thickness": {"variation": 0.9}}}, "body.thickness.variation"),
        ({"body": {"kind": "membrane", "wall_stiffness_scale": [1.0, 2.0]}}, "wall_stiffness_scale has 2 numbers"),
        ({"body": {"kind": "membrane", "column_wall_shift": [0.0]}}, "column_wall_shift"),
        ({"body": {"kind": "membrane", "column_wall_shift": [0.2, -0.2]}}, "column_walls must be 2 rising positions"),
        ({"body": {"kind": "membrane", "material": {"law": "hooke", "coefficients": [1.0]}}}, "body.material.law"),
        ({"body": {"kind": "membrane", "material": {"law": "yeoh", "coefficients": [1.0]}}}, "'yeoh' takes 3"),
        ({"body": {"kind": "membrane", "gravity": [0.0, -9.81]}}, "body.gravity"),
        ({"body": {"kind": "membrane", "clamp_stiffness": -1.0}}, "body.clamp_stiffness"),
        ({"pressure_sensors": {"gain": 0.0}}, "pressure_sensors.gain"),
        ({"pressure_sensors": {"offset": [1.0] * 10}}, "pressure_sensors.offset has 10 numbers"),
        ({"hysteresis": [1.0, 2.0]}, "hysteresis has 2 numbers"),
        ({"presure_sensors": {}}, "presure_sensors"),
        ({"scanner": {"viewpoints": []}}, "scanner.viewpoints"),
        ({"scanner": {"noise": ".nan"}}, "scanner.noise"),
        ({"name": ""}, "name"),
    ],
)
def test_a_wrong_field_is_named(robot: Robot, tmp_path: Path, changes: dict, field: str) -> None:
    with pytest.raises(SoftformError) as error:
        load_reality(written(tmp_path, **changes), robot)
    assert field in str(error.value)


def test_broken_yaml_and_missing_file(robot: Robot, tmp_path: Path) -> None:
    file = tmp_path / "broken.yaml"
    file.write_text("name: [")
    with pytest.raises(SoftformError, match="not valid YAML"):
        load_reality(file, robot)
    file.write_text("name: broken\ntitle: a\ntitle: b")
    with pytest.raises(SoftformError, match="'title' is given twice in line 2"):
        load_reality(file, robot)
    file.write_text("")
    with pytest.raises(SoftformError, match="does not describe a reality"):
        load_reality(file, robot)
    with pytest.raises(SoftformError, match="no description 'atlantis'"):
        load_reality("atlantis", robot)


def test_thickness_field_is_smooth_seeded_and_the_same_on_every_mesh() -> None:
    field = ThicknessField(scale=0.9, variation=0.1, correlation_length=0.08, seed=4)
    x, y = np.meshgrid(np.linspace(-2.0, 2.0, 160), np.linspace(-2.0, 2.0, 160))
    factor = thickness_factor(field, x, y)
    assert factor.mean() == pytest.approx(0.9, abs=0.02)
    assert factor.std() == pytest.approx(0.09, rel=0.15)
    near = thickness_factor(field, x + 0.004, y)
    assert np.abs(near - factor).max() < 0.05
    assert np.array_equal(thickness_factor(field, x[::7], y[::7]), factor[::7])
    assert np.abs(thickness_factor(field.model_copy(update={"seed": 5}), x, y) - factor).max() > 0.1


def test_sensor_errors_reach_the_right_channels(robot: Robot) -> None:
    offsets = [100.0 * index for index in range(9)]
    reality = Reality(name="r", title="r", body=RealMembrane(), pressure_sensors={"gain": 1.05, "offset": offsets})
    sensors = board_sensors(robot, robot.devices[0], reality.errors_of(EMULATION), 0.0, 0)
    assert sensors.offset[robot.devices[0].channels] == pytest.approx([0.1 * index for index in range(9)])
    assert sensors.gain[9] == 1.0
    effective = true_values(reality, robot, np.full(9, 2000.0))
    assert sensors.gain[:9] * effective + 1000.0 * sensors.offset[:9] == pytest.approx([2000.0] * 9)


def test_devices_are_emulated_by_their_kind(robot: Robot) -> None:
    reality = Reality(
        name="off", title="Off", body=load_reality("ideal", robot).body, pressure_sensors=PressureSensors(gain=2.0)
    )
    (board,) = robot.devices
    other = robot.model_copy(update={"devices": [board.model_copy(update={"kind": "hydraulic"})]})
    with pytest.raises(SoftformError, match=r"no device of kind 'hydraulic'.*dead_man, dynamixel, pneumatic_board"):
        emulation_of(other, other.devices[0])
    with pytest.raises(SoftformError, match="no board 'openpneu_c'.*openpneu_a, openpneu_b, binary"):
        make_board("openpneu_c", load_plant(), Sensors())
    commanded = np.full((2, 9), 2000.0)
    np.testing.assert_array_equal(true_values(reality, robot, commanded), commanded / 2.0)
    np.testing.assert_array_equal(true_values(reality, other, commanded), commanded)


def test_live_body_does_not_depend_on_its_path(robot: Robot) -> None:
    reality = load_reality("default", robot)
    live, pressures = LiveBody(robot, reality), np.linspace(500.0, 4500.0, 9)
    for step in (0.3, 1.0, 0.1, 0.7, 1.0):
        shape = live.shape(step * pressures)
    assert live.failure is None
    direct = equilibrium_points(robot.body.real_simulator(reality.body), pressures[None])[0]
    assert np.abs(shape - direct).max() < 1e-6


def test_live_body_solves_only_when_pressures_change(robot: Robot) -> None:
    live = LiveBody(robot, load_reality("ideal", robot))
    live.shape(np.full(9, 1000.0))
    live.shape(np.full(9, 1001.0))
    assert live.solves == 1
    assert np.array_equal(live.shape(np.zeros(9)), build_membrane(robot.body).rest_vertices)


def test_a_failed_solve_keeps_the_last_shape_and_says_why(robot: Robot) -> None:
    gent = {"law": "gent", "coefficients": [8e4, 1e-4]}
    stiff = Reality(name="stiff", title="", body=RealMembrane(material=gent, cells=12))
    live = LiveBody(robot, stiff)
    good = live.shape(np.full(9, 1.0)).copy()
    shape = live.shape(np.full(9, 5000.0))
    assert live.failure is not None
    assert np.array_equal(shape, good)


def test_pressures_far_outside_the_range_keep_the_last_shape(robot: Robot) -> None:
    live = LiveBody(robot, load_reality("ideal", robot))
    good = live.shape(np.full(9, 1000.0)).copy()
    assert np.array_equal(live.shape(np.full(9, 3e4)), good)
    assert "far outside" in (live.failure or "")
    live.shape(np.full(9, 1200.0))
    assert live.failure is None


def test_hysteresis_makes_the_shape_depend_on_the_direction(robot: Robot) -> None:
    live = LiveBody(robot, Reality(name="h", title="", body=RealMembrane(), hysteresis=200.0))
    up = live.shape(np.full(9, 2000.0)).copy()
    live.shape(np.full(9, 4000.0))
    down = live.shape(np.full(9, 2000.0))
    assert (down[:, 2] - up[:, 2]).max() > 1e-3


def test_between_solves_the_shape_is_right_to_first_order(robot: Robot) -> None:
    reality = load_reality("sluggish", robot)
    live, solved = LiveBody(robot, reality), LiveBody(robot, reality)
    pressures = np.linspace(300.0, 3000.0, 9)
    for step, count, within in (
        ([0.0] * 9, 1, 1e-5),
        ([45.0] * 9, 1, 1e-5),
        ([-300.0, 40.0] * 4 + [0.0], 1, 1e-5),
        ([70.0] * 9, 1, 3e-5),
        ([500.0] * 9, 2, 1e-5),
    ):
        given = live.shape_between_solves(pressures + np.array(step))
        assert live.solves == count
        expected = solved.shape(pressures + np.array(step))
        assert np.abs(given - expected).max() < within
        assert np.abs(expected - solved.rest).max() > 0.02


def test_a_body_that_moves_far_under_small_changes_is_solved_again() -> None:
    """1.8 % of the range moves the long arm by more than three millimetres."""
    robot = load_robot("compressible")
    reality = load_reality("ideal", robot)
    live, solved = LiveBody(robot, reality), LiveBody(robot, reality)
    values = robot.actuator_min + np.linspace(0.2, 0.6, 9) * (robot.actuator_max - robot.actuator_min)
    for share, count in ((0.0, 1), (0.0005, 1), (0.018, 2)):
        changed = values + share * (robot.actuator_max - robot.actuator_min)
        given = live.shape_between_solves(changed)
        assert live.solves == count
        assert np.abs(given - solved.shape(changed)).max() < 1e-5


def test_a_flat_sheet_is_solved_again_at_every_look(robot: Robot) -> None:
    live = LiveBody(robot, load_reality("ideal", robot))
    assert np.array_equal(live.shape_between_solves(np.zeros(9)), live.rest)
    raised = live.shape_between_solves(np.full(9, 50.0))
    assert live.solves == 2
    assert np.abs(raised - LiveBody(robot, load_reality("ideal", robot)).shape(np.full(9, 50.0))).max() < 1e-6


def resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


@pytest.mark.long
def test_memory_stays_when_two_threads_look_in_turn(robot: Robot) -> None:
    """As the scanner and motion capture do: each lets go of what the other has solved."""
    live, random = LiveBody(robot, load_reality("default", robot)), np.random.default_rng(0)

    def solve_in_turn(threads: list[ThreadPoolExecutor], solves: int) -> None:
        for each in range(solves):
            threads[each % 2].submit(live.shape, random.uniform(500.0, 4000.0, 9)).result()

    with ThreadPoolExecutor(1) as scanner, ThreadPoolExecutor(1) as motion_capture:
        solve_in_turn([scanner, motion_capture], 10)
        before, solves = resident_mb(), live.solves
        solve_in_turn([scanner, motion_capture], 40)
    assert live.solves == solves + 40
    assert resident_mb() - before < 30.0, "a factor that is not freed takes 3 MB"
