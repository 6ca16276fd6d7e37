"""An arm whose cables rub: in the sheaths that lead them to their sections, and on their way along these.

A cable of a section is cut into E runs of its own, after one from its motor to where the section begins. Between two
runs it goes around a bend by the capstan's law, T_out = T_in e^(-mu theta), or sticks (`bodies.loads.stick_slip`):
first around that of its sheath, which is bent where it is mounted and by the sections before, then around those of its
own section, each by how far the arm's axis turns from the middle of one run to that of the next. The potential of a
step has psi of `bodies.loads.chain` in place of the cables', whose Hessian joins the runs of a cable,

    sum_ij firm_ij dl_i/dx dl_j/dx^T = sum_q w_q h_q h_q^T,    h_q = sum_i V_iq dl_i/dx,

with the eigenvalues w and vectors V of `firm`. What is held in a step passes for further values of the actuators.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.bodies.cable_arm import kernels
from softform_core.bodies.cable_arm.equilibrium import Arm, ArmProblem, joined
from softform_core.bodies.loads.chain import Chains, balanced_chains
from softform_core.bodies.loads.stick_slip import (
    FINEST,
    MOST_UPDATES,
    capstan_bounds,
    check_pulls,
    drawn_along,
    off_bounds,
)
from softform_core.simulation.hessian import Hessian
from softform_core.simulation.newton import NO_EQUILIBRIUM_ADVICE, NoEquilibriumError, newton
from softform_core.simulation.simulated_body import TendonLoads

__all__ = ["RubbingArm", "RubbingState", "Runs"]

_STEP = 0.01
"""Longest way of a motor in one step, m."""
_NIL = 1e-9  # of the largest eigenvalue


@dataclass(frozen=True, eq=False)
class Runs:
    """How k cables run, E runs each within their sections.

    Attributes:
        stiffness: (k, E + 1) N/m of the runs, that from the motor first.
        borders: (k, E + 1) layers of nodes between which the own runs lie.
        friction: Coefficient mu.
        drag: Force F_0 that a bend holds without tension, N.
        give: Stiffness of a cable that sticks, N/m.
        sheath: Angle by which sheaths are bent where they are mounted, rad.
    """

    stiffness: Array
    borders: NDArray[np.int64]
    friction: float
    drag: float
    give: float
    sheath: float


class RubbingState(NamedTuple):
    """What an arm remembers beside its unknowns: (1, k) and three of (1, k, E).

    Attributes:
        pulls: Of the motors, m.
        anchors: Of the cables in their bends, m.
        bounds: Of the forces that hold them, N.
        slips: Ways that the cables have run through their bends, towards their motors, m.
    """

    pulls: Array
    anchors: Array
    bounds: Array
    slips: Array

    def packed(self) -> Array:
        """All of it as one row, so that it passes for the values of actuators."""
        return np.concatenate([part.reshape(1, -1) for part in self], axis=1)


class RubbingArm(ArmProblem):
    """`ArmProblem` that is a `PathDependentBody`, of one sample.

    Its actuator values are the pulls of its cables, m, alone, or all that a step holds. Of pulls alone it is the arm
    without friction that has just been made.

    Args:
        arm: The arm; each run of a cable counts as a cable of it, those of the first one first.
        runs: The runs.
    """

    def __init__(self, arm: Arm, runs: Runs) -> None:
        super().__init__(arm)
        self.runs = runs
        self._cables, self._own = runs.borders.shape[0], runs.borders.shape[1] - 1
        self.unloaded = np.zeros(self._cables)
        self._take_up = arm.take_up / (self._own + 1)  # of each run, in series

    def held(self, values: Array) -> RubbingState:
        """What is held in a step, of values (1, k) or (1, k + ...)."""
        k, e = self._cables, self._own
        if values.shape[1] == k:
            return RubbingState(values, *(np.zeros((1, k, e)) for _ in range(3)))
        pulls, *three = np.split(values, [k, k + k * e, k + 2 * k * e], axis=1)
        return RubbingState(pulls, *(part.reshape(1, k, e) for part in three))

    def chains(self, unknowns: Array, values: Array) -> Chains:
        """The cables in balance at unknowns (1, m) under values as of `held`."""
        return self._chains(self._nodes(unknowns[0]), values)

    def wraps(self, unknowns: Array) -> Array:
        """Angles (1, k, E) rad by which the cables are turned in their bends, at unknowns (1, m)."""
        axis = self._nodes(unknowns[0])[:: self.arm.mesh.width]
        ahead = np.diff(axis, axis=0)
        ahead = np.concatenate([ahead[:1], ahead[:-1] + ahead[1:], ahead[-1:]])
        ahead /= np.linalg.norm(ahead, axis=1, keepdims=True)
        turns = 2.0 * np.arcsin(np.clip(0.5 * np.linalg.norm(np.diff(ahead, axis=0), axis=1), 0.0, 1.0))
        turned = np.concatenate([[0.0], np.cumsum(turns)])
        middles = 0.5 * (self.runs.borders[:, :-1] + self.runs.borders[:, 1:])
        at = np.interp(middles, np.arange(len(turned)), turned)
        wraps = np.diff(at, axis=1, prepend=0.0)
        wraps[:, 0] += self.runs.sheath
        return wraps[None]

    def energy(self, unknowns: Array, actuators: Array) -> Array:
        """Pi (1,), J."""
        nodes = self._nodes(unknowns[0])
        strained = kernels.strain_energy(nodes, *self._elements)[0]
        cables = self._chains(nodes, actuators).energy.sum()
        return np.array([strained + cables - np.sum(self.arm.weight * (nodes - self.arm.mesh.nodes))])

    def gradient(self, unknowns: Array, actuators: Array) -> Array:
        """Gradient (1, m) N alone."""
        nodes = self._nodes(unknowns[0])
        return self._gradient(nodes, self._cable_slopes(nodes), _of_runs(self._chains(nodes, actuators)))[None]

    def derivatives(self, unknowns: Array, actuators: Array) -> tuple[Array, Hessian]:
        """Gradient (1, m) N and Hessian, N/m."""
        nodes = self._nodes(unknowns[0])
        slopes, chains = self._cable_slopes(nodes), self._chains(nodes, actuators)
        tension = _of_runs(chains)
        weights, ways = np.linalg.eigh(chains.firm[0])
        by_cable = slopes.reshape(-1, self._cables, self._own)
        columns = np.einsum("mke,keq->mkq", by_cable, ways).reshape(len(slopes), -1)
        weights = weights.ravel()
        joins = weights > _NIL * max(float(weights.max()), 1.0)
        hessian = joined(self._blocks(nodes, tension), columns, weights, joins)
        return self._gradient(nodes, slopes, tension)[None], hessian

    def load_derivative(self, unknowns: Array, actuators: Array) -> Array:
        """Derivative of the gradient by the pulls, (1, m, k)."""
        nodes = self._nodes(unknowns[0])
        by_pull = self._chains(nodes, actuators).by_pull[0]
        slopes = self._cable_slopes(nodes).reshape(-1, self._cables, self._own)
        return np.asarray(np.einsum("mke,ke->mk", slopes, by_pull))[None]

    def tendon_loads(self, unknowns: Array, actuators: Array) -> TendonLoads:
        """As `PulledBody`: of the runs from the motors."""
        chains, pulls = self.chains(unknowns, actuators), actuators[0, : self._cables]
        return TendonLoads(chains.tension[0, :, 0], pulls - chains.slips[0, :, 0], self.runs.stiffness[:, 0], pulls)

    def compliance(self, unknowns: Array, actuators: Array) -> Array:
        """As `YieldingBody`: of the arm, and of the runs behind those from the motors, as if nothing rubbed."""
        nodes = self._nodes(unknowns[0])
        runs = self._cable_slopes(nodes)
        slopes = runs.reshape(len(runs), self._cables, self._own).sum(axis=2)
        behind = (1.0 / self.runs.stiffness[:, 1:]).sum(axis=1)
        return self._yielding(nodes, slopes, _of_runs(self._chains(nodes, actuators))) + np.diag(behind)

    def new(self, samples: int) -> tuple[Array, RubbingState]:
        """As `PathDependentBody`, of one sample: rested, unknowns (1, m) and state."""
        assert samples == 1
        return self.rest[None].copy(), self.held(self.unloaded[None])

    def advance(
        self, unknowns: Array, actuators: Array, state: RubbingState, seconds: Array | float
    ) -> tuple[Array, RubbingState]:
        """As `PathDependentBody`; friction asks for no time.

        Raises:
            SoftformError: If pulls are not finite or of another number than the cables.
            NoEquilibriumError: If the arm has no balance on the way.
        """
        check_pulls(actuators, state.pulls, "cables")
        begin, way = state.pulls, actuators - state.pulls
        steps = max(1, int(np.ceil(np.abs(way).max() / _STEP)))
        for share in np.arange(1, steps + 1) / steps:
            unknowns, state = self._step_to(unknowns, begin + share * way, state, FINEST)
        return unknowns, state

    def in_balance(self, unknowns: Array, state: RubbingState) -> Array:
        """As `PathDependentBody`, (1, k + ...)."""
        return state.packed()

    def _step_to(self, unknowns: Array, pulls: Array, state: RubbingState, finer: int) -> tuple[Array, RubbingState]:
        runs, bounds, found = self.runs, state.bounds, unknowns
        for _ in range(MOST_UPDATES):
            values = state._replace(pulls=pulls, bounds=bounds).packed()
            solved = newton(self, found, values)
            if solved.failures[0] or self.impossible(solved.unknowns)[0]:
                break
            found, chains = solved.unknowns, self.chains(solved.unknowns, values)
            inner, outer = chains.tension[..., :-1], chains.tension[..., 1:]
            newer = capstan_bounds(inner, outer, self.wraps(found), runs.friction, runs.drag)
            if not off_bounds(newer, bounds).any():
                anchors = drawn_along(state.anchors, chains.slips, bounds, runs.give)
                return found, RubbingState(pulls, anchors, bounds, chains.slips)
            bounds = newer
        if not finer:
            raise NoEquilibriumError(
                f"The arm has no balance at pulls {np.round(1e3 * pulls[0], 1).tolist()} mm.", NO_EQUILIBRIUM_ADVICE
            )
        for target in (0.5 * (state.pulls + pulls), pulls):
            unknowns, state = self._step_to(unknowns, target, state, finer - 1)
        return unknowns, state

    def _chains(self, nodes: Array, values: Array) -> Chains:
        longer = self._stretch(nodes, np.zeros(self._cables * self._own)).reshape(1, self._cables, self._own)
        return balanced_chains(longer, *self.held(values), self.runs.stiffness, self.runs.give, self._take_up)


def _of_runs(chains: Chains) -> Array:
    """Tensions (k E,) N of the own runs."""
    return np.ascontiguousarray(chains.tension[0, :, 1:]).reshape(-1)
