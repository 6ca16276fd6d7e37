"""What can be fuzzed: functions that packages register as entry points of the group `softform.fuzz`.

A target takes bytes. It returns if they are rejected in the right way or read as something consistent, and raises
`AssertionError` if something inconsistent was accepted; whatever else it raises is a crash. Its module may have
`SEEDS`: valid inputs by the name of the function, from which mutation starts.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points

from softform_core.errors import SoftformError

GROUP = "softform.fuzz"

Target = Callable[[bytes], None]


def target_names() -> list[str]:
    """Names of the registered targets."""
    return sorted({point.name for point in entry_points(group=GROUP)})


def package_of(name: str) -> str:
    """Top-level package of a target; "" if there is no such target."""
    return next((point.value.partition(".")[0] for point in entry_points(group=GROUP, name=name)), "")


def load_target(name: str) -> Target:
    """A target by its name.

    Raises:
        SoftformError: If there is none.
    """
    for point in entry_points(group=GROUP, name=name):
        target: Target = point.load()
        return target
    raise SoftformError(f"There is no fuzz target '{name}'.", f"Use one of: {', '.join(target_names()) or 'none'}.")


def seeds_of(target: Target) -> list[bytes]:
    """Valid inputs of a target; an empty one if its module has none."""
    seeds: Mapping[str, Sequence[bytes]] = getattr(sys.modules[target.__module__], "SEEDS", {})
    return [bytes(seed) for seed in seeds.get(target.__name__, ())] or [b""]
