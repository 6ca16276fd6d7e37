"""The arms of one controller as a device of the driver: points of a trajectory out, brakes whenever it is not sure."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softform_actuation.device import (
    DeviceError,
    DeviceHealth,
    Measurement,
    Rest,
    SafeAction,
    ServedActuators,
    UnsafeError,
    never,
)
from softform_actuation.serial_link import SerialLink
from softform_arms.lines import Line, LineReader, packed, written
from softform_arms.settings import arm_settings
from softform_core.arrays import Array
from softform_core.robots.actuators import each

__all__ = ["STILL_SPEED", "Arms"]

STILL_SPEED = 0.002
"""rad/s below which a joint counts as standing still."""

_HOLD = b"\n" + packed("H")  # also behind half of another line
_ANSWER_SECONDS = 0.4
_BRAKED_SECONDS = 0.3
"""Within which brakes have stopped all joints; later, one that moves is a complaint."""
_DRIFT = 0.5
"""Of the tolerance `settle`: what moved by more since it was held has a brake that slips."""
_TOO_FAST, _TOO_FAST_SECONDS = 1.2, 0.2
_TAKEN = 1e-5
"""By which a limit that the controller has taken may differ from what it was told."""

_BY_ITSELF = {
    "B": "the brakes are on",
    "W": "no point of the trajectory reached it in time",
    "E": "its stop button is pressed",
}


class State(NamedTuple):
    """What the controller says of its joints, in the order of the description.

    Attributes:
        mode: See `lines`.
        places: (k,) rad.
        speeds: (k,) rad/s.
    """

    mode: str
    places: Array
    speeds: Array


class Arms:
    """A `Device`: joints that follow streamed positions.

    The controller keeps limits of velocity and acceleration that it was told and has confirmed, and brakes by itself
    when no point comes for `watchdog`: so a driver that is frozen moves nothing, before its guardian notices. Safe is
    to hold with brakes, once all joints were measured to stand still.

    Raises:
        SoftformError: If the description's settings are wrong.
    """

    safe_action = SafeAction.HOLD

    def __init__(self, served: ServedActuators, link: SerialLink, baud_rate: int) -> None:
        self._served, self._link, self._baud_rate = served, link, baud_rate
        self.clock, self._settings = link.clock, arm_settings(served)
        self._order: NDArray[np.int64] = np.array(served.channels)
        count = len(served.actuators)
        self._velocity = each(self._settings.velocity, count)
        self._acceleration = each(self._settings.acceleration, count)
        self._lines = LineReader()
        self._drives = self.is_holding = False
        self._held: Array | None = None
        self._safe_since = 0.0
        self._too_fast_since = np.full(count, np.inf)
        self._mode = ""

    @property
    def identity(self) -> str:
        """How many joints, on which port."""
        return f"arms of {len(self._order)} joints on {self._link.path}"

    def open(self, interrupted: Callable[[], bool] = never) -> None:
        """As `Device.open`: the brakes go on, and the controller takes the limits of the description."""
        self._link.open(self._baud_rate)
        try:
            self._link.guard(_HOLD)
            self._lines.forget()
            if not self.make_safe():
                raise DeviceError(f"{self.identity} do not confirm that they hold.", "Press their stop button.")
            if interrupted():
                raise DeviceError("The connection to the arms was interrupted.", "Configure the driver again.")
            found = self._ask("W", "I")
            if found != [str(len(self._order))]:
                raise DeviceError(
                    f"The controller on {self._link.path} has {' '.join(found) or 'no'} joints, the description "
                    f"{len(self._order)}.",
                    "Check the port, and the channels of the description.",
                )
            self._set_limits()
        except BaseException:
            self.close()
            raise

    def _set_limits(self) -> None:
        """Tell the controller its limits, and compare what it has taken: an unread limit is none."""
        served = self._served
        limits = [self._velocity, self._acceleration, served.actuator_min, served.actuator_max]
        wanted = np.concatenate([[self._settings.watchdog], *(self._to_wire(one) for one in limits)])
        taken = self._numbers(self._ask("L", "L", written(wanted)), len(wanted))
        if taken is None or (np.abs(taken - wanted) > _TAKEN).any():
            what = "nothing readable" if taken is None else f"{written(taken[np.abs(taken - wanted) > _TAKEN])}"
            raise DeviceError(
                f"{self.identity} do not take the limits of the description: they have {what}.",
                "Lower velocity, acceleration or range to what the arms allow.",
            )

    def test(self, interrupted: Callable[[], bool]) -> None:
        """Nothing to find out: a joint that does not follow, or a brake that slips, is measured as it is driven."""

    def begin(self) -> Array:
        """As `Device.begin`: brakes off, where the joints are.

        Raises:
            DeviceError: If the controller does not release its brakes, as while its stop button is pressed.
        """
        self._held, self.is_holding = None, False
        self._too_fast_since[:] = np.inf
        try:
            self._link.write(packed("D"))
            kind, words = self._answer("D", "E")
            places = self._numbers(words, len(self._order))
            if kind == "E" or places is None:
                raise DeviceError(
                    f"{self.identity} do not release their brakes: their stop button is pressed.",
                    "Look why, release it, then reset.",
                )
        except BaseException:
            self.make_safe()
            raise
        self._drives = True
        return places[self._order]

    def set_targets(self, targets: Array, interrupted: Callable[[], bool]) -> bool:
        """As `Device.set_targets`: the next point; one that gets lost is followed by another in the next period."""
        self._link.write(packed("T", written(self._to_wire(targets))))
        return True

    def read(self, timeout: float) -> list[Measurement]:
        """As `Device.read`.

        Raises:
            UnsafeError: If the arms braked by themselves, or a joint is faster than its limit.
        """
        found = []
        for kind, words in self._received(timeout):
            if kind != "S" or (state := self._state(words)) is None:
                continue
            now = self.clock.now()
            if self._drives:
                self._look(state, now)
            found.append(Measurement(state.places, now))
        return found

    def _look(self, state: State, now: float) -> None:
        if state.mode != "D":
            raise UnsafeError(
                f"{self.identity} have stopped by themselves: {_BY_ITSELF.get(state.mode, state.mode)}.",
                "Look what stopped them, then reset.",
            )
        is_over = np.abs(state.speeds) > _TOO_FAST * self._velocity
        self._too_fast_since = np.where(is_over, np.minimum(self._too_fast_since, now), np.inf)
        for index in np.flatnonzero(now - self._too_fast_since > _TOO_FAST_SECONDS).tolist():
            raise UnsafeError(
                f"{self._served.actuators[index]} turns at {state.speeds[index]:.2f} rad/s; its limit is "
                f"{self._velocity[index]:g} rad/s.",
                "Press the stop button of the arms if it goes on; check the joint's drive, then reset.",
            )

    def make_safe(self) -> bool:
        """As `Device.make_safe`: brakes on; whether all joints stand still is measured by `check`."""
        self._drives = self.is_holding = False
        self._held, self._safe_since = None, self.clock.now()
        self._link.write(_HOLD)
        try:
            self._answer("H")
        except DeviceError:
            if not self._link.is_open:
                raise
            return False
        return True

    def check(self) -> Rest:
        """As `Device.check`: held are joints with their brakes on that were measured to stand still, where they were.

        Raises:
            DeviceError: If the controller does not answer.
        """
        state = self._state(self._ask("Q", "S"))
        if state is None:
            raise DeviceError(f"{self.identity} answer what cannot be read.", "Check their cable.")
        is_late = self.clock.now() - self._safe_since >= _BRAKED_SECONDS
        moves = np.abs(state.speeds) > STILL_SPEED
        if self._held is not None:
            moves |= np.abs(state.places - self._held) > _DRIFT * self._served.tolerances.settle
        elif is_late and not moves.any():
            self._held = state.places
        complaint = ""
        if is_late and state.mode == "D":
            complaint = f"{self.identity} are driven though they were asked to hold: press their stop button"
        elif is_late and moves.any():
            names = ", ".join(np.array(self._served.actuators)[moves])
            complaint = f"{names} moves on though its brake is on: press the stop button, and support the arm"
        self.is_holding = is_late and not complaint
        return Rest(state.places, np.zeros(len(moves), dtype=bool), complaint)

    def calibrate(self, interrupted: Callable[[], bool]) -> str:
        """Nothing to calibrate: encoders of arms are absolute."""
        return ""

    def close(self) -> None:
        """As `Device.close`."""
        is_sure, self.is_holding = self.is_holding, False
        self._link.close(emergency=not is_sure)

    def health(self) -> DeviceHealth:
        """As `Device.health`."""
        return DeviceHealth({"mode": self._mode, "holding": self.is_holding, "damaged lines": self._lines.damaged})

    def _to_wire(self, values: Array) -> Array:
        """Values (k,) in the order of the controller's joints."""
        found = np.empty(len(values))
        found[self._order] = values
        return found

    def _numbers(self, words: list[str], count: int) -> Array | None:
        """So many finite numbers, or None."""
        try:
            found = np.array(words, dtype=np.float64)
        except ValueError:
            return None
        return found if found.shape == (count,) and np.isfinite(found).all() else None

    def _state(self, words: list[str]) -> State | None:
        count = len(self._order)
        numbers = self._numbers(words[1:], 2 * count) if words else None
        if numbers is None:
            return None
        self._mode = words[0]
        return State(words[0], numbers[:count][self._order], numbers[count:][self._order])

    def _ask(self, request: str, answer: str, words: list[str] | None = None) -> list[str]:
        self._link.write(packed(request, words or ()))
        return self._answer(answer)[1]

    def _answer(self, *kinds: str) -> Line:
        end = self.clock.now() + _ANSWER_SECONDS
        while (left := end - self.clock.now()) > 0.0:
            for line in self._received(left):
                if line[0] in kinds:
                    return line
        raise DeviceError(f"{self.identity} do not answer.", "Check their power and cable.")

    def _received(self, timeout: float) -> list[Line]:
        return self._lines.feed(self._link.receive(timeout))
