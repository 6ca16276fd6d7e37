"""The simulators of layers: as described, for data sets, and as real ones differ from it.

docs/robots/mannequin.md explains every field of a reality.
"""

from typing import Annotated

import numpy as np
from pydantic import Field

from softform_core.bodies.layered.description import LayeredBody, Sheet
from softform_core.bodies.layered.equilibrium import LayeredProblem
from softform_core.bodies.layered.model import Layers, build_layers
from softform_core.bodies.realities import SHEETS, Values, another_silicone, positive, some_of, spread_values
from softform_core.robots.description import Description, Material, Positive
from softform_core.simulation.sampled_body import SampledSurface

SMOOTH = 2
"""Parts of a cell of the skin: flat cells of 10 mm are 0.15 mm from the sheet that they stand for."""


def simulator(body: LayeredBody) -> LayeredProblem:
    """The meshed sheets under a smooth skin."""
    return LayeredProblem(build_layers(body), SMOOTH)


def sampled(body: LayeredBody) -> SampledSurface:
    """The meshed sheets for data sets, of the vertices alone."""
    return SampledSurface(LayeredProblem(build_layers(body)))


_CHANCES = {
    "material": 0.8,
    "thickness_scale": 0.8,
    "tension_scale": 0.8,
    "shift_around": 0.7,
    "shift_upwards": 0.7,
}
"""That drawn layers differ in a field."""

_SHEETS = ("inner", "middle", "cover")


class RealLayers(Description):
    """The real layers. What is left out is as the robot's description says.

    Attributes:
        cell: Size of the cells of their mesh, m.
        material: Law of all sheets.
        thickness_scale: Thickness over the described one of the inner, the middle and the outer sheet.
        tension_scale: By how much each sheet was stretched when it was mounted, over the described stretch.
        shift_around: How far each chamber was glued off its place counter-clockwise, m.
        shift_upwards: How far upwards, m.
        contact_stiffness: Pa/m.
    """

    cell: Annotated[float, Field(ge=0.003, le=0.05)] | None = None
    material: Material | None = None
    thickness_scale: Values = 1.0
    tension_scale: Values = 1.0
    shift_around: Values = 0.0
    shift_upwards: Values = 0.0
    contact_stiffness: Positive | None = None


Reality = RealLayers


def real_simulator(nominal: LayeredBody, real: RealLayers) -> LayeredProblem:
    """The meshed sheets of a reality under a smooth skin; errors as `build_real_layers`."""
    return LayeredProblem(build_real_layers(nominal, real), SMOOTH)


def build_real_layers(nominal: LayeredBody, real: RealLayers) -> Layers:
    """The layers of a reality.

    Raises:
        ValueError: If a list does not fit the number of sheets or chambers, or a value is impossible.
        SoftformError: If a chamber is too small for the mesh, or shifts fold it.
    """
    thicker = spread_values(real.thickness_scale, len(_SHEETS), "thickness_scale", positive)
    tauter = spread_values(real.tension_scale, len(_SHEETS), "tension_scale", positive)
    changed: dict[str, object] = {}
    for name, scale, tension in zip(_SHEETS, thicker, tauter, strict=True):
        sheet: Sheet = getattr(nominal, name)
        stretch = 1.0 + tension * (sheet.prestretch - 1.0)
        changed[name] = Sheet(thickness=scale * sheet.thickness, prestretch=stretch)
    given = {"cell": real.cell, "material": real.material, "contact_stiffness": real.contact_stiffness}
    body = nominal.model_copy(update=changed | {name: value for name, value in given.items() if value is not None})
    count = len(nominal.chambers)
    around = spread_values(real.shift_around, count, "shift_around")
    return build_layers(body, np.stack([around, spread_values(real.shift_upwards, count, "shift_upwards")], axis=1))


def drawn_reality(nominal: LayeredBody, draw: np.random.Generator) -> RealLayers:
    """Layers of the distribution that docs/notes/realities-at-random.md describes."""
    material = another_silicone(nominal.material, (0.75, 1.25), SHEETS, draw)
    deviation, count = 0.006 * nominal.size, len(nominal.chambers)
    differences = {
        "material": material,
        "thickness_scale": draw.uniform(0.88, 1.12, len(_SHEETS)).tolist(),
        "tension_scale": draw.uniform(0.6, 1.4, len(_SHEETS)).tolist(),
        "shift_around": draw.normal(0.0, deviation, count).tolist(),
        "shift_upwards": draw.normal(0.0, deviation, count).tolist(),
    }
    return RealLayers(cell=nominal.cell * draw.uniform(0.85, 1.2), **some_of(differences, _CHANCES, draw))
