"""A bus of tendon motors as a device of the driver."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from softform_actuation.device import (
    DeviceError,
    DeviceHealth,
    DeviceLostError,
    Measurement,
    SafeAction,
    ServedActuators,
    UnsafeError,
    never,
)
from softform_actuation.guardian import HEARTBEAT_SECONDS, SILENCE_SECONDS
from softform_actuation.serial_link import SerialLink
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.files import write_atomically
from softform_core.robots.actuators import each
from softform_tendons import protocol, registers
from softform_tendons.bus import Bus
from softform_tendons.diagnosis import where_broken
from softform_tendons.registers import MODELS, Model, MotorState, motor_state
from softform_tendons.settings import SLACKENED_WITHIN, Drums, TendonSettings, tendon_settings
from softform_tendons.watch import LoadWatch

WATCHDOG_SECONDS = 0.5
"""Silence on the bus after which the motors stop by themselves."""

_STANDSTILL_SECONDS = SILENCE_SECONDS - 2.0 * HEARTBEAT_SECONDS
"""Since the motors were heard last; after a longer time the guardian may have slackened the tendons."""

_SILENT_READS = 5
_SILENT_SECONDS = 0.8  # of the whole bus: a busy machine may stop a process for some tenths of a second
_CONFIRM_SECONDS = 0.3  # of the whole bus, until a device that was made safe counts as unconfirmed
_READ_PERIOD = 0.02  # s
_FASTER = 1.5  # than the slew rate: how fast a motor may follow its setpoints
_CALIBRATION_SPEED = 0.005  # m/s
_STILL_SECONDS = 0.3
_STILL_TICKS = 3
_ARRIVED_TICKS = 8  # a tenth of a millimetre on a drum of 8 mm
_PADDING = bytes(80)  # longer than the rest of a request within which the driver may have died


class TendonBus:
    """`Device` of tendon motors on one bus; its channels are the motors' ids, in their order along the cable.

    While the robot is driven, the motors' own watchdogs stop them when the bus falls silent, and the guardian then
    slackens or holds the tendons. `homes_file` holds the calibrated home positions.

    Raises:
        SoftformError: If the description's settings are wrong, or the file cannot be read.
    """

    def __init__(self, served: ServedActuators, line: SerialLink, baud_rate: int, homes_file: Path) -> None:
        self._served, self._line, self._baud_rate, self._homes_file = served, line, baud_rate, homes_file
        self._settings: TendonSettings = tendon_settings(served)
        self.clock, self.safe_action = line.clock, SafeAction(self._settings.safe_action)
        self._ids = list(served.channels)
        self._names = dict(zip(self._ids, served.actuators, strict=True))
        count = len(self._ids)
        home = self._settings.home
        homes = each([float(one) for one in home] if isinstance(home, list) else float(home), count)
        self._drums = Drums(each(self._settings.drum_radius, count), _stored_homes(homes_file, homes))
        self._bus = Bus(line)
        self._watch = LoadWatch(self._settings, served)
        self._models: dict[int, Model] = {}
        self._states: dict[int, MotorState] = {}
        self._alerts: list[int] = []
        self._driven = self._needs_safety = False
        self._safe_since: float | None = None
        self._silent_reads = self._damaged_reads = 0
        self._next_read = self._heard_at = 0.0
        self._last_ticks: dict[int, int] = {}
        self._found_unpowered: set[int] = set()

    @property
    def identity(self) -> str:
        """The motors and their port."""
        return f"motors {', '.join(map(str, self._ids))} at {self._line.path}"

    def open(self, interrupted: Callable[[], bool] = never) -> None:
        """As `Device.open`: find all motors, prepare those that need it, make safe."""
        self._line.open(self._baud_rate)
        try:
            self._find_motors(interrupted)
            self._needs_safety = True
            self._line.guard(self._emergency())
            if not self.make_safe():
                raise DeviceError("The motors do not confirm that they are safe.", "Check supply and cable.")
        except BaseException:
            self.close()
            raise

    def test(self, interrupted: Callable[[], bool]) -> None:
        """As `Device.test`: slackens what stands tighter, without power; what does not follow is found as it is driven.

        Raises:
            DeviceError: If a tendon does not slacken, or interrupted.
        """
        if self.safe_action is SafeAction.HOLD or not self._tight(self._read_all_states()):
            return
        self.begin()
        self.make_safe()
        end = self.clock.now() + SLACKENED_WITHIN
        while self.clock.now() <= end:
            if interrupted():
                raise DeviceError("The test of the tendons was interrupted.", "Activate the driver again.")
            self.clock.sleep(_READ_PERIOD)
        if told := self.check():
            raise DeviceError(told)

    def begin(self) -> Array:
        """As `Device.begin`: power the motors where they are."""
        states = self._read_all_states()
        if len(states) < len(self._ids):
            raise DeviceError(*where_broken(self._ids, states))
        self._check_hardware(states)
        if self._find_turns():  # they lost their power for a moment
            self._line.guard(self._emergency())
        ticks = np.array([float(states[motor].position) for motor in self._ids])
        self._needs_safety = True
        self._follow_at(self._drums.speed(_FASTER * self._served.slew_rate), self._settings.current_limit)
        for motor in self._ids:
            self._bus.set(motor, registers.TORQUE_ENABLE, b"\x01")
        self._send_goals([int(tick) for tick in ticks])
        self._send_to_all(registers.BUS_WATCHDOG, bytes([round(WATCHDOG_SECONDS / registers.WATCHDOG_UNIT)]))
        self._found_unpowered = set()
        self._driven, self._safe_since, self._silent_reads, self._damaged_reads = True, None, 0, 0
        self._heard_at = self.clock.now()
        self._watch.restart(self._heard_at)
        return self._drums.pulls(ticks)

    def set_targets(self, targets: Array, interrupted: Callable[[], bool]) -> bool:
        """As `Device.set_targets`: one request for all motors; none to motors that were not heard for a while."""
        if self.clock.now() - self._heard_at > _STANDSTILL_SECONDS:
            return False  # goals now would pull what the guardian has slackened
        self._send_goals(self._drums.ticks(targets))
        return True

    def read(self, timeout: float) -> list[Measurement]:
        """As `Device.read`: positions of all motors, after a look at their load and health."""
        if not self._driven:
            self._line.receive(timeout)  # motors tell nothing unasked; the guardian wants its heartbeats
            return []
        wait = self._next_read - self.clock.now()
        if wait > 0.0:
            self.clock.sleep(min(wait, timeout))
            if wait > timeout:
                return []
        damaged_before = self._bus.damaged
        states = self._read_states()
        now = self.clock.now()
        self._next_read = now + _READ_PERIOD
        if len(states) < len(self._ids):
            self._silent_reads += 1
            self._damaged_reads += self._bus.damaged > damaged_before
            if self._silent_reads >= _SILENT_READS and (states or now - self._heard_at > _SILENT_SECONDS):
                # Each time: no answer is there, but a spoilt one.
                are_damaged = self._damaged_reads == self._silent_reads
                spoilt = [motor for motor in self._ids if are_damaged and motor not in states]
                raise UnsafeError(*where_broken(self._ids, states, spoilt))
            return []
        self._silent_reads, self._damaged_reads, self._heard_at = 0, 0, now
        self._check_hardware(states)
        if tripped := [motor for motor in self._ids if states[motor].watchdog_tripped]:
            raise UnsafeError(
                f"Motors {', '.join(map(str, tripped))} stopped by themselves: the bus was silent.",
                "Check the load of this computer, and the cable, then reset.",
            )
        pulls = self._drums.pulls(np.array([float(states[motor].position) for motor in self._ids]))
        goals = self._drums.pulls(np.array([float(states[motor].goal) for motor in self._ids]))
        currents = np.abs([states[motor].current for motor in self._ids])
        self._watch.look(pulls, goals, currents, now)
        return [Measurement(pulls, now)]

    def make_safe(self) -> bool:
        """As `Device.make_safe`: slacken at the described speed, or hold.

        The tendons are slack within `SLACKENED_WITHIN`; then the motors are without power, which `check` sees to.
        """
        wanted = self._safe_ticks()
        self._bus.send(self._emergency() + self._goals(wanted))  # a broadcast is not acknowledged
        self._driven = False
        self._safe_since = self.clock.now()
        states = self._read_all_states(_CONFIRM_SECONDS)
        confirmed = all(
            motor in states and not states[motor].watchdog_tripped and states[motor].goal == goal
            for motor, goal in zip(self._ids, wanted, strict=True)
        )
        self._needs_safety = not confirmed
        return confirmed

    def check(self) -> str:
        """As `Device.check`: whether all tendons are slack; their motors lose their power, and others try on.

        A motor that was found without power at `open` is left alone until `test`: nothing may move before.
        """
        states = self._read_all_states()
        if not states:
            raise DeviceLostError(*where_broken(self._ids, states))
        if self.safe_action is SafeAction.HOLD or self._safe_since is None:
            return " ".join(where_broken(self._ids, states)).strip()
        if self._find_turns():  # motors lost their power for a moment
            self._line.guard(self._emergency())
        tight = [motor for motor in self._tight(states) if motor not in self._found_unpowered]
        for motor in states.keys() - set(tight) - self._found_unpowered:
            self._bus.set(motor, registers.TORQUE_ENABLE, b"\x00")
        broken = " ".join(where_broken(self._ids, states)).strip()
        missing = [motor for motor in self._ids if motor not in states]
        if not tight + missing or self.clock.now() - self._safe_since <= SLACKENED_WITHIN:
            return broken
        if tight:
            self._slacken_again(tight)
        told = ", ".join(f"{self._names[motor]} (id {motor})" for motor in self._ids if motor in tight + missing)
        return f"{told} may not be slack. {broken or 'Free the motor, or cut its supply.'}"

    def calibrate(self, interrupted: Callable[[], bool]) -> str:
        """As `Device.calibrate`: wind all tendons up gently at once, and keep where each would carry nothing.

        Each is wound up at two currents c. The rod and the tendon give way in proportion to the tension, which is that
        of c less the friction f, the current at which the motor turned while the tendon was slack.
        """
        lowest = np.minimum(self._served.actuator_min, self._served.safe)
        reach = self._served.actuator_max - lowest
        gentle, firm = self._settings.calibration_current, 1.5 * self._settings.calibration_current
        try:
            start = self.begin()
            slowly = self._drums.speed(np.full(len(self._ids), _CALIBRATION_SPEED))
            wound = []
            for current in (gentle, firm):
                self._follow_at(slowly, current)
                self._send_goals(self._drums.ticks(start + reach))
                wound.append(self._wind_up(float(reach.max()) / _CALIBRATION_SPEED + 1.0, interrupted))
                moved = self._drums.pulls(wound[-1][0]) - start
                if loose := [n for n, far in zip(self._served.actuators, moved > 0.98 * reach, strict=True) if far]:
                    raise DeviceError(
                        f"The tendons {', '.join(loose)} never became taut.",
                        "Look whether they are torn or off the drum.",
                    )
            (first, friction), (second, _) = wound
            if (friction >= gentle).any():
                raise DeviceError(
                    f"The motors turn at {np.round(1000.0 * friction).tolist()} mA without load already.",
                    "Raise calibration_current in the robot's description.",
                )
            give = (second - first) / (firm - gentle)
            before, self._drums.homes = self._drums.homes, first - give * (gentle - friction)
        finally:
            self.make_safe()
        homes = np.round(self._drums.homes).astype(int) % registers.TICKS_A_TURN
        write_atomically(self._homes_file, json.dumps(homes.tolist()).encode())
        self._line.guard(self._emergency())
        shifts = np.round(self._drums.pulls(before) * -1e3, 2)
        return f"tendons are taut at {homes.tolist()}, {shifts.tolist()} mm from before"

    def close(self) -> None:
        """As `Device.close`."""
        self._driven = False
        self._line.close(self._needs_safety)
        self._needs_safety = False

    def health(self) -> DeviceHealth:
        """Each motor's id, model, voltage, temperature and current."""
        states = dict(self._states)
        values: dict[str, object] = {}
        for motor, name in self._names.items():
            state = states.get(motor)
            model = self._models[motor].name if motor in self._models else "not found"
            values[f"motor {motor} ({name})"] = (
                f"{model}, does not answer" if state is None else
                f"{model}, {state.voltage:.1f} V, {state.temperature} °C, {1000.0 * state.current:.0f} mA"
            )  # fmt: skip
        broken = " ".join(where_broken(self._ids, states)).strip()
        values["bus"] = broken or "all motors answer"
        values["damaged answers"] = self._bus.damaged
        warm = [m for m, s in states.items() if s.temperature > self._settings.hottest - 10]
        warning = f"Motors {', '.join(map(str, warm))} are nearly too hot." if warm else broken
        return DeviceHealth(values, warning)

    def _find_motors(self, interrupted: Callable[[], bool]) -> None:
        models, damaged = self._bus.find(self._ids, interrupted)
        if len(models) < len(self._ids):
            raise DeviceError(*where_broken(self._ids, models, damaged))
        if unknown := {motor: model for motor, model in models.items() if model not in MODELS}:
            raise DeviceError(
                f"Motors of models {unknown} cannot limit their current here.",
                f"Known: {', '.join(model.name for model in MODELS.values())}.",
            )
        self._models = {motor: MODELS[model] for motor, model in models.items()}
        modes = self._bus.read_all(self._ids, registers.OPERATING_MODE, 1)
        for motor in self._ids:
            if motor not in modes or modes[motor].parameters[0] != registers.CURRENT_BASED_POSITION:
                self._bus.set(motor, registers.TORQUE_ENABLE, b"\x00")
                self._bus.set(motor, registers.OPERATING_MODE, bytes([registers.CURRENT_BASED_POSITION]))
        states = self._read_states()
        if len(states) < len(self._ids):
            raise DeviceError(*where_broken(self._ids, states))
        powers = self._bus.read_all(self._ids, registers.TORQUE_ENABLE, 1)
        self._found_unpowered = {motor for motor, answer in powers.items() if answer.parameters == b"\x00"}
        self._check_hardware(states)
        self._find_turns()

    def _find_turns(self) -> bool:
        """Find the turns of the motors' homes anew; returns whether one has changed."""
        ticks, before = np.array([float(self._last_ticks[motor]) for motor in self._ids]), self._drums.homes
        lowest = np.minimum(self._served.actuator_min, self._served.safe)
        self._drums.find_turn(ticks, lowest, self._served.actuator_max)
        return not np.array_equal(self._drums.homes, before)

    def _read_states(self) -> dict[int, MotorState]:
        answers = self._bus.read_all(self._ids, registers.STATE, registers.STATE_LENGTH)
        self._states = {m: motor_state(a.parameters, self._models[m]) for m, a in answers.items() if m in self._models}
        self._last_ticks |= {motor: state.position for motor, state in self._states.items()}
        self._alerts = [motor for motor, answer in answers.items() if answer.has_alert]
        return self._states

    def _read_all_states(self, seconds: float = _SILENT_SECONDS) -> dict[int, MotorState]:
        """Once more if an answer is missing, for it may be lost on the wire; for some time if none comes at all."""
        end = self.clock.now() + seconds
        states = self._read_states()
        if len(states) < len(self._ids):
            states = self._read_states()
        while not states and self.clock.now() < end:
            states = self._read_states()
        return states

    def _check_hardware(self, states: dict[int, MotorState]) -> None:
        for motor in self._alerts:
            error = registers.errors_in_words(self._bus.hardware_error(motor))
            raise UnsafeError(
                f"Motor {motor} ({self._names[motor]}) has shut down: {error}.",
                "Find the cause, let it cool down, then cut its supply for a moment.",
            )
        for motor, state in states.items():
            if state.temperature > self._settings.hottest:
                raise UnsafeError(
                    f"Motor {motor} ({self._names[motor]}) has {state.temperature} °C.", "Let it cool down, then reset."
                )

    def _follow_at(self, turns_a_second: Array, current: float) -> None:
        """Limit speeds (k,) and current."""
        currents = [round(current / self._models[motor].current_unit) for motor in self._ids]
        self._send_each(registers.GOAL_CURRENT, [value.to_bytes(2, "little") for value in currents])
        speeds = np.maximum(1, np.ceil(turns_a_second / registers.VELOCITY_UNIT)).astype(int)
        self._send_each(registers.PROFILE_VELOCITY, [int(speed).to_bytes(4, "little") for speed in speeds])

    def _goals(self, ticks: list[int]) -> bytes:
        data = [(motor, tick.to_bytes(4, "little", signed=True)) for motor, tick in zip(self._ids, ticks, strict=True)]
        return protocol.sync_write(data, registers.GOAL_POSITION)

    def _send_goals(self, ticks: list[int]) -> None:
        self._bus.send(self._goals(ticks))

    def _send_to_all(self, address: int, data: bytes) -> None:
        self._send_each(address, [data] * len(self._ids))

    def _send_each(self, address: int, data: list[bytes]) -> None:
        self._bus.send(protocol.sync_write(list(zip(self._ids, data, strict=True)), address))

    def _safe_ticks(self) -> list[int]:
        if self.safe_action is SafeAction.SLACKEN:
            return self._drums.ticks(self._served.safe)
        return [self._last_ticks[motor] for motor in self._ids]

    def _tight(self, states: dict[int, MotorState]) -> list[int]:
        """Motors that stand tighter than where they are safe."""
        ticks = np.array([float(self._last_ticks[motor]) for motor in self._ids])
        beyond = np.abs(ticks - self._safe_ticks()) > _ARRIVED_TICKS
        is_tight = beyond & (self._drums.pulls(ticks) > self._served.safe)
        return [motor for motor, one in zip(self._ids, is_tight, strict=True) if motor in states and one]

    def _slacken_again(self, motors: list[int]) -> None:
        """Power motors that have lost their power and their limits, and repeat their goals."""
        self._follow_at(
            self._drums.speed(np.full(len(self._ids), self._settings.slacken_speed)), self._settings.current_limit
        )
        self._bus.send(protocol.sync_write([(motor, b"\x01") for motor in motors], registers.TORQUE_ENABLE))
        self._send_goals(self._safe_ticks())

    def _emergency(self) -> bytes:
        """What slackens all tendons, or stops all motors where they are; understood behind half of another request."""
        awake = protocol.sync_write([(motor, b"\x00") for motor in self._ids], registers.BUS_WATCHDOG)
        if self.safe_action is SafeAction.HOLD:
            return _PADDING + awake
        speeds = np.ceil(
            self._drums.speed(np.full(len(self._ids), self._settings.slacken_speed)) / registers.VELOCITY_UNIT
        )
        values = [
            (motor, int(speed).to_bytes(4, "little") + tick.to_bytes(4, "little", signed=True))
            for motor, speed, tick in zip(self._ids, speeds, self._safe_ticks(), strict=True)
        ]
        return _PADDING + awake + protocol.sync_write(values, registers.PROFILE_VELOCITY)

    def _wind_up(self, longest: float, interrupted: Callable[[], bool]) -> tuple[Array, Array]:
        """Positions (k,) ticks at which all motors have come to rest, and currents (k,) A while they began to turn."""
        begun = still_since = self.clock.now()
        last = np.full(len(self._ids), np.inf)
        first_currents: list[Array] = []
        silent_reads = 0
        while self.clock.now() - begun < longest:
            if interrupted():
                raise DeviceError("The calibration was interrupted.", "Calibrate again.")
            states = self._read_states()
            silent_reads = silent_reads + 1 if len(states) < len(self._ids) else 0
            if silent_reads >= _SILENT_READS:
                raise UnsafeError(*where_broken(self._ids, states))
            if silent_reads:
                continue
            self._check_hardware(states)
            now = self.clock.now()
            ticks = np.array([float(states[motor].position) for motor in self._ids])
            if now - begun < _STILL_SECONDS:
                first_currents.append(np.abs([states[motor].current for motor in self._ids]))
            if np.abs(ticks - last).max() > _STILL_TICKS:
                last, still_since = ticks, now
            elif now - still_since > _STILL_SECONDS and now - begun > 2.0 * _STILL_SECONDS:
                break
            self.clock.sleep(0.02)
        return last, np.median(first_currents, axis=0)


def _stored_homes(path: Path, otherwise: Array) -> Array:
    """Homes (k,) that were calibrated, or the described ones."""
    if not path.exists():
        return otherwise
    try:
        homes = np.array(json.loads(path.read_text(encoding="utf-8")), dtype=np.float64)
    except (OSError, ValueError) as error:
        raise SoftformError(f"{path} cannot be read: {error}.", "Remove it and calibrate the motors.") from error
    if homes.shape != otherwise.shape or not np.isfinite(homes).all():
        raise SoftformError(f"{path} does not hold {len(otherwise)} positions.", "Remove it and calibrate the motors.")
    return homes
