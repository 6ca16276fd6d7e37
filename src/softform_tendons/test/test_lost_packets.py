"""Each packet between driver and motors is lost, spoilt, late or doubled once, and each motor goes deaf at each point.

Whatever happens, no motor that has power may pull harder than it was allowed to, and nothing is said to be done that
was not: what `begin` and `make_safe` have confirmed stands in the registers of all motors, what `check` calls slack is
slack. Anything else raises an error.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from stepped_motors import MOTORS, ROBOT, Motors

from softform_actuation.device import Rest, SafeAction
from softform_core.errors import SoftformError
from softform_tendons.protocol import crc16

pytestmark = pytest.mark.slow

LIMIT = 0.25
TAUT = ROBOT.safe + np.array([0.002, 0.001, 0.001, 0.001])
NEAR = 2e-4
SLACKEN_SPEED = 0.05 / (2.0 * np.pi * 0.008)  # turns/s

Spoil = Callable[[Motors, int], None]


class Claims:
    """What the device said, held against the motors themselves."""

    def __init__(self, motors: Motors) -> None:
        self.motors, self.device, self.bus = motors, motors.device, motors.bus
        motors.wire.after_write = self.pulls_no_harder
        self.said: list[str] = []

    def pulls_no_harder(self) -> None:
        for motor in self.bus.motors.values():
            assert not motor.torque_on or motor.limit <= LIMIT, "power without a limit"

    def open(self) -> None:
        self.device.open()
        self.said.append("open")
        self._is_told(0)

    def begin(self) -> None:
        at = self.device.begin()
        self.said.append("begin")
        self._is_told(25)
        assert all(motor.torque_on for motor in self.bus.motors.values())
        np.testing.assert_allclose(at, self.bus.actuator_values(MOTORS), atol=NEAR)

    def make_safe(self) -> bool:
        confirmed = self.device.make_safe()
        if confirmed:
            self.said.append("safe")
            self._is_told(0)
            if self.device.safe_action is SafeAction.SLACKEN:
                goals = self.device._drums.ticks(ROBOT.safe)
                assert [motor.goal for motor in self.bus.motors.values()] == goals
                speeds = [motor.profile_speed for motor in self.bus.motors.values()]
                np.testing.assert_allclose(speeds, SLACKEN_SPEED, atol=0.01)
        return confirmed

    def check(self) -> Rest:
        rest = self.device.check()
        true = self.bus.actuator_values(MOTORS)
        known = np.isfinite(rest.values)
        np.testing.assert_allclose(rest.values[known], true[known], atol=NEAR)
        assert not (rest.at_rest & ~known).any()
        assert not (rest.at_rest & (true > ROBOT.safe + NEAR)).any(), "said to be slack"
        return rest

    def _is_told(self, watchdog: int) -> None:
        for wired in self.bus._wired:
            assert (wired.watchdog, wired.motor.goal_current) == (watchdog, LIMIT), f"motor {wired.number}"


def go_through(motors: Motors) -> Claims:
    """Open, drive, make safe, rest; as the driver would after an error: make safe again."""
    claims = Claims(motors)
    try:
        claims.open()
        claims.begin()
        motors.drive(TAUT, 0.06)
        if not claims.make_safe():
            claims.said.append("unconfirmed")
        motors.clock.sleep(0.55)
        claims.check()
        claims.begin()
        motors.drive(TAUT, 0.04)
    except SoftformError as error:
        claims.said.append(f"error: {error}")
    try:
        confirmed = claims.make_safe()
        motors.clock.sleep(0.55)
        rest = claims.check()
        if confirmed and motors.device.safe_action is SafeAction.SLACKEN:
            assert rest.at_rest.all() or rest.complaint, rest
    except SoftformError as error:
        claims.said.append(f"error: {error}")
    claims.pulls_no_harder()
    return claims


def lost(motors: Motors, n: int) -> None:
    motors.bus.misses = lambda heard, motor: heard == n


def lost_at_one(motors: Motors, n: int) -> None:
    motors.bus.misses = lambda heard, motor: heard == n and motor == 2


def lost_for_a_while(motors: Motors, n: int) -> None:
    motors.bus.misses = lambda heard, motor: n <= heard < n + 4 and motor == 2


def gone(motors: Motors, n: int) -> None:
    motors.bus.misses = lambda heard, motor: heard >= n and motor == 2


def deaf(motors: Motors, n: int) -> None:
    """From then on it answers, and takes nothing."""

    def look(heard: int, motor: int) -> bool:
        if heard == n:
            motors.bus._silent = {2}
        return False

    motors.bus.misses = look


def restarted(motors: Motors, n: int) -> None:
    """It loses its power for a moment, and its turns, limits and goals with it."""

    def look(heard: int, motor: int) -> bool:
        if heard == n and motor == 2:
            motors.bus.motors[2].reboot()
            motors.bus._wired[1].watchdog = 0
        return False

    motors.bus.misses = look


def answer_lost(motors: Motors, n: int) -> None:
    motors.wire.spoil_answer = lambda answer, packet: b"" if answer == n else packet


def answer_spoilt(motors: Motors, n: int) -> None:
    motors.wire.spoil_answer = lambda answer, packet: flipped(packet, -3) if answer == n else packet


def answer_late(motors: Motors, n: int) -> None:
    """It comes behind the next one: out of order, or as an answer to what was asked next."""
    motors.wire.spoil_answer = behind_the_next(n)


def answer_doubled(motors: Motors, n: int) -> None:
    motors.wire.spoil_answer = lambda answer, packet: packet * 2 if answer == n else packet


def write_of_wrong_length(motors: Motors, n: int) -> None:
    """The motors take what comes next for a part of it."""
    motors.wire.spoil_write = lambda write, data: flipped(data, 5) if write == n else data


def write_cut_off(motors: Motors, n: int) -> None:
    motors.wire.spoil_write = lambda write, data: data[: len(data) // 2] if write == n else data


def writes_swapped(motors: Motors, n: int) -> None:
    motors.wire.spoil_write = behind_the_next(n)


def behind_the_next(n: int) -> Callable[[int, bytes], bytes]:
    """Let what comes as number `n` come behind what follows it."""
    kept: list[bytes] = []

    def keep(number: int, data: bytes) -> bytes:
        if number == n:
            kept.append(data)
            return b""
        return data + (kept.pop() if kept else b"")

    return keep


def flipped(data: bytes, place: int) -> bytes:
    changed = bytearray(data)
    changed[place] ^= 0x08
    return bytes(changed)


SPOILT: tuple[Spoil, ...] = (
    lost,
    lost_at_one,
    lost_for_a_while,
    gone,
    deaf,
    restarted,
    answer_lost,
    answer_spoilt,
    answer_late,
    answer_doubled,
    write_of_wrong_length,
    write_cut_off,
    writes_swapped,
)
ONCE = (lost, lost_at_one, answer_lost, answer_spoilt, answer_late, answer_doubled, write_cut_off, writes_swapped)
"""After these all goes on as if nothing had been."""


@pytest.fixture(autouse=True)
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """The motors' own steps are longer than usual, and sums are quick: there are many motions to go through."""
    monkeypatch.setattr("softform_rig.motor_bus.RATE", 50.0)
    monkeypatch.setattr("softform_rig.motor_bus.checksum", crc16)


def test_all_is_well_when_nothing_is_lost(tmp_path: Path) -> None:
    assert go_through(Motors(tmp_path)).said == ["open", "begin", "safe", "begin", "safe"]


@pytest.mark.parametrize("action", ["slacken", "hold"])
@pytest.mark.parametrize("spoil", SPOILT)
def test_whatever_is_lost_no_motor_pulls_harder_and_nothing_is_claimed(
    spoil: Spoil, action: str, tmp_path: Path
) -> None:
    whole = go_through(Motors(tmp_path, safe_action=action))
    wire, is_answer = whole.motors.wire, spoil.__name__.startswith("answer")
    count = (
        wire.answers if is_answer else wire.writes if spoil.__name__.startswith("write") else whole.bus._instructions
    )
    assert count > 30
    # Four motors answer each time: with a step of three all of them come in turn.
    for n in range(1, count + 1, (3 if is_answer else 1) * (3 if action == "hold" else 1)):
        motors = Motors(tmp_path, safe_action=action)
        spoil(motors, n)
        claims = go_through(motors)
        if spoil in ONCE and n > 4:
            assert claims.said == whole.said, f"{n}: {claims.said}"
