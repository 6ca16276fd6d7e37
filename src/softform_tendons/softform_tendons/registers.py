"""Registers and units of the motors of Dynamixel's X series that can limit their current.

https://emanual.robotis.com/docs/en/dxl/x/xc330-t288/ and its neighbours.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

CURRENT_BASED_POSITION = 5
"""Operating mode: positions over many turns, as in the extended position mode, under a limit of the current."""

TICKS_A_TURN = 4096
VELOCITY_UNIT = 0.229 / 60.0  # turns/s
VOLTAGE_UNIT = 0.1  # V
WATCHDOG_UNIT = 0.02  # s
WATCHDOG_TRIPPED = 0xFF


class Register(NamedTuple):
    """A value of a motor: its name, where it begins in the control table, and its bytes."""

    name: str
    address: int
    length: int
    signed: bool = False

    def encoded(self, value: int) -> bytes:
        """Bytes of a value."""
        return value.to_bytes(self.length, "little", signed=self.signed)


DRIVE_MODE = Register("drive mode", 10, 1)
OPERATING_MODE = Register("operating mode", 11, 1)
CURRENT_LIMIT = Register("current limit", 38, 2)
STARTUP = Register("startup configuration", 60, 1)
TORQUE_ENABLE = Register("torque", 64, 1)
HARDWARE_ERROR = Register("hardware error", 70, 1)
BUS_WATCHDOG = Register("bus watchdog", 98, 1)
GOAL_CURRENT = Register("goal current", 102, 2)
PROFILE_VELOCITY = Register("profile velocity", 112, 4)
GOAL_POSITION = Register("goal position", 116, 4, signed=True)
PRESENT_CURRENT = Register("current", 126, 2, signed=True)
PRESENT_POSITION = Register("position", 132, 4, signed=True)
PRESENT_VOLTAGE = Register("voltage", 144, 2)
PRESENT_TEMPERATURE = Register("temperature", 146, 1)

CONFIGURATION = (DRIVE_MODE, OPERATING_MODE, CURRENT_LIMIT, STARTUP)
"""What a motor keeps without power, and lets nobody change while its torque is on."""

TOLD = (TORQUE_ENABLE, BUS_WATCHDOG, GOAL_CURRENT, PROFILE_VELOCITY, GOAL_POSITION)
STATE = (*TOLD, HARDWARE_ERROR, PRESENT_CURRENT, PRESENT_POSITION, PRESENT_VOLTAGE, PRESENT_TEMPERATURE)
"""What is read in every period."""

REVERSED = 1
"""The bit of `DRIVE_MODE` that may be set; others give profiles another unit, or power with a goal."""

ERRORS = {0: "voltage out of range", 2: "overheated", 3: "encoder broken", 4: "electric fault", 5: "overloaded"}
"""What the bits of `HARDWARE_ERROR` say."""


@dataclass(frozen=True)
class Model:
    """A type of motor, by its page at ROBOTIS.

    Attributes:
        name: Name.
        current_unit: Unit of its currents, A.
        stall_current: Current at which it stalls at its recommended voltage, A.
        voltages: Lowest and highest supply that it takes, V.
    """

    name: str
    current_unit: float
    stall_current: float
    voltages: tuple[float, float]

    @property
    def highest_current(self) -> float:
        """What no description may exceed, A: at half the stall current a motor takes a quarter of the stall's heat.

        The registers allow more than the stall current, and so does a motor as it comes.
        """
        return 0.5 * self.stall_current


MODELS = {
    1020: Model("XM430-W350", 2.69e-3, 2.3, (9.5, 16.0)),
    1030: Model("XM430-W210", 2.69e-3, 2.3, (9.5, 16.0)),
    1180: Model("XW540-T140", 2.69e-3, 4.9, (10.0, 14.8)),
    1190: Model("XL330-M077", 1e-3, 1.47, (3.5, 7.0)),
    1200: Model("XL330-M288", 1e-3, 1.47, (3.5, 7.0)),
    1210: Model("XC330-T181", 1e-3, 0.80, (5.5, 14.0)),
    1220: Model("XC330-T288", 1e-3, 0.80, (5.5, 14.0)),
    1230: Model("XC330-M181", 1e-3, 1.80, (3.5, 7.0)),
    1240: Model("XC330-M288", 1e-3, 1.80, (3.5, 7.0)),
}
"""By model number; others, such as the XL430, cannot limit their current in this mode."""


@dataclass(frozen=True)
class MotorState:
    """What one motor says of itself.

    Attributes:
        registers: All of `STATE`.
        goal: Ticks.
        position: Ticks, over many turns.
        current: A, positive while it turns towards larger positions.
        voltage: V.
        temperature: degrees Celsius.
    """

    registers: Mapping[Register, int]
    goal: int
    position: int
    current: float
    voltage: float
    temperature: int

    @property
    def is_powered(self) -> bool:
        """Whether it turns, or holds, by its own force."""
        return self.registers[TORQUE_ENABLE] != 0

    @property
    def has_stopped(self) -> bool:
        """Whether its bus watchdog ran out and it stopped."""
        return self.registers[BUS_WATCHDOG] == WATCHDOG_TRIPPED


def motor_state(found: Mapping[Register, int], model: Model) -> MotorState:
    """State of a motor by its registers `STATE`."""
    return MotorState(
        registers=found,
        goal=found[GOAL_POSITION],
        position=found[PRESENT_POSITION],
        current=found[PRESENT_CURRENT] * model.current_unit,
        voltage=found[PRESENT_VOLTAGE] * VOLTAGE_UNIT,
        temperature=found[PRESENT_TEMPERATURE],
    )


def block(registers: Iterable[Register]) -> tuple[int, int]:
    """Address and length, bytes, of what has to be read to know all of these."""
    begin = min(register.address for register in registers)
    return begin, max(register.address + register.length for register in registers) - begin


def decoded(data: bytes, registers: Iterable[Register]) -> dict[Register, int]:
    """Values of registers in the bytes of their `block`."""
    begin, _ = block(registers)
    return {
        one: int.from_bytes(data[one.address - begin :][: one.length], "little", signed=one.signed) for one in registers
    }


def amiss(found: Mapping[Register, int], wanted: Mapping[Register, int]) -> str:
    """In which registers a motor differs from what is wanted, in words; empty if in none. One that is silent does."""
    if not found:
        return "no answer"
    return ", ".join(
        f"{one.name} {found[one]} instead of {value}" for one, value in wanted.items() if found[one] != value
    )


def errors_in_words(status: int) -> str:
    """What a `HARDWARE_ERROR` says."""
    return ", ".join(word for bit, word in ERRORS.items() if status >> bit & 1) or f"hardware error {status:#x}"
