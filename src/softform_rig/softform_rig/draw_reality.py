"""Realities at random: a distribution for every kind of body, of which a seed draws one.

The ranges and their reasons are in docs/notes/realities-at-random.md. Settings are chosen on seeds below
`HELD_OUT_SEED`; figures are published from it on.
"""

import math
from typing import Any

import numpy as np

from softform_core.bodies.random_fields import log_uniform, some_of
from softform_core.robots import Robot
from softform_core.robots.body import Body
from softform_rig.reality import (
    MOTOR_BUS,
    PNEUMATIC_BOARD,
    RAYS_AROUND,
    Creep,
    MotionCaptureDescription,
    MotorErrors,
    PressureSensors,
    Reality,
    ScannerDescription,
)

HELD_OUT_SEED = 1000
"""First seed of the published figures."""

_CHANCES = {"pressure_sensors": 0.9, "motors": 0.9, "hysteresis": 0.6, "creep": 0.5}


def draw_reality(robot: Robot, seed: int) -> Reality:
    """The reality of this seed, the same for the same robot and seed.

    Raises:
        TypeError: If this kind of body has no realities.
    """
    draw = np.random.default_rng(seed)
    body = robot.body.drawn_reality(draw)
    count, span = len(robot.actuators), float(np.mean(robot.actuator_max - robot.actuator_min))
    differences: dict[str, Any] = {
        "pressure_sensors": PressureSensors(
            gain=np.clip(draw.normal(1.0, 0.03, count), 0.91, 1.09).tolist(),
            offset=draw.normal(0.0, 0.012 * span, count).tolist(),
        ),
        "motors": MotorErrors(
            drum_radius=np.clip(draw.normal(1.0, 0.01, count), 0.97, 1.03).tolist(),
            homing=draw.normal(0.0, 0.005 * span, count).tolist(),
            backlash=draw.uniform(0.0, 0.01) * span,
        ),
        "hysteresis": draw.uniform(0.004, 0.04) * span,
        "creep": Creep(share=draw.uniform(0.01, 0.04), time=log_uniform(draw, 5.0, 60.0)),
    }
    kinds = {device.kind for device in robot.devices}
    for kind, errors in ((PNEUMATIC_BOARD, "pressure_sensors"), (MOTOR_BUS, "motors")):
        if kind not in kinds:
            del differences[errors]
    return Reality(
        name=f"drawn:{seed}",
        title=f"Reality {seed} of the distribution",
        body=body,
        scanner=_scanner(draw, robot.body),
        motion_capture=_motion_capture(draw),
        **some_of(differences, _CHANCES, draw),
    )


def _scanner(draw: np.random.Generator, body: Body) -> ScannerDescription:
    """A scanner that looks at a sheet from above, or goes around an arm."""
    is_arm = any(body.patches.values())
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
