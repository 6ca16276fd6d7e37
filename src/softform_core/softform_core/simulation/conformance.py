"""What every body must do, as checks that a package runs on its own: see docs/extending.md, A body.

    for check in CHECKS:
        check(Examined.of(body, low, high))

Each check raises an `AssertionError` that says what is wrong. A body without weight, on a coarse mesh, takes seconds.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from softform_core.arrays import Array
from softform_core.robots.body import Body
from softform_core.simulation.newton import find_equilibria
from softform_core.simulation.sensitivity import equilibrium_sensitivities
from softform_core.simulation.simulated_body import BodyOfBones, LinedBody, SimulatedBody, rest_points
from softform_core.surface.mesh import directed_edges

_NOISE, _STEP = 1e-4, 1e-7
"""Of the largest Newton step: how far off balance derivatives are looked at, and steps of their differences."""
_VALUE_STEP = 1e-4
"""Of the range of an actuator, for differences."""
_SLOPE_SHARE = 1e-4
"""By which derivatives may differ from differences, of the largest."""
_MOVE_SHARE = 1e-2
"""The same of how points move with the actuators: each end of a difference is found within a tolerance."""
_INTERIOR = 0.3, 0.7
"""Part of the range in which actuators are tried."""
_ROUNDED = 1e-9  # of the body's size


class Examined(NamedTuple):
    """A body and its simulator.

    Attributes:
        body: Its description.
        simulated: Its simulator.
        low: (k,) lowest actuator values that are tried.
        high: (k,) highest ones.
    """

    body: Body
    simulated: SimulatedBody
    low: Array
    high: Array

    @classmethod
    def of(cls, body: Body, low: Array, high: Array) -> "Examined":
        """A body by its own simulator."""
        return cls(body, body.simulator(), low, high)

    def values(self, count: int) -> Array:
        """Actuator values (count, k) within the range."""
        inner = np.random.default_rng(0).uniform(*_INTERIOR, (count, len(self.low)))
        return np.asarray(self.low + inner * (self.high - self.low))

    @property
    def scale(self) -> float:
        """A large change of an unknown."""
        largest = self.simulated.largest_step
        return float(largest) if np.isfinite(largest) else float(np.ptp([self.low, self.high]))

    def off_balance(self, values: Array) -> Array:
        """Unknowns (n, m) a little beside those in balance under values (n, k)."""
        found = self.equilibria(values)
        return found + _NOISE * self.scale * np.random.default_rng(1).standard_normal(found.shape)

    def equilibria(self, values: Array) -> Array:
        """Unknowns (n, m) in balance under values (n, k)."""
        found = find_equilibria(self.simulated, values)
        assert not any(found.failures), f"no equilibrium under {values.tolist()}: {found.failures}"
        limits = np.concatenate([self.simulated.tolerance(one[None]) for one in values])
        assert (found.residual <= limits).all(), f"forces of {found.residual} are left, above {limits}"
        return found.unknowns


Check = Callable[[Examined], None]


def _near(found: Array, expected: Array, share: float, what: str) -> None:
    assert found.shape == expected.shape, f"{what} has the shape {found.shape}, not {expected.shape}"
    worst, largest = np.abs(found - expected).max(), np.abs(expected).max()
    assert worst <= share * largest, f"{what} is off by {worst:.2g} of {largest:.2g}"


def it_says_what_it_is(of: Examined) -> None:
    """Inputs are named once and drawn once each; there is a size, and a box around the resting body."""
    body, count = of.body, len(of.simulated.unloaded)
    assert len(set(body.inputs)) == len(body.inputs) == count, f"inputs {body.inputs} of {count} actuator values"
    assert len(body.outlines()) == count, f"{len(body.outlines())} outlines of {count} inputs"
    points, (low, high) = rest_points(of.simulated), body.box
    assert body.size > 0.0 and body.extent.shape == (2,)
    slack = _ROUNDED * body.size
    assert (points >= low - slack).all() and (points <= high + slack).all(), "points at rest lie outside of the box"
    assert body.goes_around or not any(body.patches.values()), "a tube goes around"


def surfaces_look_outwards(of: Examined) -> None:
    """Faces are over the points, wound alike; a closed surface looks outwards, a sheet to +z; patches are of them."""
    body, points, faces = of.body, rest_points(of.simulated), of.simulated.faces
    assert bool(body.patches) == bool(len(faces)), "patches without faces, or faces without patches"
    assert all(0 <= point < len(points) for point in of.simulated.frames.values()), "frames are no points"
    if not len(faces):
        return
    assert faces.min() >= 0 and faces.max() < len(points), "faces are over other points"
    sides = directed_edges(faces).reshape(-1, 2)
    assert len(np.unique(sides, axis=0)) == len(sides), "two faces run along one edge in the same sense"
    a, b, c = points[faces].transpose(1, 0, 2)
    normals, middles = np.cross(b - a, c - a), (a + b + c) / 3.0
    if np.linalg.norm(normals.sum(axis=0)) > 0.5 * np.linalg.norm(normals, axis=1).sum():
        assert normals[:, 2].sum() > 0.0, "a sheet looks to -z"
    else:
        volume = float(np.sum((middles - points.mean(axis=0)) * normals))
        assert volume > 0.0, "the surface looks inwards"
    for patch in body.patches:
        own = body.faces_of(patch, points, faces)
        assert own.shape == (len(faces),) and own.any(), f"patch '{patch}' has no faces"


def it_rests_without_load(of: Examined) -> None:
    """The resting body is in balance unloaded, and has not run away."""
    simulated, rest, unloaded = of.simulated, of.simulated.rest[None], of.simulated.unloaded[None]
    gradient, limit = simulated.derivatives(rest, unloaded)[0], simulated.tolerance(unloaded)
    assert np.linalg.norm(gradient) <= 10.0 * limit[0], f"forces of {np.linalg.norm(gradient):.2g} N are left at rest"
    assert simulated.has_run_away(rest).tolist() == [False]


def derivatives_are_those_of_the_energy(of: Examined) -> None:
    """Gradient, Hessian and load derivative agree with central differences; the Hessian is symmetric."""
    simulated, values = of.simulated, of.values(1)
    x, random = of.off_balance(values), np.random.default_rng(2)
    gradient, hessian = simulated.derivatives(x, values)
    assert gradient.shape == x.shape
    other, sideways = random.standard_normal((2, *x.shape))
    direction = gradient / np.linalg.norm(gradient) + 0.3 * other / np.linalg.norm(other)
    step = _STEP * of.scale * np.sqrt(x.size) * direction
    ahead, behind = (simulated.energy(x + sign * step, values) for sign in (1.0, -1.0))
    _near(ahead - behind, 2.0 * (gradient * step).sum(axis=1), _SLOPE_SHARE, "the gradient")
    ahead, behind = (simulated.derivatives(x + sign * step, values)[0] for sign in (1.0, -1.0))
    _near(2.0 * hessian.times(step), ahead - behind, _SLOPE_SHARE, "the Hessian")
    left, right = (sideways * hessian.times(step)).sum(), (step * hessian.times(sideways)).sum()
    size = np.linalg.norm(sideways) * np.linalg.norm(hessian.times(step))
    assert abs(left - right) <= 1e-9 * size, "the Hessian is not symmetric"
    by_values = simulated.load_derivative(x, values)
    assert by_values.shape == (*x.shape, values.shape[1]), f"a load derivative of shape {by_values.shape}"
    shift = _VALUE_STEP * (of.high - of.low)
    ahead, behind = (simulated.derivatives(x, values + sign * shift)[0] for sign in (1.0, -1.0))
    _near(2.0 * by_values @ shift, ahead - behind, _MOVE_SHARE, "the load derivative")


def _check_moves(
    places: Callable[[Array], Array], x: Array, moves: Array, moved: Array, size: float, what: str
) -> None:
    """Compare how places are said to be `moved` by each of the `moves` of the unknowns with differences so large."""
    for number in range(moves.shape[-1]):
        step = size * moves[:, :, number]
        ahead, behind = (places(x + sign * step) for sign in (1.0, -1.0))
        _near(2.0 * size * moved[..., number], ahead - behind, _SLOPE_SHARE, what)


def points_move_as_they_say(of: Examined) -> None:
    """`points` are finite places, and `moved_points` are how they move."""
    simulated, values = of.simulated, of.values(1)
    x = of.off_balance(values)
    points = simulated.points(x)
    assert points.ndim == 3 and points.shape[::2] == (1, 3) and np.isfinite(points).all(), f"points {points.shape}"
    moves = np.random.default_rng(3).standard_normal((1, x.shape[1], 2))
    moved = simulated.moved_points(x, moves)
    assert moved.shape == (*points.shape, 2), f"moved points of shape {moved.shape}"
    _check_moves(simulated.points, x, moves, moved, 1e-5 * of.scale, "how points move")


def its_centre_line_is_told(of: Examined) -> None:
    """The nodes of a body that has a centre line lie along it, move as they say, and are what data sets hold."""
    if not of.body.has_centre_line:
        return
    simulated, values = of.simulated, of.values(1)
    assert isinstance(simulated, LinedBody), "it has a centre line and tells none"
    along = np.asarray(simulated.along)
    assert along[0] == 0.0 and along[-1] == 1.0 and (np.diff(along) > 0.0).all(), f"nodes lie at {along} along it"
    x = of.off_balance(values)
    line, moves = simulated.line(x), np.random.default_rng(4).standard_normal((1, x.shape[1], 2))
    assert line.shape == (1, len(along), 3) and np.isfinite(line).all(), f"a centre line of shape {line.shape}"
    moved = simulated.moved_line(x, moves)
    assert moved.shape == (*line.shape, 2), f"moved nodes of shape {moved.shape}"
    _check_moves(simulated.line, x, moves, moved, 1e-5 * of.scale, "how the centre line moves")
    sampled = of.body.sampled()
    solved = sampled.solve(values, np.zeros((1, values.shape[1], 1)))
    _near(solved.outputs["centre_line"], simulated.line(of.equilibria(values)), 1e-6, "the line of data sets")
    assert np.array_equal(sampled.constants["along"], along), "data sets have other nodes"


def its_bones_are_told(of: Examined) -> None:
    """The frames of a body of bones have three places each that lie on no line, and move as they say."""
    simulated = of.simulated
    if not isinstance(simulated, BodyOfBones):
        return
    x = of.off_balance(of.values(1))
    bones, moves = simulated.bones(x), np.random.default_rng(5).standard_normal((1, x.shape[1], 2))
    assert bones.ndim == 4 and bones.shape[2:] == (3, 3) and np.isfinite(bones).all(), f"bones of shape {bones.shape}"
    sides = bones[0, :, 1:] - bones[0, :, :1]
    assert np.linalg.norm(np.cross(sides[:, 0], sides[:, 1]), axis=1).all(), "the places of a bone lie on a line"
    moved = simulated.moved_bones(x, moves)
    assert moved.shape == (*bones.shape, 2), f"moved bones of shape {moved.shape}"
    _check_moves(simulated.bones, x, moves, moved, 1e-5 * of.scale, "how the bones move")


def samples_do_not_feel_each_other(of: Examined) -> None:
    """Several samples at once give what each gives alone, in any order."""
    simulated, values = of.simulated, of.values(3)
    together = of.equilibria(values)
    for index in (2, 0):
        alone = of.equilibria(values[index : index + 1])
        assert np.abs(alone[0] - together[index]).max() <= 1e-6 * of.scale, "a sample depends on those beside it"
    if simulated.batch > 1:
        energies, (gradients, _) = simulated.energy(together, values), simulated.derivatives(together, values)
        for index in range(3):
            one = slice(index, index + 1)
            assert np.allclose(energies[one], simulated.energy(together[one], values[one]), rtol=1e-9)
            own = simulated.derivatives(together[one], values[one])[0]
            assert np.allclose(gradients[one], own, atol=simulated.tolerance(values[one])[0])
    assert simulated.points(together).shape[0] == 3


def actuators_move_the_points_as_sensitivities_say(of: Examined) -> None:
    """How points in balance move with the actuators, by the implicit function theorem, is what differences show."""
    simulated, values = of.simulated, of.values(1)
    x = of.equilibria(values)
    moved = simulated.moved_points(x, equilibrium_sensitivities(simulated, x, values))
    shift = _VALUE_STEP * (of.high - of.low)
    places = [simulated.points(find_equilibria(simulated, values + sign * shift, x).unknowns) for sign in (1.0, -1.0)]
    _near(2.0 * moved @ shift, places[0] - places[1], _MOVE_SHARE, "how points follow the actuators")


def realities_differ_where_they_say(of: Examined) -> None:
    """A reality that says nothing rests as the body does; drawn ones repeat by their seed, and differ by it."""
    if not of.body.is_simulated:
        return
    same = of.body.real_simulator(of.body.reality_type()())
    here, there = rest_points(of.simulated), rest_points(same)
    assert here.shape == there.shape and np.allclose(here, there, atol=_ROUNDED * of.body.size), "it rests elsewhere"
    one, other, again = (of.body.drawn_reality(np.random.default_rng(seed)) for seed in (1, 2, 1))
    assert one == again != other, "drawn realities do not follow their seed"


CHECKS: tuple[Check, ...] = (
    it_says_what_it_is,
    surfaces_look_outwards,
    it_rests_without_load,
    derivatives_are_those_of_the_energy,
    points_move_as_they_say,
    its_centre_line_is_told,
    its_bones_are_told,
    samples_do_not_feel_each_other,
    actuators_move_the_points_as_sensitivities_say,
    realities_differ_where_they_say,
)
