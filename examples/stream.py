# SPDX-License-Identifier: Apache-2.0
"""Stream targets to a running stack, fifty a second: a shape that breathes.

Start a stack first (`./softform launch`), then `./softform python examples/stream.py [SECONDS]`.
"""

import sys
from collections.abc import Iterator

import numpy as np

from softform_client.client import ShapeClient
from softform_core.shapes.random import random_target
from softform_core.shapes.shape import Shape

RATE = 50.0  # Hz


def breathing(shape: Shape, seconds: float) -> Iterator[Shape]:
    """The shape, up to a tenth lower, once in four seconds."""
    for time in np.arange(0.0, seconds, 1.0 / RATE):
        height = 0.95 + 0.05 * np.cos(2.0 * np.pi * time / 4.0)
        yield Shape(shape.points * [1.0, 1.0, height])


def main(seconds: float = 8.0) -> float:
    """Return the mean distance of the last prediction from the last target, mm."""
    with ShapeClient("/softform", timeout=30.0) as client:
        shape = random_target(client.robot(), seed=3)
        states = list(client.stream(breathing(shape, seconds), rate=RATE))
    last = states[-1]
    print(
        f"{last.targets} targets, {last.commands} commands, {last.deadlines_missed} late; {last.reason or 'followed'}"
    )
    print(f"{1e3 * last.mean_error:.2f} mm from the last target, by the prediction")
    return 1e3 * float(last.mean_error)


if __name__ == "__main__":
    main(*map(float, sys.argv[1:2]))
