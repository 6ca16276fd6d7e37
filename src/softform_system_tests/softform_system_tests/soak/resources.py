"""Memory, threads and file descriptors of processes over time, and whether they grow."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import psutil

MB = 2.0**20
FLOORS = {"memory_mb": 2.0, "threads": 0.5, "file_descriptors": 0.5}
"""Growth over a whole run that is not growth: an allocator that returns pages late, a thread that is just starting."""

_NOISES = 3.0
_SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True)
class Usage:
    """What one process held at one moment."""

    seconds: float
    memory_mb: float
    threads: int
    file_descriptors: int


@dataclass(frozen=True)
class Trend:
    """A straight line by least squares through one quantity.

    Attributes:
        mean: Mean of the quantity.
        slope_per_hour: Slope of the fitted line per hour.
        noise: Standard deviation from the line.
        growth: Growth of the line over the run.
        late_growth: Growth of a line fitted to the second half of the run.
        grows: Whether `growth` is more than three times the noise, and both are more than their part of the quantity's
            floor: a leak goes on growing; a heap that was needed larger once, and stays so, does not.
    """

    mean: float
    slope_per_hour: float
    noise: float
    growth: float
    late_growth: float
    grows: bool

    def as_dict(self) -> dict[str, object]:
        """Rounded, for JSON."""
        return {key: round(value, 2 if key == "mean" else 3) for key, value in vars(self).items()} | {
            "grows": self.grows
        }


def usage(process: psutil.Process, seconds: float) -> Usage:
    """What a process holds now; memory is its resident set.

    Raises:
        psutil.NoSuchProcess: If it has ended.
    """
    with process.oneshot():
        return Usage(seconds, process.memory_info().rss / MB, process.num_threads(), process.num_fds())


def trend(seconds: Sequence[float], values: Sequence[float], floor: float) -> Trend:
    """Fit a line through at least four values (n,) at moments (n,) s; growth below `floor` is none."""
    moments, held = np.asarray(seconds, dtype=np.float64), np.asarray(values, dtype=np.float64)
    slope, offset = np.polyfit(moments, held, 1)
    noise = float(np.std(held - (slope * moments + offset), ddof=2))
    growth = float(slope * (moments[-1] - moments[0]))
    half = len(moments) // 2
    late_growth = float(np.polyfit(moments[half:], held[half:], 1)[0] * (moments[-1] - moments[half]))
    grows = growth > max(floor, _NOISES * noise) and late_growth > 0.5 * floor
    return Trend(float(held.mean()), float(slope) * _SECONDS_PER_HOUR, noise, growth, late_growth, grows)


def trends(samples: Mapping[str, Sequence[Usage]], after: float) -> dict[str, dict[str, Trend]]:
    """Trends of each process, by quantity, after so many seconds: caches fill, threads start."""
    found = {}
    for name, all_of_them in samples.items():
        counted = [each for each in all_of_them if each.seconds >= after]
        if len(counted) >= 4:
            moments = [each.seconds for each in counted]
            found[name] = {
                quantity: trend(moments, [getattr(each, quantity) for each in counted], floor)
                for quantity, floor in FLOORS.items()
            }
    return found
