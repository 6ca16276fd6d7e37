"""A bus of tendon motors as a device of the driver."""

import contextlib
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from softform_actuation.device import (
    DeviceError,
    DeviceHealth,
    DeviceLostError,
    Measurement,
    Rest,
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
from softform_tendons.registers import MODELS, Model, MotorState, Register, amiss, motor_state
from softform_tendons.settings import FIRM, SLACKENED_WITHIN, Drums, TendonSettings, tendon_settings
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
_DRIVEN = {registers.BUS_WATCHDOG: round(WATCHDOG_SECONDS / registers.WATCHDOG_UNIT), registers.TORQUE_ENABLE: 1}


class TendonBus:
    """`Device` of tendon motors on one bus; its channels are the motors' ids, in their order along the cable.

    While the robot is driven, the motors' own watchdogs stop them when the bus falls silent, and the guardian then
    slackens or holds the tendons. What is held is slackened after `hold_limit`, by the guardian if the driver is dead,
    or when a motor is in trouble.
    `homes_file` holds the calibrated home positions.

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
        self._told: dict[int, dict[Register, int]] = {}
        self._driven = self._needs_safety = self._is_unsound = False
        self._safe_since: float | None = None
        self._held_since: float | None = None
        self._hold_ended = ""
        self._silent_reads = self._damaged_reads = 0
        self._next_read = self._heard_at = 0.0
        self._last_ticks: dict[int, int] = {}
        self._found_unpowered: set[int] = set()

    @property
    def identity(self) -> str:
        """The motors and their port."""
        return f"motors {', '.join(map(str, self._ids))} at {self._line.path}"

    @property
    def is_holding(self) -> bool:
        """Whether the motors hold the tendons where they were made safe, and nobody drives them."""
        return self._held_since is not None

    @property
    def _slackens(self) -> bool:
        """Whether making safe slackens, as described or because a hold has ended."""
        return self.safe_action is SafeAction.SLACKEN or bool(self._hold_ended)

    def open(self, interrupted: Callable[[], bool] = never) -> None:
        """As `Device.open`: find all motors, prepare those that need it, make safe."""
        self._line.open(self._baud_rate)
        try:
            self._find_motors(interrupted)
            self._needs_safety = True
            self._guard()
            if not self.make_safe():
                raise DeviceError("The motors do not confirm that they are safe.", "Check supply and cable.")
            if trouble := self._look_at_rest(self._states):
                raise trouble
        except BaseException:
            self.close()
            raise

    def test(self, interrupted: Callable[[], bool]) -> None:
        """As `Device.test`: slackens what stands tighter, without power; what does not follow is found as it is driven.

        Raises:
            DeviceError: If a tendon does not slacken, or interrupted.
        """
        if self.is_holding or not self._tight(self._read_all_states()):
            return
        self.begin()
        self._end_hold("The tendons are slackened: their motors were found without power.")
        end = self.clock.now() + SLACKENED_WITHIN
        while self.clock.now() <= end:
            if interrupted():
                raise DeviceError("The test of the tendons was interrupted.", "Activate the driver again.")
            self.clock.sleep(_READ_PERIOD)
        if told := self.check().complaint:
            raise DeviceError(told)

    def begin(self) -> Array:
        """As `Device.begin`: power the motors where they are, once they have their limits."""
        states = self._read_all_states()
        if len(states) < len(self._ids):
            raise DeviceError(*where_broken(self._ids, states))
        self._check_hardware(states)
        self._configure(self._ids)
        hold_ended, self._hold_ended = self._hold_ended, ""
        if self._find_turns() or hold_ended:  # they lost their power for a moment, or their guardian would slacken them
            self._guard()
        ticks = {motor: {registers.GOAL_POSITION: states[motor].position} for motor in self._ids}
        self._needs_safety = True
        limits = self._limits(self._drums.speed(_FASTER * self._served.slew_rate), self._settings.current_limit)
        try:
            self._bus.require({m: {registers.BUS_WATCHDOG: 0} | limits[m] | ticks[m] for m in self._ids})
            self._told = {m: limits[m] | _DRIVEN for m in self._ids}
            self._bus.require({m: self._told[m] | ticks[m] for m in self._ids})
        except BaseException:
            with contextlib.suppress(DeviceError):
                self.make_safe()
            raise
        self._found_unpowered = set()
        self._driven, self._safe_since, self._held_since = True, None, None
        self._silent_reads, self._damaged_reads = 0, 0
        self._heard_at = self.clock.now()
        self._watch.restart(self._heard_at)
        return self._drums.pulls(np.array([float(states[motor].position) for motor in self._ids]))

    def set_targets(self, targets: Array, interrupted: Callable[[], bool]) -> bool:
        """As `Device.set_targets`: one request for all motors; none to motors that were not heard for a while."""
        if self.clock.now() - self._heard_at > _STANDSTILL_SECONDS:
            return False  # goals now would pull what the guardian has slackened
        goals = zip(self._ids, map(registers.GOAL_POSITION.encoded, self._drums.ticks(targets)), strict=True)
        self._bus.send(protocol.sync_write(list(goals), registers.GOAL_POSITION.address))
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
        if tripped := [motor for motor in self._ids if states[motor].has_stopped]:
            raise UnsafeError(
                f"Motors {', '.join(map(str, tripped))} stopped by themselves: the bus was silent.",
                "Check the load of this computer, and the cable, then reset.",
            )
        self._check_told(states)
        pulls = self._drums.pulls(np.array([float(states[motor].position) for motor in self._ids]))
        goals = np.array([float(states[motor].goal) for motor in self._ids])
        self._watch.look(pulls, self._drums.pulls(goals), self._currents(states), now)
        return [Measurement(pulls, now)]

    def make_safe(self) -> bool:
        """As `Device.make_safe`: slacken at the described speed, or hold until the hold has ended.

        What the motors do not confirm is sent again. The tendons are slack within `SLACKENED_WITHIN`; then the motors
        are without power, which `check` sees to.
        """
        self._require_known()
        turned = self._find_turns()  # a motor that lost its turns would wind up by one on its way to what was slack
        if not self._slackens and self._held_since is None and self._found_unpowered < set(self._ids):
            self._held_since = self.clock.since_boot()
        self._driven = False
        goals = dict(zip(self._ids, self._safe_ticks(), strict=True))
        self._told = {
            motor: {registers.BUS_WATCHDOG: 0} | values | {registers.GOAL_POSITION: goals[motor]}
            for motor, values in self._limits_at_rest().items()
        }
        request = self._request(self._safe_ticks())
        end = self.clock.now() + _CONFIRM_SECONDS
        while True:
            self._bus.send(request)  # a broadcast is not acknowledged
            self._safe_since = self.clock.now()
            states = self._read_states()
            confirmed = len(states) == len(self._ids) and not any(map(self._amiss, states))
            if confirmed or self.clock.now() > end:
                break
            if states:
                self.clock.sleep(_READ_PERIOD)
        if turned:
            self._guard()
        if self.is_holding:
            for motor in set(self._ids) - self._found_unpowered:
                self._told[motor][registers.TORQUE_ENABLE] = 1
        self._needs_safety = not confirmed
        return confirmed

    def check(self) -> Rest:
        """As `Device.check`: whether all tendons are slack; their motors lose their power, and others try on.

        A motor that was found without power at `open` is left alone until `test`: nothing may move before. What is
        wrong with a motor is raised once, and stands in the complaint from then on.
        """
        self._require_known()
        states = self._read_all_states()
        if not states:
            raise DeviceLostError(*where_broken(self._ids, states))
        was_unsound = self._is_unsound
        trouble = self._look_at_rest(states)
        self._is_unsound = trouble is not None
        if self._find_turns():  # motors lost their power for a moment
            self._guard()
        tight = self._tight(states)
        complaint = self._release(states, tight)
        if trouble is not None and not was_unsound:
            raise trouble
        pulls = self._drums.pulls(np.array([float(self._last_ticks[motor]) for motor in self._ids]))
        slack = [motor in states and motor not in tight and not self.is_holding for motor in self._ids]
        return Rest(
            np.where([motor in states for motor in self._ids], pulls, np.nan),
            np.array(slack),
            " ".join(filter(None, (str(trouble or ""), complaint))),
        )

    def _look_at_rest(self, states: dict[int, MotorState]) -> UnsafeError | None:
        """What is wrong with motors that nobody drives; ends a hold that is too long, or in which something is."""
        trouble = None
        try:
            self._check_hardware(states)
            self._watch.look_at_currents(self._currents(states), self.clock.now())
            if self.is_holding:
                self._check_told(states)
        except UnsafeError as error:
            trouble = error
        if self._held_since is not None:
            if trouble is not None:
                self._end_hold(f"The tendons are held no longer: {trouble}")
            elif self.clock.since_boot() - self._held_since > self._settings.hold_limit:
                self._end_hold(f"The tendons were held for {self._settings.hold_limit:g} s, and are slackened now.")
        return trouble

    def _end_hold(self, why: str) -> None:
        self._held_since, self._hold_ended = None, why
        self.make_safe()
        self._guard()

    def _release(self, states: dict[int, MotorState], tight: list[int]) -> str:
        """Take the power off motors that are slack, slacken those anew that should be; what is wrong, in words."""
        broken = " ".join(where_broken(self._ids, states)).strip()
        if self.is_holding or self._driven or self._safe_since is None:
            return broken
        tight = [motor for motor in tight if motor not in self._found_unpowered]
        loose = [m for m in states if m not in tight and states[m].is_powered and m not in self._found_unpowered]
        kept = self._bus.ensure({motor: {registers.TORQUE_ENABLE: 0} for motor in loose})
        unsafe = set(tight) | kept.keys() | (set(self._ids) - states.keys())
        if not unsafe or self.clock.now() - self._safe_since <= SLACKENED_WITHIN:
            return broken
        if tight:
            self._slacken_again(tight)
        told = ", ".join(f"{self._names[motor]} (id {motor})" for motor in self._ids if motor in unsafe)
        return f"{told} may not be slack. {broken or 'Free the motor, or cut its supply.'}"

    def calibrate(self, interrupted: Callable[[], bool]) -> str:
        """As `Device.calibrate`: wind all tendons up gently at once, and keep where each would carry nothing.

        Each is wound up at two currents c. The rod and the tendon give way in proportion to the tension, which is that
        of c less the friction f, the current at which the motor turned while the tendon was slack.
        """
        lowest = np.minimum(self._served.actuator_min, self._served.safe)
        reach = self._served.actuator_max - lowest
        gentle, firm = self._settings.calibration_current, FIRM * self._settings.calibration_current
        try:
            start = self.begin()
            slowly = self._drums.speed(np.full(len(self._ids), _CALIBRATION_SPEED))
            wound = []
            for current in (gentle, firm):
                goals = dict(zip(self._ids, self._drums.ticks(start + reach), strict=True))
                self._told = {motor: limits | _DRIVEN for motor, limits in self._limits(slowly, current).items()}
                self._bus.require({m: told | {registers.GOAL_POSITION: goals[m]} for m, told in self._told.items()})
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
        self._guard()
        shifts = np.round(self._drums.pulls(before) * -1e3, 2)
        return f"tendons are taut at {homes.tolist()}, {shifts.tolist()} mm from before"

    def close(self) -> None:
        """As `Device.close`. A hold ends with it, where the motors can be reached: nobody would watch over it."""
        if (since := self._held_since) is not None:
            self._held_since, self._hold_ended = None, "The tendons are slackened: their device was closed."
            ended = False
            with contextlib.suppress(SoftformError):
                if ended := self.make_safe():
                    self.clock.sleep(SLACKENED_WITHIN)
                    self.check()
            if not ended:
                self._held_since, self._hold_ended = since, ""
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
        return DeviceHealth(values, warning or self._hold_ended)

    def _find_motors(self, interrupted: Callable[[], bool]) -> None:
        models, damaged = self._bus.find(self._ids, interrupted)
        if len(models) < len(self._ids):
            raise DeviceError(*where_broken(self._ids, models, damaged))
        self._require_same({m: MODELS[n].name if n in MODELS else f"model {n}" for m, n in models.items()})
        if unknown := {motor: model for motor, model in models.items() if model not in MODELS}:
            raise DeviceError(
                f"Motors of models {unknown} cannot limit their current here.",
                f"Known: {', '.join(model.name for model in MODELS.values())}.",
            )
        self._models = {motor: MODELS[model] for motor, model in models.items()}
        for motor, model in self._models.items():
            if self._settings.current_limit > model.highest_current:
                raise DeviceError(
                    f"current_limit is {self._settings.current_limit:g} A, too much for motor {motor}, a {model.name}.",
                    f"Give at most {model.highest_current:g} A in the robot's description.",
                )
        self._configure(self._ids)
        states = self._read_all_states()
        if len(states) < len(self._ids):
            raise DeviceError(*where_broken(self._ids, states))
        self._found_unpowered = {motor for motor, state in states.items() if not state.is_powered}
        self._find_turns()

    def _require_same(self, found: dict[int, str]) -> None:
        """Reject other motors than those that were there first: nothing is sent to them, not even the end of a hold."""
        known = {motor: model.name for motor, model in self._models.items()}
        if not known or found == known:
            return
        if self.is_holding:
            self._held_since, self._hold_ended = None, "The tendons are held no longer: other motors were found."
        raise DeviceError(
            f"Motors {known} were there at configure, {found} are there now.",
            "Put the cables back, or configure the driver again for what is plugged in.",
        )

    def _require_known(self) -> None:
        if len(self._last_ticks) < len(self._ids):
            raise DeviceLostError("Where the motors stand was never read.", "Configure the driver.")

    def _configure(self, motors: list[int]) -> None:
        """Make sure of what motors keep without power; one that needs a change loses its power before.

        So a motor that starts anew, and takes its current limit for its goal current, pulls no harder than it may.
        """
        found = self._bus.read(motors, registers.CONFIGURATION, tries=3)
        if len(found) < len(motors):
            raise DeviceError(*where_broken(motors, found))
        wanted = {
            motor: {
                registers.DRIVE_MODE: found[motor][registers.DRIVE_MODE] & registers.REVERSED,
                registers.CURRENT_LIMIT: self._raw_current(motor, self._settings.current_limit),
                registers.OPERATING_MODE: registers.CURRENT_BASED_POSITION,
                registers.STARTUP: 0,
            }
            for motor in motors
        }
        wrong = [motor for motor in motors if amiss(found[motor], wanted[motor])]
        self._bus.require({motor: {registers.TORQUE_ENABLE: 0} for motor in wrong})
        self._bus.require({motor: wanted[motor] for motor in wrong})

    def _find_turns(self) -> bool:
        """Find the turns of the motors' homes anew; returns whether one has changed."""
        ticks, before = np.array([float(self._last_ticks[motor]) for motor in self._ids]), self._drums.homes
        lowest = np.minimum(self._served.actuator_min, self._served.safe)
        self._drums.find_turn(ticks, lowest, self._served.actuator_max)
        return not np.array_equal(self._drums.homes, before)

    def _read_states(self) -> dict[int, MotorState]:
        found = self._bus.read(self._ids, registers.STATE)
        self._states = {motor: motor_state(found[motor], self._models[motor]) for motor in self._ids if motor in found}
        self._last_ticks |= {motor: state.position for motor, state in self._states.items()}
        return self._states

    def _read_all_states(self) -> dict[int, MotorState]:
        """Once more if an answer is missing, for it may be lost on the wire; for some time if none comes at all."""
        end = self.clock.now() + _SILENT_SECONDS
        states = self._read_states()
        if len(states) < len(self._ids):
            states = self._read_states()
        while not states and self.clock.now() < end:
            states = self._read_states()
        return states

    def _check_hardware(self, states: dict[int, MotorState]) -> None:
        self._is_unsound = True
        for motor, state in states.items():
            named, (lowest, highest) = f"Motor {motor} ({self._names[motor]})", self._models[motor].voltages
            if error := state.registers[registers.HARDWARE_ERROR]:
                raise UnsafeError(
                    f"{named} has shut down: {registers.errors_in_words(error)}.",
                    "Find the cause, let it cool down, then cut its supply for a moment.",
                )
            if state.temperature > self._settings.hottest:
                raise UnsafeError(f"{named} has {state.temperature} °C.", "Let it cool down, then reset.")
            if not lowest <= state.voltage <= highest:
                raise UnsafeError(
                    f"{named} has {state.voltage:.1f} V.", f"Give it {lowest:g} to {highest:g} V, then reset."
                )
        self._is_unsound = False

    def _check_told(self, states: dict[int, MotorState]) -> None:
        for motor in states:
            if what := self._amiss(motor):
                raise UnsafeError(
                    f"Motor {motor} ({self._names[motor]}) has {what}.",
                    "It lost its power for a moment, or another program talks to it: look at its supply, then reset.",
                )

    def _amiss(self, motor: int) -> str:
        """In which registers a motor was read otherwise than it was told, in words; empty if in none."""
        return amiss(self._states[motor].registers, self._told[motor])

    def _currents(self, states: dict[int, MotorState]) -> Array:
        """Absolute currents (k,) A; 0 of motors that do not answer."""
        return np.array([abs(states[motor].current) if motor in states else 0.0 for motor in self._ids])

    def _raw_current(self, motor: int, current: float) -> int:
        return round(current / self._models[motor].current_unit)

    def _limits(self, turns_a_second: Array, current: float) -> dict[int, dict[Register, int]]:
        """What limits the motors' current, A, and speeds (k,)."""
        speeds = np.maximum(1, np.ceil(turns_a_second / registers.VELOCITY_UNIT)).astype(int).tolist()
        return {
            motor: {registers.GOAL_CURRENT: self._raw_current(motor, current), registers.PROFILE_VELOCITY: speed}
            for motor, speed in zip(self._ids, speeds, strict=True)
        }

    def _limits_at_rest(self) -> dict[int, dict[Register, int]]:
        speeds = self._drums.speed(np.full(len(self._ids), self._settings.slacken_speed))
        return self._limits(speeds, self._settings.current_limit)

    def _safe_ticks(self) -> list[int]:
        if self._slackens:
            return self._drums.ticks(self._served.safe)
        return [self._last_ticks[motor] for motor in self._ids]

    def _tight(self, states: dict[int, MotorState]) -> list[int]:
        """Motors that stand tighter than where they are safe."""
        ticks = np.array([float(self._last_ticks[motor]) for motor in self._ids])
        beyond = np.abs(ticks - self._drums.ticks(self._served.safe)) > _ARRIVED_TICKS
        is_tight = beyond & (self._drums.pulls(ticks) > self._served.safe)
        return [motor for motor, one in zip(self._ids, is_tight, strict=True) if motor in states and one]

    def _slacken_again(self, motors: list[int]) -> None:
        """Power motors that have lost their power and their limits, and repeat their goals."""
        self._configure(motors)
        limits, goals = self._limits_at_rest(), dict(zip(self._ids, self._safe_ticks(), strict=True))
        limited = {motor: {registers.BUS_WATCHDOG: 0} | limits[motor] for motor in motors}
        ready = limited.keys() - self._bus.ensure(limited).keys()
        powered = {registers.TORQUE_ENABLE: 1}
        self._bus.ensure({motor: powered | {registers.GOAL_POSITION: goals[motor]} for motor in sorted(ready)})

    def _request(self, goals: list[int], *, leads: bool = True) -> bytes:
        """What wakes all motors and limits them, and leads them to goals, ticks, or lets them stay where they are.

        It is understood behind half of another request.
        """
        limits, ticks = self._limits_at_rest(), dict(zip(self._ids, goals, strict=True))
        given = {m: limits[m] | {registers.BUS_WATCHDOG: 0, registers.GOAL_POSITION: ticks[m]} for m in self._ids}

        def told(*neighbours: Register) -> bytes:
            data = [(m, b"".join(one.encoded(given[m][one]) for one in neighbours)) for m in self._ids]
            return protocol.sync_write(data, neighbours[0].address)

        longest = told(registers.PROFILE_VELOCITY, registers.GOAL_POSITION)
        padding = bytes(len(longest) + len(longest) // 3)  # within any of these the driver may have died
        awake = padding + told(registers.BUS_WATCHDOG) + told(registers.GOAL_CURRENT)
        return awake + longest if leads else awake

    def _guard(self) -> None:
        """Have the guardian slacken, or hold for a while and slacken then, should this process die."""
        slack = self._drums.ticks(self._served.safe)
        if self._slackens:
            self._line.guard(self._request(slack))
        else:
            self._line.guard(self._request(slack, leads=False), self._request(slack), self._settings.hold_limit)

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
            self._check_told(states)
            now = self.clock.now()
            self._watch.look_at_currents(self._currents(states), now)
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
