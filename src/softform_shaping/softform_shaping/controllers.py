"""What both controllers share: what they know, what they are told each iteration, and what they answer."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from softform_core.arrays import Array
from softform_shaping.model import HeldModel, HeldShape
from softform_shaping.sighting import Sighting
from softform_shaping.visual_mesh import VisualMesh

__all__ = ["Controller", "Estimate", "Limits", "Task"]


class Limits(NamedTuple):
    """Of the grippers in one iteration, and between them.

    Attributes:
        shift: m.
        turn: rad.
        stretch: Largest distance of the grippers over that at the grasp.
    """

    shift: float = 0.01
    turn: float = 0.1
    stretch: float = 1.15


@dataclass(frozen=True, eq=False)
class Task:
    """A target shape, and what is known of the object.

    Attributes:
        model: Of the object.
        visual: Its visual mesh.
        target: m* (V, 3) m.
        limits: Of the grippers.
        reach: Of ICP's correspondences, m.
    """

    model: HeldModel
    visual: VisualMesh
    target: Array
    limits: Limits = Limits()
    reach: float = 0.01


class Estimate(NamedTuple):
    """What a controller believes after it saw the object.

    Attributes:
        nodes: (V, 3) m, the corrected mesh.
        shape: As simulated between the grippers, uncorrected: a stiff object is not stressed by noise of the camera.
        error: Eq. 28, m.
        rms: The same as root mean square over the nodes, mm.
        fitness: Of ICP (Eq. 10).
        corrections: Steps of the correction.
        is_done: Whether it would stop here: it is content, or knows no move that brings the object nearer.
        is_near: Whether it takes the target for reached.
        simulating: Processor time of the shape between the grippers, s; what else `observe` takes is correction.
    """

    nodes: Array
    shape: HeldShape
    error: float
    rms: float
    fitness: float
    corrections: int
    is_done: bool
    is_near: bool
    simulating: float


class Controller(ABC):
    """Brings the object to a target, one iteration after another.

    Attributes:
        task: What to do.
        sighting: Judges what the camera sees, before the controller believes it.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self.sighting = Sighting(task.model, task.visual, 2.0 * task.reach)

    @abstractmethod
    def observe(self, poses: Array, cloud: Array) -> Estimate:
        """Take in where the grippers are, (12,), and what the camera sees of the object, (N, 3) m.

        Raises:
            SightingError: If the cloud shows too little or something else; another one may be given.
            SoftformError: If no shape explains it.
        """

    @abstractmethod
    def variation(self) -> Array:
        """The next variation of the poses, (12,), within the limits of one iteration."""


def stretched(model: HeldModel, poses: Array) -> float:
    """Distance of the grippers over that at the grasp."""
    centres = np.stack([model.rest_nodes[held].mean(axis=0) for held in model.held])
    moved = centres + poses.reshape(2, 6)[:, :3]
    return float(np.linalg.norm(moved[1] - moved[0]) / np.linalg.norm(centres[1] - centres[0]))
