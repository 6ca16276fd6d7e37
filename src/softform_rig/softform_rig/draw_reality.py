"""Realities at random: a distribution for every kind of body, of which a seed draws one.

The ranges and their reasons are in docs/notes/realities-at-random.md. Settings are chosen on seeds below
`HELD_OUT_SEED`; figures are published from it on.
"""

import math
from typing import Any

import numpy as np

from softform_core.arrays import Array
from softform_core.bodies.realities import log_uniform, one_or_each, some_of
from softform_core.robots import Robot
from softform_core.robots.body import Body
from softform_rig.emulation import emulations
from softform_rig.material_memory import BoucWen, Creep, HysteresisLaw, Plays
from softform_rig.reality import RAYS_AROUND, MotionCaptureDescription, Reality, ScannerDescription

HELD_OUT_SEED = 1000
"""First seed of the published figures."""

_CHANCES = {"hysteresis": 0.6, "creep": 0.5}
_CHANCE_OF_ERRORS = 0.9
_LAWS = (0.25, 0.4, 0.35)
"""Chances of one play, of several, and of Bouc and Wen's law, where there is hysteresis."""
_SLOWER, _EYRING = 0.5, 0.3
"""Chances of a second creep and of Eyring's law, where there is creep."""
_DRAWN_FOR_ALL = ("pneumatic_board", "dynamixel")
"""Whose errors are drawn first, of a robot without them, too: so a seed stays the same reality."""


def draw_reality(robot: Robot, seed: int) -> Reality:
    """The reality of this seed, the same for the same robot and seed.

    Raises:
        TypeError: If this kind of body has no realities.
    """
    draw = np.random.default_rng(seed)
    body = robot.body.drawn_reality(draw)
    spans = _spans(robot)
    kinds = {device.kind for device in robot.devices}
    known, differences = emulations(), dict[str, Any]()
    for kind in [*_DRAWN_FOR_ALL, *sorted(kinds & known.keys() - set(_DRAWN_FOR_ALL))]:
        errors = known[kind].drawn(spans, draw)
        if kind in kinds and known[kind].field:
            differences[known[kind].field] = errors
    chances = dict.fromkeys(differences, _CHANCE_OF_ERRORS) | _CHANCES
    (other,) = draw.spawn(1)  # the laws of memory leave all else of a seed as it is
    differences["hysteresis"] = drawn_hysteresis(draw.uniform(0.004, 0.04) * spans, other)
    fast = Creep(share=draw.uniform(0.01, 0.04), time=log_uniform(draw, 5.0, 60.0))
    differences["creep"] = drawn_creep(fast, spans, other)
    return Reality(
        name=f"drawn:{seed}",
        title=f"Reality {seed} of the distribution",
        body=body,
        scanner=_scanner(draw, robot.body),
        motion_capture=_motion_capture(draw),
        **some_of(differences, chances, draw),
    )


def drawn_hysteresis(lag: Array, draw: np.random.Generator) -> HysteresisLaw:
    """A law at random by which actuators (k,) stay behind by so much on a long way, in the mean of them."""
    law = draw.choice(["play", "plays", "bouc_wen"], p=_LAWS)
    spread = draw.uniform(0.0, 0.35)
    scale = lag / lag[0] * np.exp(draw.normal(0.0, spread, len(lag)))
    if law == "play":
        return (lag[0] * scale).tolist()
    if law == "plays":
        count = int(draw.integers(3, 9))
        weights, widths = draw.dirichlet(np.ones(count)) * draw.uniform(0.6, 1.0), draw.uniform(0.1, 1.0, count)
        widths *= lag[0] / (weights @ widths)
        return Plays(widths=widths.tolist(), weights=weights.tolist(), scale=scale.tolist())
    return BoucWen(
        lag=float(lag[0]),
        steepness=draw.uniform(0.5, 0.95),
        exponent=draw.uniform(1.0, 3.0),
        beta=draw.uniform(0.5, 0.9),
        asymmetry=draw.uniform(-0.2, 0.2),
        scale=scale.tolist(),
    )


def drawn_creep(fast: Creep, spans: Array, draw: np.random.Generator) -> list[Creep]:
    """This creep, sometimes by Eyring's law over ranges (k,) of the actuators, sometimes with a slower one."""
    slow = Creep(share=draw.uniform(0.005, 0.03), time=log_uniform(draw, 60.0, 300.0))
    overstress = one_or_each(spans * log_uniform(draw, 0.02, 0.2))
    both = [fast, slow] if draw.random() < _SLOWER else [fast]
    return [one.model_copy(update={"overstress": overstress}) for one in both] if draw.random() < _EYRING else both


def _spans(robot: Robot) -> Array:
    """Range of each actuator, (k,): the mean of all of its quantity, in their unit."""
    spans, quantities = robot.actuator_max - robot.actuator_min, np.array(robot.actuator_quantities)
    return np.array([np.mean(spans[quantities == quantity]) for quantity in quantities])


def _scanner(draw: np.random.Generator, body: Body) -> ScannerDescription:
    """A scanner that looks at a sheet from above, or goes around an arm."""
    is_arm = body.goes_around
    place = _around(draw, body) if is_arm else {"viewpoints": _above(draw, body.size)}
    return ScannerDescription(
        **place,
        noise=log_uniform(draw, 1e-4, 4e-4),
        outlier_fraction=draw.uniform(0.0, 0.01),
        grazing_angle=draw.uniform(65.0, 80.0),
        holes=log_uniform(draw, 2.0, 14.0),
        hole_radius=body.size * (draw.uniform(0.06, 0.1) if is_arm else draw.uniform(0.09, 0.15)),
        registration_shift=log_uniform(draw, 5e-5, 2.5e-4),
        registration_turn=log_uniform(draw, 3e-4, 1.5e-3),
    )


def _above(draw: np.random.Generator, size: float) -> list[tuple[float, float, float]]:
    """One to three viewpoints (m) over a sheet of this size (m)."""
    views, first = int(draw.choice([1, 2, 3], p=[0.2, 0.5, 0.3])), draw.uniform(0.0, 2.0 * math.pi)
    viewpoints = []
    for number in range(views):
        azimuth = first + 2.0 * math.pi * (number + draw.uniform(-0.2, 0.2)) / views
        tilt, distance = math.radians(draw.uniform(10.0, 30.0)), size * draw.uniform(1.5, 2.0)
        across = distance * math.sin(tilt)
        viewpoints.append((across * math.cos(azimuth), across * math.sin(azimuth), distance * math.cos(tilt)))
    return viewpoints


def _around(draw: np.random.Generator, body: Body) -> dict[str, Any]:
    """Three or four viewpoints around an arm along z, from which its whole wall can be seen, and what they look at."""
    middle = np.mean(body.box, axis=0)
    views, first = int(draw.choice([3, 4])), draw.uniform(0.0, 2.0 * math.pi)
    viewpoints = []
    for number in range(views):
        azimuth = first + 2.0 * math.pi * (number + draw.uniform(-0.1, 0.1)) / views
        climb, distance = math.radians(draw.uniform(-20.0, 20.0)), body.size * draw.uniform(1.8, 2.4)
        direction = np.array([math.cos(azimuth), math.sin(azimuth), math.tan(climb)]) * math.cos(climb)
        viewpoints.append(tuple((middle + distance * direction).tolist()))
    return {"viewpoints": viewpoints, "look_at": tuple(middle.tolist()), "rays": RAYS_AROUND}


def _motion_capture(draw: np.random.Generator) -> MotionCaptureDescription:
    return MotionCaptureDescription(
        noise=log_uniform(draw, 5e-5, 2e-4),
        placement_error=log_uniform(draw, 2e-4, 5e-4),
        missing=draw.uniform(0.0, 0.1),
    )
