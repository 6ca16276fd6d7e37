"""Pneumatic dynamics of the board's channels: pumps with a lag and a stall pressure, a leak, a valve that vents.

Pressures in kPa gauge, times in seconds, as on the board.
"""

import math

import numba
import numpy as np
from numpy.typing import NDArray

from softform_core.plant import Plant

SHARE_BEFORE_BLOCK = 0.1
"""Share of the volume of tube and chamber that lies between the board and a kink in the tube."""


@numba.njit(cache=True)
def _lagged(state: float, command: float, lag: float, duration: float) -> tuple[float, float]:
    decay = math.exp(-duration / lag)
    mean = command + (state - command) * lag / duration * (1.0 - decay)
    return command + (state - command) * decay, mean


@numba.njit(cache=True)
def _turning(duty: float, dead_duty: float) -> float:
    return max(0.0, duty - dead_duty) / (1.0 - dead_duty)


@numba.njit(cache=True)
def advance(
    pressure: NDArray[np.float64],
    speed: NDArray[np.float64],
    inflate: NDArray[np.float64],
    deflate: NDArray[np.float64],
    vent: NDArray[np.bool_],
    shut: NDArray[np.bool_],
    extra_leak: NDArray[np.float64],
    volume: NDArray[np.float64],
    coefficients: NDArray[np.float64],
    duration: float,
) -> None:
    """Move all channels forward in place with constant commands.

    dp/dt = r₊ s₊ (1 − p/P₊) − r₋ s₋ (1 + p/P₋) − p/τ_leak − [hold] p/τ_hold − [vent] p/τ_vent, with pump speeds s± that
    follow their duty by a first-order lag; a channel holds while its pumps get no power and its valve is closed. Each
    speed's mean over the step makes the equation linear in p, so the step is exact for it.

    Args:
        pressure: (n,) kPa gauge, updated.
        speed: (n, 2) pump speeds 0…1 (inflation, deflation), updated.
        inflate: (n,) duty of the inflation pumps.
        deflate: (n,) duty of the deflation pumps.
        vent: (n,) valves that vent.
        shut: (n,) valves that stick between their seats: nothing but leaks reaches the chamber.
        extra_leak: (n,) leaks that a sound channel does not have, 1/s.
        volume: (n,) what pumps and valve fill, over the whole of tube and chamber.
        coefficients: `Plant.coefficients()`.
        duration: Duration, s.
    """
    rate_in, stall_in, dead_in, lag_in, rate_out, stall_out, dead_out, lag_out = coefficients[:8]
    leak_time, hold_time, vent_time = coefficients[8:]
    for channel in range(pressure.shape[0]):
        speed[channel, 0], mean_in = _lagged(speed[channel, 0], _turning(inflate[channel], dead_in), lag_in, duration)
        speed[channel, 1], mean_out = _lagged(
            speed[channel, 1], _turning(deflate[channel], dead_out), lag_out, duration
        )
        leak = volume[channel] / leak_time + extra_leak[channel]
        if shut[channel]:
            pressure[channel] *= math.exp(-leak * duration)
            continue
        source = rate_in * mean_in - rate_out * mean_out
        decay_rate = rate_in * mean_in / stall_in + rate_out * mean_out / stall_out + leak
        if vent[channel]:
            decay_rate += 1.0 / vent_time
        elif inflate[channel] == 0.0 and deflate[channel] == 0.0:
            decay_rate += 1.0 / hold_time
        settled = source / decay_rate
        decay = math.exp(-decay_rate / volume[channel] * duration)
        pressure[channel] = settled + (pressure[channel] - settled) * decay


class Channels:
    """All channels of one board as physical state.

    Attributes:
        pressure: (n,) kPa gauge at the board's sensors.
        chamber_pressure: (n,) kPa gauge in the chambers; the same but where a tube is blocked.
        inflate: (n,) duty of the inflation pumps.
        deflate: (n,) duty of the deflation pumps.
        vent: (n,) valves that vent.
        shut: (n,) valves that stick between their seats.
        extra_leak: (n,) leaks that a sound channel does not have, 1/s.
    """

    def __init__(self, plant: Plant, count: int) -> None:
        """Start `count` channels at ambient pressure with standing pumps."""
        self.pressure: NDArray[np.float64] = np.zeros(count)
        self.inflate: NDArray[np.float64] = np.zeros(count)
        self.deflate: NDArray[np.float64] = np.zeros(count)
        self.vent: NDArray[np.bool_] = np.ones(count, dtype=bool)
        self.shut: NDArray[np.bool_] = np.zeros(count, dtype=bool)
        self.extra_leak: NDArray[np.float64] = np.zeros(count)
        self._blocked: NDArray[np.bool_] = np.zeros(count, dtype=bool)
        self._beyond_block: NDArray[np.float64] = np.zeros(count)
        self._speed: NDArray[np.float64] = np.zeros((count, 2))
        self._coefficients = plant.coefficients()
        self._leak = 1.0 / plant.leak_time

    @property
    def chamber_pressure(self) -> NDArray[np.float64]:
        """(n,) kPa gauge in the chambers."""
        return np.where(self._blocked, self._beyond_block, self.pressure)

    def stop(self, channels: list[int] | None = None) -> None:
        """Stop the pumps and open the valves of `channels`, by default of all."""
        chosen = slice(None) if channels is None else channels
        self.inflate[chosen] = self.deflate[chosen] = 0.0
        self.vent[chosen] = True

    def block(self, blocked: NDArray[np.bool_]) -> None:
        """Say which tubes (n,) are blocked now; where one opens, what is before and behind it mixes by volume."""
        opened = self._blocked & ~blocked
        mixed = self._beyond_block + SHARE_BEFORE_BLOCK * (self.pressure - self._beyond_block)
        self.pressure[opened] = mixed[opened]
        self._beyond_block[blocked & ~self._blocked] = self.pressure[blocked & ~self._blocked]
        self._blocked = blocked.copy()

    def advance(self, duration: float) -> None:
        """Let `duration` seconds pass with the present commands."""
        volume = np.where(self._blocked, SHARE_BEFORE_BLOCK, 1.0)
        leak = np.where(self._blocked, 0.0, self.extra_leak)
        commands = (self.inflate, self.deflate, self.vent, self.shut)
        advance(self.pressure, self._speed, *commands, leak, volume, self._coefficients, duration)
        self._beyond_block *= np.exp(-(self._leak + self.extra_leak) * duration)
