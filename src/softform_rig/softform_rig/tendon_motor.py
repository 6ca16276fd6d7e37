"""One emulated tendon motor: position controller, load, current, heat. No bus and no clock of its own."""

from dataclasses import dataclass, field

import numpy as np

TICKS_A_TURN = 4096
_FRICTION_CURRENT = 0.015  # A, while it turns
_LAG = 0.02  # s
_AMBIENT = 25.0  # degrees Celsius
_HEAT_CAPACITY, _COOLING = 20.0, 0.05  # J/K, W/K
_HOT = 85.0  # degrees that a motor shows which is overheated by a fault
OVERHEATED, OVERLOADED = 1 << 2, 1 << 5
STALLED_SECONDS = 3.0
"""After which a motor that stands at a large current shuts down as overloaded."""

_SURGE = 1.5  # times its limit, of a motor that a fault lets take more


@dataclass(frozen=True)
class MotorType:
    """A type of motor, by its page at ROBOTIS.

    Attributes:
        number: Of the model.
        supply: Voltage of its supply, V.
        current_unit: Unit of its currents, A.
        highest_current: The factory's current limit, A.
        lasting_current: Half of the stall current, A, which no driver should exceed.
        overload_current: Beyond which it shuts down in a while, A.
        torque_constant: At the horn, N m/A.
        no_load_speed: Turns/s.
        resistance: Ohm.
    """

    number: int
    supply: float
    current_unit: float
    highest_current: float
    lasting_current: float
    overload_current: float
    torque_constant: float
    no_load_speed: float
    resistance: float


XC330_T288 = MotorType(1220, 11.1, 1e-3, 0.91, 0.40, 0.20, 1.15, 1.2, 10.0)
XM430_W210 = MotorType(1030, 12.0, 2.69e-3, 3.21, 1.15, 1.15, 1.30, 1.28, 5.2)  # 3.0 N m at 2.3 A, 77 turns a minute
XW540_T140 = MotorType(1180, 12.0, 2.69e-3, 5.5, 2.45, 2.45, 1.408, 1.2, 2.45)  # 6.9 N m at 4.9 A, 72 turns a minute
MOTOR_TYPES = (XC330_T288, XM430_W210, XW540_T140)
"""The weakest first."""


@dataclass
class TendonMotor:
    """A motor with a drum that pulls one tendon; its registers are those of the bus.

    Attributes:
        drum_radius: m, with its sign: positive if larger positions pull.
        home: Ticks at which the tendon is taut and carries nothing, as mounted.
        torn_pull: Pull that the body feels of a tendon that is torn, m: slack everywhere.
        type: Which motor it is.
        backlash: Pull lost in its gear at a reversal, m: half on either side.
        position: Ticks, as is the goal.
        is_limited: Whether it is in a mode that limits its current.
        current_limit: A, kept without power; nothing sets `goal_current` above it.
        goal_current: A; after a boot it is the current limit.
        profile_speed: Turns/s; 0 for as fast as it can.
        torque_on: Whether it is driven; without power it holds by its gear.
        hardware_error: Bits; it is driven no more while there is one.
        current: A, signed as the position.
        temperature: degrees Celsius.
        heated: Whether it is overheated from outside.
        surging: Whether it takes more current than its limit, as with a broken output stage.
        speed: Turns/s.
    """

    drum_radius: float
    home: float
    torn_pull: float
    type: MotorType = XC330_T288
    backlash: float = 0.0
    position: float = 0.0
    goal: float = 0.0
    is_limited: bool = False
    current_limit: float = field(init=False)
    goal_current: float = field(init=False)
    profile_speed: float = 0.0
    torque_on: bool = False
    hardware_error: int = 0
    temperature_limit: int = 70
    current: float = 0.0
    temperature: float = _AMBIENT
    blocked: bool = False
    torn: bool = False
    heated: bool = False
    surging: bool = False
    speed: float = 0.0
    _stalled: float = 0.0
    _pull: float = 0.0

    def __post_init__(self) -> None:
        """It comes with the factory's limit."""
        self.current_limit = self.goal_current = self.type.highest_current

    @property
    def limit(self) -> float:
        """What it pulls with at most, A."""
        return min(self.goal_current, self.current_limit) if self.is_limited else self.type.highest_current

    @property
    def pull(self) -> float:
        """Pull of the tendon beyond its taut length at rest, m."""
        return self.torn_pull if self.torn else self._pull

    def stop(self) -> None:
        """Stay where it is."""
        self.goal = self.position

    def advance(self, duration: float, tension: float) -> None:
        """Let `duration` s pass under a tension of the tendon, N."""
        load = 0.0 if self.torn else tension * self.drum_radius / self.type.torque_constant  # A, against the position
        driven = self.torque_on and not self.hardware_error
        wanted = 0.0
        if driven:
            fastest = self.type.no_load_speed
            top = fastest if self.profile_speed <= 0.0 else min(self.profile_speed, fastest)
            distance = (self.goal - self.position) / TICKS_A_TURN
            wanted = float(np.clip(distance / _LAG, -top, top))
        self.speed += (wanted - self.speed) * min(1.0, duration / _LAG)
        needed = load + _FRICTION_CURRENT * np.sign(wanted) * (abs(wanted) > 1e-3)
        limit = self.limit
        held_back = abs(needed) > limit and needed * wanted > 0.0
        if self.blocked and abs(self.goal - self.position) > 2.0:
            needed, held_back = limit * np.sign(self.goal - self.position), True
        if self.blocked or held_back or not driven:
            self.speed = 0.0
        self.current = float(np.clip(needed, -limit, limit)) if driven else 0.0
        if self.surging and driven:
            self.current = _SURGE * limit
        self.position += self.speed * duration * TICKS_A_TURN
        self._stalled = self._stalled + duration if driven and abs(needed) > self.type.overload_current else 0.0
        self._heat(duration)
        if self._stalled > STALLED_SECONDS:
            self.hardware_error |= OVERLOADED
        turned = (self.position - self.home) / TICKS_A_TURN * 2.0 * np.pi * self.drum_radius
        half = 0.5 * self.backlash
        self._pull = float(np.clip(self._pull, turned - half, turned + half))

    def _heat(self, duration: float) -> None:
        power = self.type.resistance * self.current**2 - _COOLING * (self.temperature - _AMBIENT)
        self.temperature = _HOT if self.heated else self.temperature + power * duration / _HEAT_CAPACITY
        if self.temperature > self.temperature_limit:
            self.hardware_error |= OVERHEATED

    def reboot(self) -> None:
        """Forget the turns, the error and all goals, as a motor does that loses power."""
        turns = np.floor(self.position / TICKS_A_TURN) * TICKS_A_TURN
        self.position, self.home = self.position - turns, self.home - turns
        self.goal, self.goal_current, self.profile_speed = self.position, self.current_limit, 0.0
        self.torque_on, self.hardware_error, self._stalled = False, 0, 0.0
