"""What can be fuzzed: functions that packages register as entry points of the group `softform.fuzz`.

A target takes bytes. It returns if they are rejected in the right way or read as something consistent, and raises
`AssertionError` if something inconsistent was accepted; whatever else it raises is a crash. Its module may have
`SEEDS`: valid inputs by the name of the function, from which mutation starts.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points

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
