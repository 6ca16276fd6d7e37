"""Laws by which real bodies remember: loops, what they dissipate, where creep ends; and sensors that remember."""

import numpy as np
import pytest

from softform_core.arrays import Array
from softform_core.bodies.realities import Spread
from softform_core.robots import load_robot
from softform_rig.board_emulation import EMULATION, PressureSensors, board_sensors
from softform_rig.live_body import HELD_S
from softform_rig.material_memory import BoucWen, Creep, Hysteresis, HysteresisLaw, MaterialMemory, Plays
from softform_rig.reality import Reality, SettledDevices, load_reality

PLAYS = Plays(widths=[20.0, 50.0, 120.0], weights=[0.3, 0.3, 0.2])
BOUC_WEN = BoucWen(lag=60.0, steepness=0.7, exponent=1.5, beta=0.6, asymmetry=0.15)
LAWS: dict[str, HysteresisLaw] = {"play": 60.0, "plays": PLAYS, "bouc_wen": BOUC_WEN}


def started(law: HysteresisLaw) -> Hysteresis:
    memory = MaterialMemory(law, [], 1)
    return memory._hysteresis


def along(law: HysteresisLaw, corners: list[float], steps: int = 200) -> tuple[Array, Array]:
    """Values and what is felt along a way through corners, from rest."""
    ways = [np.linspace(*ends, steps, endpoint=False)[1:] for ends in zip([0.0, *corners], corners, strict=False)]
    values = np.concatenate([*(np.append(way, end) for way, end in zip(ways, corners, strict=True))])
    hysteresis = started(law)
    return values, np.array([hysteresis.follow(np.array([value]))[0] for value in values])


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_loops_dissipate_and_what_is_felt_never_runs_backwards(law: HysteresisLaw) -> None:
    """The work of the actuator on what it moves, the integral of its value over what is felt, around loops."""
    for amplitude in (30.0, 150.0, 1000.0):
        values, felt = along(law, [amplitude, -amplitude, amplitude, -amplitude, amplitude])
        assert ((np.diff(values) * np.diff(felt)) >= -1e-9).all()
        last = slice(-400, None)
        work = float(0.5 * (values[last][1:] + values[last][:-1]) @ np.diff(felt[last]))
        assert work >= -1e-6, amplitude
        if amplitude > 100.0:
            assert work > 50.0 * amplitude


@pytest.mark.parametrize("law", [60.0, PLAYS], ids=["play", "plays"])
def test_plays_close_minor_loops_and_wipe_them_out(law: HysteresisLaw) -> None:
    corners = (1000.0, 900.0, 960.0, 900.0, 1200.0)
    looped, straight = started(law), started(law)
    felt = [float(looped.follow(np.array([value]))[0]) for value in corners]
    assert felt[3] == pytest.approx(felt[1])
    assert felt[4] == pytest.approx(float(straight.follow(np.array([1200.0]))[0]))


def test_bouc_and_wen_do_not_close_minor_loops_and_are_not_alike_on_both_ways() -> None:
    law = started(BOUC_WEN)
    law.follow(np.array([1000.0]))
    turned = law.follow(np.array([900.0])).copy()
    law.follow(np.array([960.0]))
    assert np.abs(law.follow(np.array([900.0])) - turned) > 0.1
    up = 2000.0 - law.follow(np.array([2000.0]))
    down = law.follow(np.array([-2000.0])) + 2000.0
    assert up == pytest.approx(60.0 * (1.0 / 1.3) ** (1.0 / 1.5), rel=1e-3)
    assert down == pytest.approx(60.0 * (1.0 / 0.7) ** (1.0 / 1.5), rel=1e-3)


def test_bouc_and_wens_law_of_exponent_one_is_an_exponential() -> None:
    """On the way from rest z = 1 - e^(-x / width), with beta and without asymmetry."""
    for way in (10.0, 50.0, 300.0):
        law = started(BoucWen(lag=60.0, steepness=0.6))
        expected = way - 60.0 * (1.0 - np.exp(-way / 100.0))
        assert law.follow(np.array([way])) == pytest.approx(expected, rel=1e-4)


def test_widths_differ_by_actuator() -> None:
    wide = MaterialMemory(Plays(widths=[50.0], weights=[1.0], scale=[1.0, 2.0, 0.5]), [], 3)
    np.testing.assert_allclose(wide.feel(np.full(3, 1000.0), 1.0), [950.0, 900.0, 975.0])
    drawn = BoucWen(lag=50.0, scale=Spread(mean=1.0, deviation=0.1, seed=3))
    assert np.ptp(MaterialMemory(drawn, [], 3).feel(np.full(3, 1000.0), 1.0)) > 1.0
    for wrong in (Plays(widths=[50.0], weights=[1.0], scale=[1.0, 2.0]), [1.0, 2.0]):
        with pytest.raises(ValueError, match="2 numbers"):
            MaterialMemory(wrong, [], 3)
    with pytest.raises(ValueError, match="sum to more than 1"):
        Plays(widths=[1.0, 2.0], weights=[0.6, 0.6])


def test_creep_of_two_times_follows_slowly_and_ends_where_it_was_asked_to() -> None:
    creep = [Creep(share=0.1, time=5.0), Creep(share=0.2, time=100.0)]
    memory, asked = MaterialMemory(0.0, creep, 9), np.full(9, 1000.0)
    for seconds, passed in ((0.0, 0.0), (5.0, 5.0), (95.0, 100.0), (1e4, 10100.0)):
        expected = 1000.0 - 100.0 * np.exp(-passed / 5.0) - 200.0 * np.exp(-passed / 100.0)
        np.testing.assert_allclose(memory.feel(asked, seconds), expected)


def test_creep_by_eyrings_law_leaves_all_that_no_time_has_taken_however_far_behind() -> None:
    """Of a tendon in m and of a chamber in Pa, each with an overstress of its own."""
    law, behind = Creep(share=0.2, time=20.0, overstress=[1e-4, 100.0]), np.array([-3e-2, 6e4])
    np.testing.assert_allclose(law.left(behind, 0.0), behind)
    slow, soon = law.left(behind, 1e-9), law.left(behind, 5.0)
    assert (np.abs(slow) <= np.abs(behind)).all() and np.isfinite(soon).all()
    # From far away what is left depends on the time alone: twice the overstress by artanh of exp(-t / time).
    np.testing.assert_allclose(soon, 2.0 * np.array([-1e-4, 100.0]) * np.arctanh(np.exp(-0.25)), rtol=1e-9)
    with pytest.raises(ValueError, match="overstress"):
        MaterialMemory(0.0, [law], 3)


def test_creep_by_eyrings_law_solves_its_equation_and_depends_on_the_rate() -> None:
    law = Creep(share=0.2, time=20.0, overstress=100.0)
    behind = np.array([400.0, -30.0])
    slope = (law.left(behind, 1e-6) - behind) / 1e-6
    np.testing.assert_allclose(slope, -100.0 / 20.0 * np.sinh(behind / 100.0), rtol=1e-4)
    np.testing.assert_allclose(law.left(law.left(behind, 3.0), 4.0), law.left(behind, 7.0))

    def widest(period: float) -> float:
        memory, phases = MaterialMemory(0.0, [law], 1), np.linspace(0.0, 6.0 * np.pi, 600)
        felt = [memory.feel(np.array([1000.0 * np.sin(one)]), period * 3.0 / 600.0)[0] for one in phases]
        behind = np.abs(1000.0 * np.sin(phases) - felt)
        return float(behind[400:][np.abs(np.cos(phases[400:])) > 0.99].max())

    fast, resonant, slow = widest(0.1), widest(40.0), widest(1e4)
    assert slow < 5.0 < fast and resonant > 3.0 * slow


SENSORS = PressureSensors(gain=1.02, curvature=4e-6, offset=30.0, hysteresis=25.0, drift=60.0, warm_up=100.0)


def test_sensors_that_remember_are_regulated_to_what_they_show() -> None:
    """What the devices settle at is what the board's sensors read as commanded, on every way there."""
    robot = load_robot("membrane")
    reality = Reality(name="s", title="", body=load_reality("ideal", robot).body, pressure_sensors=SENSORS.model_dump())
    devices, board = SettledDevices(reality, robot), board_sensors(robot, robot.devices[0], SENSORS, 0.0, 0)
    channels = robot.devices[0].channels
    pressure, seconds = np.zeros(10), 0.0
    board.read(pressure)
    for value in (1000.0, 3000.0, 2990.0, 500.0, 500.0, 4000.0):
        seconds += HELD_S
        true = devices.settle(np.full(9, value), HELD_S)
        for share in np.linspace(0.0, 1.0, 50):  # the board moves the pressure there
            moved = pressure.copy()
            moved[channels] = (1.0 - share) * pressure[channels] + share * true / 1000.0
            shown = board.read(moved, seconds)
        pressure = moved
        np.testing.assert_allclose(1000.0 * shown[channels], value, atol=8.1)  # a quantum of the board


def test_drawn_sensors_err_in_one_way_or_the_other() -> None:
    spans = np.full(9, 5000.0)
    drawn = [EMULATION.drawn(spans, np.random.default_rng(seed)) for seed in range(40)]
    bent = [one for one in drawn if isinstance(one, PressureSensors) and one.hysteresis]
    assert 10 < len(bent) < 30
    assert all(one.gain == 1.0 and one.offset == 0.0 for one in bent)
