"""The way of a rod along its path, from balance to balance, and the state that it carries along."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.bodies.loads.stick_slip import (
    FINEST,
    MOST_UPDATES,
    capstan_bounds,
    check_pulls,
    drawn_along,
    off_bounds,
)
from softform_core.bodies.rod.model import Rod
from softform_core.bodies.tendon_rod.path_dependent import Held, Line, PathDependentRod
from softform_core.bodies.tendon_rod.wall import Wall
from softform_core.simulation.newton import NO_EQUILIBRIUM_ADVICE, NoEquilibriumError, newton

_STEP = 0.003
"""Longest way of a taut tendon in one step, m."""
_SLACK = 0.002
"""Below it, in m of pull, a tendon that carries nothing is still far from becoming taut."""


class PathState(NamedTuple):
    """What a rod remembers beside its unknowns, of n samples.

    Attributes:
        pulls: (n, k) of the motors, m.
        felt: (n, k) m, what the tendons feel of them, within the dead band.
        slips: (n, k, E) m, ways that the tendons have run through their holes, towards their motors.
        anchors: (n, k, E) m, of the tendons in their holes.
        bounds: (n, k, E) N, of the forces that hold them.
        peak: (n, E) J, the greatest energy of the wall.
        overstrain: (n, P, E, 4), of the wall's creep.
    """

    pulls: Array
    felt: Array
    slips: Array
    anchors: Array
    bounds: Array
    peak: Array
    overstrain: Array

    def part(self, chosen: NDArray) -> "PathState":
        """Return the state of some samples."""
        return PathState(*(each[chosen] for each in self))

    def put(self, chosen: NDArray, other: "PathState") -> None:
        """Replace the state of some samples."""
        for mine, new in zip(self, other, strict=True):
            mine[chosen] = new


class TendonPath(PathDependentRod):
    """The rod that is led along its path, a `PathDependentBody`.

    Args:
        rod: Its elements, one a section.
        wall: The wall.
        line: Its tendons.
        dead_band: Half of the way by which a motor turns back before its tendon feels it, m.
        step: Longest way of a taut tendon in one step, m.
    """

    def __init__(self, rod: Rod, wall: Wall, line: Line, dead_band: float, step: float = _STEP) -> None:
        super().__init__(rod, wall, line)
        self.dead_band, self._step = dead_band, step

    def new(self, samples: int) -> tuple[Array, PathState]:
        """Return unknowns (n, m) and state of robots that have just been made, at zero pull."""
        k, e, terms = self.tendons, self.sections, len(self.body_wall.times)
        shapes = ((k,), (k,), (k, e), (k, e), (k, e), (e,), (terms, e, 4))
        return np.zeros((samples, len(self.rest))), PathState(*(np.zeros((samples, *shape)) for shape in shapes))

    def advance(
        self, unknowns: Array, pulls: Array, state: PathState, seconds: Array | float
    ) -> tuple[Array, PathState]:
        """Lead rods steadily from their pulls to others, and return their unknowns (n, m) and state there.

        Args:
            unknowns: (n, m) now.
            pulls: (n, k) of the motors at the end, m.
            state: Now.
            seconds: (n,) or one for all, above 0.

        Raises:
            SoftformError: If pulls are not finite or of another number than the tendons.
            NoEquilibriumError: If a rod has no balance on the way.
        """
        check_pulls(pulls, state.pulls, "tendons")
        shares = self._shares(unknowns, pulls, state)
        begin, spent = state.pulls, np.broadcast_to(np.asarray(seconds, dtype=np.float64), (len(pulls),))
        before = np.zeros(len(pulls))
        for share in shares:
            values = begin + share[:, None] * (pulls - begin)
            unknowns, state = self._step_to(unknowns, values, state, (share - before) * spent, FINEST)
            before = share
        return unknowns, state

    def in_balance(self, unknowns: Array, state: PathState) -> Array:
        """Return the values (n, k + ...) under which the body is in balance where it is: all that is `Held`."""
        nothing = np.full(len(unknowns), 1e-9)
        fading = self.body_wall.fading(state.overstrain, self.bends(unknowns), nothing)
        return Held(state.felt, state.anchors, state.bounds, state.slips, state.peak, fading).packed()

    def _shares(self, unknowns: Array, pulls: Array, state: PathState) -> list[Array]:
        """Return shares (n,) of the way at which steps end: each sample goes as far in each where tendons are taut."""
        fine = np.linspace(0.0, 1.0, 129)
        way = pulls - state.pulls
        at = state.pulls[:, None] + fine[:, None] * way[:, None]
        is_taut = (at > -_SLACK) | (state.felt - state.slips[..., 0] > 0.0)[:, None]
        rate = (np.abs(way)[:, None] * is_taut).max(axis=2) + 1e-6
        gone = (
            np.concatenate([np.zeros((len(way), 1)), np.cumsum(0.5 * (rate[:, 1:] + rate[:, :-1]), axis=1)], axis=1)
            / 128.0
        )
        steps = max(1, int(np.ceil(gone[:, -1].max() / self._step)))
        goals = np.arange(1, steps) / steps
        found = [np.array([np.interp(goal * one[-1], one, fine) for one in gone]) for goal in goals]
        return [*found, np.ones(len(way))]

    def _step_to(
        self, unknowns: Array, pulls: Array, state: PathState, seconds: Array, finer: int
    ) -> tuple[Array, PathState]:
        felt = np.clip(state.felt, pulls - self.dead_band, pulls + self.dead_band)
        fading = self.body_wall.fading(state.overstrain, self.bends(unknowns), seconds)
        held = Held(felt, state.anchors, state.bounds.copy(), state.slips, state.peak, fading)
        found, slips, left = unknowns.copy(), state.slips.copy(), np.arange(len(pulls))
        failed: list[int] = []
        for _ in range(MOST_UPDATES):
            solved = newton(self, found[left], held.part(left).packed())
            failed += left[~solved.found].tolist()
            left = left[solved.found]
            found[left] = solved.unknowns[solved.found]
            if not left.size:
                break
            chains = self.chains(found[left], held.part(left).packed())
            inner, outer, line = chains.tension[..., :-1], chains.tension[..., 1:], self.guided
            newer = capstan_bounds(inner, outer, self.wraps(found[left]), line.friction, line.drag)
            slips[left], is_off = chains.slips, off_bounds(newer, held.bounds[left]).any(axis=(1, 2))
            left = left[is_off]
            held.bounds[left] = newer[is_off]
            if not left.size:
                break
        failed += left.tolist()
        bends = self.bends(found)
        after = PathState(
            pulls=pulls.copy(),
            felt=felt,
            slips=slips,
            anchors=drawn_along(state.anchors, slips, held.bounds, self.guided.give),
            bounds=held.bounds,
            peak=np.maximum(state.peak, self.body_wall.work(bends)),
            overstrain=fading.carried + fading.gain[..., None, None] * bends[:, None],
        )
        if failed:
            self._take_half(np.array(failed), unknowns, pulls, state, seconds, finer, (found, after))
        return found, after

    def _take_half(
        self, which: NDArray, unknowns: Array, pulls: Array, state: PathState, seconds: Array, finer: int,
        into: tuple[Array, PathState],
    ) -> None:  # fmt: skip
        """Take the step of some samples in two halves."""
        if not finer:
            raise NoEquilibriumError(
                f"The tendon rod has no balance at pulls {np.round(1e3 * pulls[which[0]], 2).tolist()} mm.",
                NO_EQUILIBRIUM_ADVICE,
            )
        x, own = unknowns[which], state.part(which)
        half = 0.5 * (own.pulls + pulls[which])
        for values in (half, pulls[which]):
            x, own = self._step_to(x, values, own, 0.5 * seconds[which], finer - 1)
        into[0][which] = x
        into[1].put(which, own)
