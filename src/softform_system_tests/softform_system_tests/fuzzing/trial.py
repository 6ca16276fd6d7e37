"""What can be fuzzed: functions that packages register as entry points of the group `softform.fuzz`.

A target takes bytes. It returns if they are rejected in the right way or read as something consistent, and raises
`AssertionError` if something inconsistent was accepted; whatever else it raises is a crash. Its module may have
`SEEDS`: valid inputs by the name of the function, from which mutation starts.
"""

import hashlib
import json
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from types import FrameType

from softform_core.files import write_atomically
from softform_core.plugins import load_plugin

GROUP = "softform.fuzz"

Target = Callable[[bytes], None]


def package_of(name: str) -> str:
    """Top-level package of a target; "" if there is no such target."""
    return next((point.value.partition(".")[0] for point in entry_points(group=GROUP, name=name)), "")


def load_target(name: str) -> Target:
    """A target by its name.

    Raises:
        SoftformError: If there is none.
    """
    target: Target = load_plugin(GROUP, name, "fuzz target")[0]
    return target


def seeds_of(target: Target) -> list[bytes]:
    """Valid inputs of a target; an empty one if its module has none."""
    seeds: Mapping[str, Sequence[bytes]] = getattr(sys.modules[target.__module__], "SEEDS", {})
    return [bytes(seed) for seed in seeds.get(target.__name__, ())] or [b""]


HANG_SECONDS = 2.0
"""Processor time after which one input counts as hanging."""

MOST_HANGS = 10
_TELL_EVERY = 2000
KINDS = ("crash", "hang", "wrong accept")


class _HangError(BaseException):
    """Raised by the timer within a target; no target may catch it."""


class Trial:
    """Counts so many inputs and what they led to; counts and failing inputs, with tracebacks, are in the folder."""

    def __init__(self, target: Target, folder: Path, inputs: int) -> None:
        self._target, self._folder, self._inputs = target, folder, inputs
        self.counts = {"inputs": 0, **dict.fromkeys(KINDS, 0)}
        self._seen: set[str] = set()
        self._started = time.monotonic()
        folder.mkdir(parents=True, exist_ok=True)
        signal.signal(signal.SIGVTALRM, _time_is_up)

    @property
    def is_over(self) -> bool:
        """Whether all inputs were tried, or more hung than anybody wants to wait for."""
        return self.counts["inputs"] >= self._inputs or self.counts["hang"] >= MOST_HANGS

    def take(self, data: bytes) -> None:
        """Try one input."""
        signal.setitimer(signal.ITIMER_VIRTUAL, HANG_SECONDS)
        try:
            self._target(data)
        except AssertionError as error:
            self._keep("wrong accept", data, error)
        except _HangError as error:
            self._keep("hang", data, error)
        except Exception as error:
            self._keep("crash", data, error)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        self.counts["inputs"] += 1
        if self.is_over or self.counts["inputs"] % _TELL_EVERY == 0:
            self.tell()

    def tell(self) -> None:
        """Write the counts."""
        counts = {**self.counts, "seconds": round(time.monotonic() - self._started, 1)}
        write_atomically(self._folder / "counts.json", json.dumps(counts).encode())

    def _keep(self, kind: str, data: bytes, error: BaseException) -> None:
        self.counts[kind] += 1
        frames = traceback.extract_tb(error.__traceback__)
        place = f"{kind} {type(error).__name__} {frames[-1].filename}:{frames[-1].lineno}"
        if place in self._seen and kind != "hang":
            return
        self._seen.add(place)
        stem = f"{kind.replace(' ', '-')}-{hashlib.sha1(data).hexdigest()[:12]}"
        (self._folder / stem).write_bytes(data)
        text = "".join(traceback.format_exception(error))
        (self._folder / f"{stem}.txt").write_text(f"{data!r}\n\n{text}", encoding="utf-8")


def _time_is_up(number: int, frame: FrameType | None) -> None:
    raise _HangError
