"""Registers and units of the motors of Dynamixel's X series that can limit their current.

https://emanual.robotis.com/docs/en/dxl/x/xc330-t288/ and its neighbours.
"""

from dataclasses import dataclass

CURRENT_BASED_POSITION = 5
"""Operating mode: positions over many turns, as in the extended position mode, under a limit of the current."""

OPERATING_MODE = 11
TORQUE_ENABLE = 64
HARDWARE_ERROR = 70
BUS_WATCHDOG = 98
GOAL_CURRENT = 102
PROFILE_VELOCITY = 112
GOAL_POSITION = 116

TICKS_A_TURN = 4096
VELOCITY_UNIT = 0.229 / 60.0  # turns/s
VOLTAGE_UNIT = 0.1  # V
WATCHDOG_UNIT = 0.02  # s
WATCHDOG_TRIPPED = 0xFF

STATE, STATE_LENGTH = BUS_WATCHDOG, 49
"""From the watchdog to the temperature: what is read in every period."""

ERRORS = {0: "voltage out of range", 2: "overheated", 3: "encoder broken", 4: "electric fault", 5: "overloaded"}
"""What the bits of `HARDWARE_ERROR` say."""


@dataclass(frozen=True)
class Model:
    """A type of motor by its name at ROBOTIS, and the unit of its currents, A."""

    name: str
    current_unit: float


MODELS = {
    1020: Model("XM430-W350", 2.69e-3),
    1030: Model("XM430-W210", 2.69e-3),
    1190: Model("XL330-M077", 1e-3),
    1200: Model("XL330-M288", 1e-3),
    1210: Model("XC330-T181", 1e-3),
    1220: Model("XC330-T288", 1e-3),
    1230: Model("XC330-M181", 1e-3),
    1240: Model("XC330-M288", 1e-3),
}
"""By model number; others, such as the XL430, cannot limit their current in this mode."""


@dataclass(frozen=True)
class MotorState:
    """What one motor says of itself.

    Attributes:
        watchdog_tripped: Whether its bus watchdog ran out and it stopped.
        goal: Ticks.
        position: Ticks, over many turns.
        current: A, positive while it turns towards larger positions.
        voltage: V.
        temperature: degrees Celsius.
    """

    watchdog_tripped: bool
    goal: int
    position: int
    current: float
    voltage: float
    temperature: int


def motor_state(data: bytes, model: Model) -> MotorState:
    """Read the registers from `STATE` on, `STATE_LENGTH` bytes."""

    def number(address: int, length: int, *, signed: bool = False) -> int:
        return int.from_bytes(data[address - STATE :][:length], "little", signed=signed)

    return MotorState(
        watchdog_tripped=number(BUS_WATCHDOG, 1) == WATCHDOG_TRIPPED,
        goal=number(GOAL_POSITION, 4, signed=True),
        position=number(132, 4, signed=True),
        current=number(126, 2, signed=True) * model.current_unit,
        voltage=number(144, 2) * VOLTAGE_UNIT,
        temperature=number(146, 1),
    )


def errors_in_words(status: int) -> str:
    """What a `HARDWARE_ERROR` says."""
    return ", ".join(word for bit, word in ERRORS.items() if status >> bit & 1) or f"hardware error {status:#x}"
