"""The controller of paper 003 as printed: features by PCA, L^-1 by past moves, correction by the farthest pair.

What the paper leaves open is chosen here: Lambda is 1, n of Eq. 20 is 5, ICP's correspondences reach 10 mm, at most
five corrections an iteration, and the first poses are drawn within the move of Fig. 4.
"""

import time
from dataclasses import dataclass

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform
from softform_core.simulation.newton import NoEquilibriumError
from softform_shaping.control import command, intermediate_target, shape_error, shape_errors
from softform_shaping.controllers import Controller, Estimate, Task, stretched
from softform_shaping.correction import corrected
from softform_shaping.features import Past, inverse_interaction, principal_components
from softform_shaping.model import HeldModel, HeldShape
from softform_shaping.poses import limited, moved, pose_variation

__all__ = ["Printed", "PrintedController", "first_past"]

_TRIES = 20


@dataclass(frozen=True)
class Printed:
    """Parameters, printed unless said otherwise.

    Attributes:
        samples: D.
        features: k.
        fitness: Of ICP, below which the mesh is corrected.
        error: e at which it stops, m.
        parts: n of Eq. 20; not printed.
        gain: Of Lambda; not printed.
        shift: Largest shift of the first poses, m (of Fig. 4).
        turn: Largest turn of them, rad (of Fig. 4).
        stress_limit: Von Mises stress from which first shapes are discarded, Pa.
    """

    samples: int = 17
    features: int = 12
    fitness: float = 0.8
    error: float = 0.05
    parts: float = 5.0
    gain: float = 1.0
    shift: float = 0.02
    turn: float = np.pi / 10.0
    stress_limit: float = np.inf


def first_past(
    model: HeldModel, about: HeldShape, printed: Printed, stretch: float, random: np.random.Generator
) -> Past:
    """M and dR of D + 1 random poses, in simulation (Eqs. 6-8, Fig. 5).

    Raises:
        SoftformError: If hardly any random pose can be taken.
    """
    shapes, poses = [about.nodes.ravel()], [about.poses]
    here = about
    for _ in range(_TRIES * (printed.samples + 1)):
        if len(shapes) == printed.samples + 1:
            break
        drawn = random.uniform(-1.0, 1.0, (2, 2, 3)) * np.array([printed.shift, printed.turn])[:, None]
        wanted = moved(about.poses, drawn.ravel())
        if stretched(model, wanted) > stretch:
            continue
        try:
            found = model.shape(wanted, here)
        except NoEquilibriumError:
            continue
        if model.stresses(found).max() > printed.stress_limit:
            continue
        here = found
        shapes.append(here.nodes.ravel())
        poses.append(here.poses)
    if len(shapes) <= printed.samples:
        raise SoftformError(
            f"Of the random poses only {len(shapes) - 1} can be taken; {printed.samples} are needed.",
            "Allow more stress or more stretch, or smaller moves.",
        )
    shapes, poses = [*shapes[1:], shapes[0]], [*poses[1:], poses[0]]  # the last shape is where the robot is
    variations = [pose_variation(new, old) for old, new in zip(poses, poses[1:], strict=False)]
    return Past(np.stack(shapes, axis=1), np.stack(variations, axis=1))


class PrintedController(Controller):
    """Paper 003's.

    Args:
        task: What to do.
        printed: Parameters.
        random: Of the first poses.
    """

    def __init__(self, task: Task, printed: Printed, random: np.random.Generator) -> None:
        super().__init__(task)
        self.printed = printed
        rest = task.model.rest
        self.past = first_past(task.model, rest, printed, task.limits.stretch, random)
        self._simulated, self._nodes = rest, rest.nodes
        self._motion: RigidTransform | None = None
        self._is_first = True

    def observe(self, poses: Array, cloud: Array) -> Estimate:
        """Figs. 2 and 8: simulate, align, correct, and take the corrected shape into M."""
        task, before = self.task, self._simulated.poses
        began = time.process_time()
        simulated = task.model.shape(poses, self._simulated)
        simulating = time.process_time() - began
        # Not the cloud that ICP has moved: along flat sides it slides, and an end of the object would seem to be gone.
        self.sighting.require(task.visual.places(simulated.nodes), cloud)
        self._simulated = simulated
        found = corrected(
            task.model, task.visual, self._simulated, cloud,
            reach=task.reach, fitness=self.printed.fitness, start=self._motion,
        )  # fmt: skip
        self._motion, self._nodes = found.alignment.motion, found.shape.nodes
        if not self._is_first:
            self.past = self.past.with_new(self._nodes.ravel(), pose_variation(poses, before))
        self._is_first = False
        error = shape_error(task.target, self._nodes, self._motion)
        rms = shape_errors(task.target, self._motion.apply_inverse(self._nodes))[0]
        is_done = error < self.printed.error
        fitness = found.alignment.fitness
        return Estimate(self._nodes, self._simulated, error, rms, fitness, found.steps, is_done, is_done, simulating)

    def variation(self) -> Array:
        """Eqs. 15-22."""
        components = principal_components(self.past.shapes, self.printed.features)
        inverse = inverse_interaction(self.past, components)
        shape = self._nodes.ravel()
        wanted = intermediate_target(self.task.target.ravel(), shape, self.printed.parts)
        gains = np.full(12, self.printed.gain)
        return limited(command(inverse, components, wanted, shape, gains), *self.task.limits[:2])
