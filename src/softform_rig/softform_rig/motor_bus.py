"""An emulated bus of tendon motors that speak Dynamixel Protocol 2.0; written apart from the driver.

Each motor has the registers that a host of tendon motors uses. The motors lie on one cable in the order of their ids:
where it is broken, those behind answer nothing. Two motors of one id answer at once and spoil each other's answer.
"""

import struct
from collections.abc import Callable, Sequence

import numpy as np

from softform_core.arrays import Array
from softform_core.simulation.simulated_body import TendonLoads
from softform_rig.emulation import EmulatedDevice
from softform_rig.fault_schedule import Showing
from softform_rig.tendon_motor import TendonMotor

FIRMWARE = 46
RATE = 500.0  # Hz
_HEADER = bytes([0xFF, 0xFF, 0xFD, 0x00])
_PING, _READ, _WRITE, _REBOOT, _SYNC_READ, _SYNC_WRITE, _STATUS = 0x01, 0x02, 0x03, 0x08, 0x82, 0x83, 0x55
_ALL = 0xFE
_WATCHDOGS = bytes([_SYNC_WRITE, 98, 0, 1, 0])
_BAD_INSTRUCTION, _RANGE, _LENGTH, _LIMIT, _ACCESS = 2, 4, 5, 6, 7
_ALERT = 0x80
_TABLE = 147
_SAG = 0.058  # of the supply, which is sized for its motors, while all of them take what they may for long
_VELOCITY_UNIT, _WATCHDOG_UNIT = 0.229 / 60.0, 0.02  # turns/s, s
_TRIPPED = 0xFF
_HELD_UP = 0.2  # s
_READ_ONLY = {*range(0, 7), 70, *range(120, _TABLE)}
_OF_EEPROM = range(0, 64)
_CURRENT_BASED = 5
_OF_MOTORS = {
    "blocked_motor": "blocked",
    "torn_tendon": "torn",
    "hot_motor": "heated",
    "surging_motor": "surging",
}
"""Faults that are a field of a motor."""


def checksum(data: bytes) -> int:
    """CRC-16 of a packet, bit by bit."""
    register = 0
    for byte in data:
        register ^= byte << 8
        for _ in range(8):
            register = ((register << 1) ^ 0x8005 if register & 0x8000 else register << 1) & 0xFFFF
    return register


class _Wired:
    """A motor on the bus: its id and the registers that are not its state."""

    def __init__(self, number: int, motor: TendonMotor) -> None:
        self.number, self.motor = number, motor
        self.mode = 3
        self.drive_mode = self.startup = 0
        self.watchdog = 0
        self.fed_at = 0.0

    def image(self, voltage: float) -> bytes:
        """The control table, `_TABLE` bytes."""
        table, motor = bytearray(_TABLE), self.motor
        unit = motor.type.current_unit
        struct.pack_into("<H", table, 0, motor.type.number)
        table[6], table[7], table[31] = FIRMWARE, self.number, motor.temperature_limit
        table[10], table[11], table[60] = self.drive_mode, self.mode, self.startup
        struct.pack_into("<H", table, 38, round(motor.current_limit / unit))
        table[64], table[70], table[98] = motor.torque_on, motor.hardware_error, self.watchdog
        struct.pack_into("<h", table, 102, round(motor.goal_current / unit))
        struct.pack_into("<I", table, 112, round(motor.profile_speed / _VELOCITY_UNIT))
        struct.pack_into("<i", table, 116, round(motor.goal))
        velocity = round(motor.speed / _VELOCITY_UNIT)
        table[122] = velocity != 0
        struct.pack_into("<hii", table, 126, round(motor.current / unit), velocity, round(motor.position))
        struct.pack_into("<H", table, 144, round(10.0 * voltage))
        table[146] = round(motor.temperature)
        return bytes(table)

    def write(self, address: int, data: bytes, now: float) -> int:
        """Set registers; returns the error."""
        motor, unit = self.motor, self.motor.type.current_unit
        if any(place in _READ_ONLY for place in range(address, address + len(data))):
            return _ACCESS
        if motor.torque_on and address in _OF_EEPROM:
            return _ACCESS
        if self.watchdog == _TRIPPED and address >= 100:
            return _RANGE
        end = address + len(data)
        if address <= 10 < end:
            self.drive_mode = data[10 - address]
        if address <= 11 < end and data[11 - address] != self.mode:
            self.mode = data[11 - address]
            motor.is_limited = self.mode == _CURRENT_BASED
            motor.goal_current, motor.profile_speed = motor.current_limit, 0.0
        if address <= 38 and end >= 40:
            if (limit := struct.unpack_from("<H", data, 38 - address)[0] * unit) > motor.type.highest_current:
                return _LIMIT
            motor.current_limit = limit
        if address <= 60 < end:
            self.startup = data[60 - address]
        if address <= 64 < end:
            motor.torque_on = bool(data[64 - address]) and not motor.hardware_error
            motor.stop()
        if address <= 98 < end:
            self.watchdog, self.fed_at = data[98 - address], now
        if address <= 102 and end >= 104:
            if (wanted := abs(struct.unpack_from("<h", data, 102 - address)[0]) * unit) > motor.current_limit:
                return _LIMIT
            motor.goal_current = wanted
        if address <= 112 and end >= 116:
            motor.profile_speed = struct.unpack_from("<I", data, 112 - address)[0] * _VELOCITY_UNIT
        if address <= 116 and end >= 120:
            motor.goal = float(struct.unpack_from("<i", data, 116 - address)[0])
        return 0

    def watch(self, now: float) -> None:
        """Stop the motor, if it has power, once the bus was silent for longer than its watchdog."""
        if self.motor.torque_on and 0 < self.watchdog < _TRIPPED and now - self.fed_at > self.watchdog * _WATCHDOG_UNIT:
            self.watchdog = _TRIPPED
            self.motor.stop()


class MotorBus(EmulatedDevice):
    """Motors on one bus, which need no time to boot; while it hangs they hold what they had.

    Attributes:
        loads: Loads of the motors at the last solve of the body.
        misses: Whether a motor, by its id, misses the n-th instruction on the bus, lost or damaged; n counts from 1.
    """

    def __init__(self, motors: dict[int, TendonMotor]) -> None:
        self._wired = [_Wired(number, motor) for number, motor in motors.items()]
        self.loads: TendonLoads | None = None
        self.misses: Callable[[int, int], bool] = lambda n, number: False
        self._instructions = 0
        self._absent: set[int] = set()
        self._silent: set[int] = set()
        self._doubled: set[int] = set()
        self._heard, self._output = b"", bytearray()
        self._time = 0.0

    @property
    def motors(self) -> dict[int, TendonMotor]:
        """The motors by their ids."""
        return {wired.number: wired.motor for wired in self._wired}

    def actuator_values(self, channels: list[int]) -> Array:
        """True pull of the tendons of these motors, m."""
        motors = self.motors
        return np.array([motors[channel].pull for channel in channels])

    def boot(self, now: float) -> None:
        """Cut the power and give it back: the motors forget their turns."""
        self.advance(now)
        self._heard = b""
        for wired in self._wired:
            wired.motor.reboot()
            wired.watchdog = 0

    def suffer(self, showing: Showing) -> None:
        """Let the motors feel the faults of one kind that are on."""
        self._absent = {fault.channel for fault in showing("missing_motor")}
        for fault in showing("cut_bus"):
            self._absent |= {wired.number for wired in self._wired if wired.number >= fault.channel}
        self._doubled = {fault.channel for fault in showing("doubled_motor")}
        self._silent = {fault.channel for fault in showing("deaf_motor")}
        for name, field in _OF_MOTORS.items():
            affected = {fault.channel for fault in showing(name)}
            for wired in self._wired:
                setattr(wired.motor, field, wired.number in affected)

    def vent_ends(self, data: bytes) -> list[int]:
        """Where requests end that put the watchdogs of all motors to sleep: with them a host makes the robot safe."""
        ends, start = [], data.find(_HEADER)
        while start >= 0:
            end = start + 7 + int.from_bytes(data[start + 5 : start + 7], "little")
            packet = data[start:end]
            is_whole = 16 <= end - start == len(packet)
            is_asleep = is_whole and packet[7:12] == _WATCHDOGS and not any(packet[13:-2:2])
            if is_asleep and checksum(packet[:-2]) == int.from_bytes(packet[-2:], "little"):
                ends.append(end)
            start = data.find(_HEADER, start + 4)
        return ends

    def receive(self, data: bytes, now: float) -> None:
        """Take bytes from the host at time `now`."""
        self.advance(now)
        if self.is_hung:
            return
        self._heard += data
        while (packet := self._next_packet()) is not None:
            self._obey(packet, now)

    def advance(self, now: float) -> None:
        """Let time pass up to `now` (s, monotonic)."""
        if now - self._time > _HELD_UP:  # this process was, or has just begun; the motors did not live through it
            for wired in self._wired:
                wired.fed_at += now - self._time - _HELD_UP
            self._time = now - _HELD_UP
        tick = 1.0 / RATE
        while self._time + tick <= now:
            self._time += tick
            for wired, tension in zip(self._wired, self._tensions().tolist(), strict=True):
                wired.watch(self._time)
                wired.motor.advance(tick, tension)

    def take_output(self) -> bytes:
        """Return and forget the bytes sent since the last call."""
        sent = bytes(self._output)
        self._output.clear()
        return sent

    def _tensions(self) -> Array:
        """Tensions of the tendons, N: until the body is looked at again, it yields to first order."""
        if self.loads is None:
            return np.zeros(len(self._wired))
        return self.loads.tension_at(np.array([wired.motor.pull for wired in self._wired]))

    @property
    def _voltage(self) -> float:
        motors = [wired.motor for wired in self._wired]
        share = sum(abs(motor.current) for motor in motors) / sum(motor.type.lasting_current for motor in motors)
        return min(motor.type.supply for motor in motors) * (1.0 - _SAG * share)

    def _next_packet(self) -> bytes | None:
        while True:
            start = self._heard.find(_HEADER)
            if start < 0:
                self._heard = self._heard[-3:]
                return None
            self._heard = self._heard[start:]
            if len(self._heard) < 7:
                return None
            end = 7 + self._heard[5] + 256 * self._heard[6]
            if not 10 <= end <= 1024:
                self._heard = self._heard[4:]
            elif len(self._heard) < end:
                return None
            elif checksum(self._heard[: end - 2]) != self._heard[end - 2] + 256 * self._heard[end - 1]:
                self._heard = self._heard[4:]
            else:
                packet, self._heard = self._heard[:end], self._heard[end:]
                return packet

    def _obey(self, packet: bytes, now: float) -> None:
        """One valid instruction."""
        body = packet[7:-2].replace(b"\xff\xff\xfd\xfd", b"\xff\xff\xfd")
        address, code, given = packet[4], body[0], body[1:]
        self._instructions += 1
        present = [
            wired
            for wired in self._wired
            if wired.number not in self._absent and not self.misses(self._instructions, wired.number)
        ]
        for wired in present:
            wired.fed_at = now
        if code == _SYNC_READ:
            start, length = struct.unpack_from("<HH", given)
            for number in given[4:]:
                self._answer_read(present, number, start, length)
            return
        if code == _SYNC_WRITE:
            start, length = struct.unpack_from("<HH", given)
            for place in range(4, len(given) - length, length + 1):
                for wired in present:
                    if wired.number == given[place] and wired.number not in self._silent:
                        wired.write(start, given[place + 1 : place + 1 + length], now)
            return
        for wired in present:
            if address in (wired.number, _ALL):
                self._obey_one(wired, code, given, address, now)

    def _obey_one(self, wired: _Wired, code: int, given: bytes, address: int, now: float) -> None:
        if code == _PING:
            self._answer(wired, 0, struct.pack("<HB", wired.motor.type.number, FIRMWARE))
        elif code == _READ and address != _ALL:
            start, length = struct.unpack_from("<HH", given)
            self._answer_read([wired], wired.number, start, length)
        elif code == _WRITE:
            start, data = struct.unpack_from("<H", given)[0], given[2:]
            error = 0 if wired.number in self._silent else wired.write(start, data, now)
            if address != _ALL:
                self._answer(wired, error, b"")
        elif code == _REBOOT:
            wired.motor.reboot()
            wired.watchdog = 0
            if address != _ALL:
                self._answer(wired, 0, b"")
        elif address != _ALL:
            self._answer(wired, _BAD_INSTRUCTION, b"")

    def _answer_read(self, present: Sequence[_Wired], number: int, start: int, length: int) -> None:
        for wired in present:
            if wired.number == number:
                inside = start + length <= _TABLE
                data = wired.image(self._voltage)[start : start + length] if inside else b""
                self._answer(wired, 0 if inside else _LENGTH, data)

    def _answer(self, wired: _Wired, error: int, data: bytes) -> None:
        alert = _ALERT if wired.motor.hardware_error else 0
        body = (bytes([_STATUS, error | alert]) + data).replace(b"\xff\xff\xfd", b"\xff\xff\xfd\xfd")
        packet = _HEADER + bytes([wired.number]) + struct.pack("<H", len(body) + 2) + body
        packet += struct.pack("<H", checksum(packet))
        if wired.number in self._doubled:  # both pull the line: what arrives is neither of them
            packet = packet[:9] + bytes(byte & 0x5A for byte in packet[9:])
        self._output += packet
