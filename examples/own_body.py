# SPDX-License-Identifier: Apache-2.0
"""A body of your own, for every command: a piston that moves a tip along z.

A package names it by `entry_points={"softform.bodies": ["piston = own_body:PistonBody"]}`, and a robot's description
by `body: {kind: piston, stroke: 0.1}`. docs/extending.md lists what else a body can say.
"""

from typing import ClassVar, Literal

import numpy as np

from softform_core.robots.body import Body, Outline
from softform_core.simulation.sampled_body import Solved


class PistonBody(Body):
    """A piston; its stroke at 1e5 Pa in m."""

    kind: Literal["piston"]
    stroke: float
    inputs: ClassVar[list[str]] = ["p"]
    frames: ClassVar[dict[str, int]] = {"tip": 3}
    size = property(lambda self: self.stroke)
    block, constants = property(lambda self: 16), property(lambda self: {})  # as data sets use it

    def outlines(self) -> list[Outline]:
        return [Outline("from the end", "ellipse", 0.0, 0.0, 0.02, 0.02)]

    def sampled(self) -> "PistonBody":
        return self

    def output_shapes(self, degrees_of_freedom: int) -> dict[str, tuple[int, ...]]:
        return {"tip": (3,), "jacobian": (3, degrees_of_freedom)}

    def solve(self, pressures: np.ndarray, by_actuation: np.ndarray) -> Solved:
        up = np.array([0.0, 0.0, self.stroke / 1e5])
        outputs = {"tip": pressures * up, "jacobian": up[None, :, None] * by_actuation}
        return Solved(outputs, np.ones(len(pressures), dtype=np.int64), [""] * len(pressures))
