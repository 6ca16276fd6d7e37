"""The tentacle as a rod: tapered, hanging, under the given tensions of two tendons, of a wall by Hooke's law.

Beside the weight (`bodies.placement`) its total potential has, over bends b_e (angles and stretch) of elements e,

    1/2 sum_e (b_e - b_e^0)^T K_e (b_e - b_e^0) + sum_i T_i sum_e w_e l_e |v_ie|,   w_e = e^{-mu s_e / L},

where K_e holds EI, EI, GJ and EA of the element, b_e^0 its natural bends, v_ie the course of tendon i in it
(`bodies.tendon_rod`), and w_e the share of the tension that the guides leave at the arc length s_e. Beside its
parameters each pose may have errors of its own along a few modes: of the two tensions, and of the natural curvature.
Geometry and places of the markers are those of `tentacle/README.md`; SI units.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.spatial.transform import Rotation

from softform_core.arrays import Array
from softform_core.bodies.placement import ends, in_sections
from softform_core.bodies.rod.description import SolidSection
from softform_core.bodies.rod.equilibrium import RodProblem
from softform_core.bodies.rod.model import Rod, wall_fibres
from softform_core.bodies.rotations import turns_by
from softform_core.bodies.tendon_rod.simulator import TendonEnergy, Tendons
from softform_core.robots.description import Material
from softform_core.simulation.hessian import BlockHessian
from softform_core.simulation.materials import LAWS
from softform_studies.foreign.tentacle_poses import Poses

_LENGTHS = (0.305, 0.055)  # of the link with tendons and of the one behind it
_RADII = ((0.01541, 0.00642), (0.00642, 0.00480))
_ELEMENTS = (16, 3)
_TENDON_RADIUS, _TENDON_TAPER = 0.0114, -0.0295  # distance of a tendon from the axis, and its change along the axis
_TENDON_ANGLES = np.array([-np.pi / 3.0, np.pi / 3.0])  # from the first director, which is the body's x
_POISSON = 0.45
_DENSITY = 1500.0  # kg/m³; moduli and tensions are known over it alone
_GRAVITY = np.array([0.0, 0.0, -9.81])
_HANGING = np.diag([1.0, -1.0, -1.0])  # directors, as columns
_MARKER_PLACES = np.array([[0.025, 0.0, 0.1291], [-0.021, 0.0, 0.2195], [0.020, 0.0, 0.2800], [0.0, 0.0, 0.368]])

PRIORS: dict[str, tuple[float, float]] = {
    "log_modulus": (float(np.log(505e3)), 0.5),
    "log_tension": (0.0, 0.3),
    "drag": (0.0, 0.2),
    "log_axial": (0.0, 0.3),
    "stiffness_taper": (0.0, 0.3),
    "tendon_taper": (0.0, 0.3),
    **{f"turn_{axis}": (0.0, 0.03) for axis in "xyz"},
    **{f"later_turn_{axis}": (0.0, 0.02) for axis in "xyz"},
    **{f"natural_{axis}": (0.0, 0.5) for axis in "xy"},
    **{f"m{marker}_{axis}": (0.0, 0.003) for marker in (1, 2, 3, 4) for axis in "xys"},
    **{f"later_m2_{axis}": (0.0, 0.006) for axis in "xys"},
}
"""Mean and standard deviation of the parameters before a pose was seen, in SI units.

Young's modulus begins at the authors' first guess; `stiffness_taper` is its change, and `drag` the loss of tension,
both as an exponent along the link with tendons. `log_axial` belongs to EA, `log_tension` to all tensions,
`tendon_taper` to the slope of the tendons towards the axis. What is `later` differs in the second session: the turn of
the rig, and the place of marker m2, which was attached anew.
"""

MODES = ("tension_1", "tension_2", "bend_x", "bend_y", "taper_x", "taper_y")
"""Errors that a pose may have: of a tension, relative; of the natural curvature, 1/m, even or growing to the tip."""


@cache
def _grid() -> tuple[Array, Array, Array, Array]:
    """Return lengths (E,), arc lengths at the middle, radii, m, and whether tendons run there, of the elements."""
    length = np.repeat(np.array(_LENGTHS) / _ELEMENTS, _ELEMENTS)
    middle = np.cumsum(length) - 0.5 * length
    radius = np.interp(middle, np.cumsum((0.0, *_LENGTHS)), (_RADII[0][0], *(last for _, last in _RADII)))
    return length, middle, radius, (middle < _LENGTHS[0]).astype(np.float64)


@cache
def _fibres() -> tuple[Array, Array]:
    size = 2.0 * _RADII[0][0]
    material = Material(law="neo_hookean", coefficients=[1.0])
    section = SolidSection(length=1.0, outline="ellipse", width=size, height=size, density=1.0, material=material)
    return wall_fibres(section, [], planar=False)


def _rod(shear: float, turn: Array) -> Rod:
    """Return the rod's elements; its fibres only set how exactly Newton's method balances it."""
    length, _, radius, _ = _grid()
    place, area = _fibres()
    return Rod(
        **in_sections(1, _DENSITY * np.pi * radius**2 * length, 0.0, 0.0),
        strains=np.arange(4),
        length=length,
        scale=radius / _RADII[0][0],
        fibre_place=place,
        fibre_area=area,
        law=list(LAWS).index("neo_hookean"),
        coefficients=np.full((len(length), 1), shear),
        limiter=np.zeros(len(length)),
        torsion=0.5 * np.pi * shear * radius**4,
        chamber_place=np.zeros((0, 2)),
        chamber_area=np.zeros(0),
        base=turn @ _HANGING,
        gravity=_GRAVITY,
    )


def _tendons(taper: float) -> Tendons:
    length, middle, _, inside = _grid()
    towards = np.stack([np.cos(_TENDON_ANGLES), np.sin(_TENDON_ANGLES)], axis=1)[:, None]
    rate = _TENDON_TAPER * np.exp(taper) * inside[:, None]
    place = towards * (_TENDON_RADIUS * inside[:, None] + rate * middle[:, None])
    slope = towards * rate
    rest_length = (inside * length * np.sqrt(1.0 + (slope**2).sum(axis=2))).sum(axis=1)
    return Tendons(np.tile(inside > 0.0, (2, 1)), place, slope, rest_length, np.zeros(2))


class _GivenTensions(TendonEnergy):
    """Tendons under given tensions (n, 2) N at their motors, of which `left` (E,) arrives in each element."""

    def __init__(self, rod: Rod, tendons: Tendons, left: Array) -> None:
        super().__init__(rod, tendons)
        self._length = self._length * left

    def energies(self, bends: Array, tensions: Array) -> Array:
        """Sum T_i w_e l_e |v_ie| (n,), J."""
        return np.asarray(np.vecdot(tensions, np.vecdot(self._length, self._courses(bends)[1])))

    def derivatives(self, bends: Array, tensions: Array) -> tuple[Array, Array, Array]:
        """As of tendons by pulls; a given tension joins no two elements, and adds no Hessian between them."""
        size, along, longer = self._longer(bends)
        turn = self._square - along[..., :, None] * along[..., None, :]
        pull = tensions[..., None] * self._length / size
        width = longer.shape[2]
        return (tensions[:, None] @ longer)[:, 0], np.zeros((1, width, width)), (pull[..., None, None] * turn).sum(1)

    def pull_derivatives(self, bends: Array, pulls: Array) -> Array:
        """Derivative (n, E d, 2) of the gradient by the tensions."""
        return self._longer(bends)[2].swapaxes(1, 2)


class TentacleRod(RodProblem):
    """`EquilibriumProblem` of the tentacle under (n, 6): the two tensions, N, and natural curvatures 1/m as `MODES`.

    Args:
        values: Of each parameter of `PRIORS`.
    """

    def __init__(self, values: dict[str, float]) -> None:
        length, middle, radius, _ = _grid()
        share = middle / _LENGTHS[0]
        modulus = np.exp(values["log_modulus"] + values["stiffness_taper"] * (share - 0.5))
        shear = float(np.exp(values["log_modulus"])) / (2.0 * (1.0 + _POISSON))
        turn = Rotation.from_rotvec([values[f"turn_{axis}"] for axis in "xyz"]).as_matrix()
        super().__init__(_rod(shear, turn))
        bending = 0.25 * np.pi * modulus * radius**4 / length
        axial = np.pi * modulus * np.exp(values["log_axial"]) * radius**2 * length
        self._stiffness = np.stack([bending, bending, bending / (1.0 + _POISSON), axial], axis=1)
        self._blocks = self._stiffness[:, :, None] * np.eye(4)
        self._tendons = _GivenTensions(self.rod, _tendons(values["tendon_taper"]), np.exp(-values["drag"] * share))
        self._natural = np.zeros((4, len(length), 4))  # of a unit of each mode; the even ones are parameters, too
        self._natural[0, :, 1], self._natural[1, :, 0] = length, length
        self._natural[2, :, 1], self._natural[3, :, 0] = length * (share - 0.5), length * (share - 0.5)
        self._rest = np.array([values["natural_x"], values["natural_y"], 0.0, 0.0])
        self.unloaded = np.zeros(6)

    def _bent(self, unknowns: Array, actuators: Array) -> Array:
        """Bends less natural ones, (n, E, 4)."""
        return self._free(unknowns) - np.tensordot(actuators[:, 2:] + self._rest, self._natural, 1)

    def energy(self, unknowns: Array, actuators: Array) -> Array:
        """Pi (n,), J."""
        bent = self._bent(unknowns, actuators)
        energy = 0.5 * (bent * self._stiffness * bent).sum(axis=(1, 2))
        energy += self._weight.energies(self._placed(unknowns))  # type: ignore[union-attr]
        return np.asarray(energy + self._tendons.energies(self._free(unknowns), actuators[:, :2]))

    def derivatives(self, unknowns: Array, actuators: Array) -> tuple[Array, BlockHessian]:
        """Gradient (n, m) J and Hessian, J."""
        pulled, _, blocks = self._tendons.derivatives(self._free(unknowns), actuators[:, :2])
        pulled += (self._stiffness * self._bent(unknowns, actuators)).reshape(len(unknowns), -1)
        hung, hessian = self._weight.derivatives(  # type: ignore[union-attr]
            self._placed(unknowns), self._blocks + blocks
        )
        return pulled + hung, BlockHessian(hessian[:, None])

    def load_derivative(self, unknowns: Array, actuators: Array) -> Array:
        """Derivative of the gradient by the actuator values, (n, m, 6)."""
        pulls = self._tendons.pull_derivatives(self._free(unknowns), actuators[:, :2])
        natural = -(self._stiffness * self._natural).reshape(4, -1).T
        return np.concatenate([pulls, np.broadcast_to(natural, (len(unknowns), *natural.shape))], axis=2)


@dataclass(frozen=True, eq=False)
class Tentacle:
    """The tentacle with values of all parameters of `PRIORS`: its rod, its loads, its markers."""

    values: dict[str, float]
    rod: TentacleRod

    @classmethod
    def of(cls, values: dict[str, float]) -> "Tentacle":
        """Return the tentacle with these values."""
        return cls(values, TentacleRod(values))

    def loads(self, poses: Poses, errors: Array) -> Array:
        """Return the actuator values (n, 6) of `TentacleRod` for poses with errors (n, 6) along `MODES`."""
        arriving = poses.tensions * np.exp(self.values["log_tension"]) * (1.0 + errors[:, :2])
        return np.concatenate([arriving, errors[:, 2:]], axis=1)

    def markers(self, poses: Poses, unknowns: Array) -> Array:
        """Return the markers (n, 4, 3) m in the body's frame of a rod with unknowns (n, m)."""
        rod, placed = self.rod.rod, self.rod._placed(unknowns)
        shift = np.array([[self.values[f"m{marker}_{axis}"] for axis in "xys"] for marker in (1, 2, 3, 4)])
        later = np.zeros((4, 3))
        later[1] = [self.values[f"later_m2_{axis}"] for axis in "xys"]
        place = _MARKER_PLACES + shift + poses.is_later[:, None, None] * later
        before = np.concatenate([np.zeros((len(unknowns), 1, 3)), ends(rod, placed)[1]], axis=1)
        nodes = np.append(0.0, np.cumsum(rod.length))
        arc = np.clip(place[..., 2], 0.0, nodes[-1])
        element = np.clip(np.searchsorted(nodes, arc, side="right") - 1, 0, rod.elements - 1)
        sample = np.arange(len(unknowns))[:, None]
        share = (arc - nodes[element]) / rod.length[element]
        bends = placed.bends[sample, element]
        turns = turns_by(bends[..., :3] * share[..., None])
        directors = placed.directors[sample, element]
        along = (arc - nodes[element]) * (1.0 + bends[..., 3])
        axis = before[sample, element] + along[..., None] * (directors @ turns.mean)[..., 2]
        beyond = np.stack([place[..., 0], place[..., 1], place[..., 2] - arc], axis=-1)
        found = axis + ((directors @ turns.turn) @ beyond[..., None])[..., 0]
        turn = Rotation.from_rotvec([self.values[f"later_turn_{axis}"] for axis in "xyz"]).as_matrix()
        return np.where(poses.is_later[:, None, None], found @ turn.T, found)
