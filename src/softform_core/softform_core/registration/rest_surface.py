"""The surface of a robot at rest: where on the robot a point of space belongs."""

from dataclasses import dataclass

from softform_core.arrays import Array
from softform_core.robots import Robot
from softform_core.simulation.simulated_body import SimulatedBody, rest_points
from softform_core.surface.patch_set import ParametrisedSurface

_SAMPLES = 65 * 65
_KEPT = 4


@dataclass(frozen=True)
class RestSurface:
    """The surface of the resting body.

    Attributes:
        mesh: Parametrised mesh of the surface.
        vertices: (V, 3) m of the body's mesh.
        control_points: (C, 3) m, of all patches.
        points: (P, 3) m over `patches.samples(P)`.
    """

    mesh: ParametrisedSurface
    vertices: Array
    control_points: Array
    points: Array


_surfaces: dict[str, RestSurface] = {}


def rest_surface(robot: Robot) -> RestSurface:
    """Return the surface of a robot's simulated body at rest; kept for the next call.

    Raises:
        SoftformError: If the robot has no surface, or its mesh cannot be parametrised.
    """
    key = robot.fingerprint()
    if key not in _surfaces:
        while len(_surfaces) >= _KEPT:
            _surfaces.pop(next(iter(_surfaces)))
        _surfaces[key] = rest_surface_of(robot, robot.body.simulator())
    return _surfaces[key]


def rest_surface_of(robot: Robot, body: SimulatedBody) -> RestSurface:
    """Return the surface of a body of `robot` at rest, such as of one with the differences of a reality.

    Raises:
        SoftformError: For the reasons of `rest_surface`.
    """
    patches, vertices = robot.patches, rest_points(body)
    mesh = robot.parametrised(vertices, body.faces)
    control = mesh.fit(vertices)
    return RestSurface(mesh, vertices, control, patches.evaluate(control, patches.samples(_SAMPLES)))
