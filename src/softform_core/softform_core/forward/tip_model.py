"""The learned kinematics of a tip: N_fk, N_J and, if there is one, N_s2r (paper 001, Eq. 4), evaluated in numpy."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from softform_core.arrays import Array
from softform_core.forward.centre_line import LearnedLine
from softform_core.forward.forward_model import batch_of
from softform_core.forward.memory import NO_MEMORY, Memory, play_of
from softform_core.forward.mlp import AffineLayers, fold
from softform_core.forward.robot_models import AUTO, NONE
from softform_core.networks.mlp_weights import extract_mlp
from softform_core.networks.model_files import ModelError
from softform_core.networks.saved_network import SavedNetwork, arrays_of
from softform_core.networks.store import TIP_KINEMATICS, TIP_SIM_TO_REAL, load_tip_sim_to_real
from softform_core.paths import models_of
from softform_core.robots import Robot, load_robot

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class TipModel:
    """Position and Jacobian of the tip by the networks alone.

    Attributes:
        forward_kinematics: N_fk, actuation -> mm.
        jacobian_network: N_J, actuation -> mm per unit, flattened row by row.
        sim_to_real: N_s2r, from the simulated tip, mm, and, if it takes it, the actuation, to the real tip, mm;
            None if the simulated tip is meant.
        actuation_min: (m,).
        actuation_max: (m,).
        workspace_width_mm: Width of the simulated workspace, mm.
        memory: What it has learned of how the body stays behind its actuations; actuations here are the effective ones.
    """

    forward_kinematics: AffineLayers
    jacobian_network: AffineLayers
    sim_to_real: AffineLayers | None
    actuation_min: Array
    actuation_max: Array
    workspace_width_mm: float
    memory: Memory = NO_MEMORY

    @property
    def actuations(self) -> int:
        """Number m of actuations."""
        return len(self.actuation_min)

    @property
    def dimensions(self) -> int:
        """Number n of the tip's coordinates."""
        return len(self.forward_kinematics.biases[-1])

    @property
    def without_sim_to_real(self) -> "TipModel":
        """The same model for the simulated tip."""
        return replace(self, sim_to_real=None, memory=NO_MEMORY)

    def with_transfer(self, robot: Robot, transfer: "SavedNetwork | nn.Module") -> "TipModel":
        """Return the same model for the real tip by an N_s2r, a `TipTransfer` or what was read of its export."""
        memory = play_of(robot, arrays_of(transfer).get("play_width", np.empty(0)))
        return replace(self, sim_to_real=fold(extract_mlp(transfer)), memory=memory)

    def tip(self, actuation: ArrayLike) -> Array:
        """Return tips r(p^s(c)) (…, n) mm at actuations (…, m).

        Raises:
            SoftformError: If the actuation has another number of values.
        """
        flat, batch = batch_of(actuation, self.actuations)
        tips = self.forward_kinematics.values(flat)
        if self.sim_to_real is not None:
            tips = self.sim_to_real.values(self._transfer_inputs(tips, flat))
        return tips.reshape(*batch, self.dimensions)

    def tip_and_jacobian(self, actuation: ArrayLike) -> tuple[Array, Array]:
        """Return tips (…, n) mm and Jacobians diff(N_s2r) J^s (…, n, m) mm/Pa at actuations (…, m) (Eq. 4).

        Of an N_s2r that takes the actuation too, the Jacobian is the total derivative.

        Raises:
            SoftformError: If the actuation has another number of values.
        """
        flat, batch = batch_of(actuation, self.actuations)
        tips = self.forward_kinematics.values(flat)
        jacobians = self.jacobian_network.values(flat).reshape(-1, self.dimensions, self.actuations)
        if self.sim_to_real is not None:
            hidden = self.sim_to_real.hidden(self._transfer_inputs(tips, flat))
            by_actuation = jacobians.swapaxes(1, 2)
            if self.sim_to_real.inputs > self.dimensions:
                unit = np.broadcast_to(np.eye(self.actuations), (len(flat), self.actuations, self.actuations))
                by_actuation = np.concatenate([by_actuation, unit], axis=2)
            tips = self.sim_to_real.output(hidden[-1])
            jacobians = np.asarray(self.sim_to_real.jacobian(hidden, by_actuation).swapaxes(1, 2), dtype=np.float64)
        return tips.reshape(*batch, self.dimensions), jacobians.reshape(*batch, *jacobians.shape[1:])

    def _transfer_inputs(self, tips: Array, actuations: Array) -> Array:
        assert self.sim_to_real is not None
        return tips if self.sim_to_real.inputs == self.dimensions else np.concatenate([tips, actuations], axis=1)


def load_tip_model(
    robot: Robot | str, folder: Path | str | None = None, sim_to_real: Path | str | None = None
) -> TipModel:
    """Return the learned kinematics of a robot.

    Args:
        robot: The robot or its name.
        folder: Holds N_fk and N_J; `models/<robot>` by default.
        sim_to_real: Folder that holds N_s2r; without it, the model is of the simulated tip.

    Raises:
        ModelError: If a model is missing, corrupt, made for another robot, or N_s2r was trained with another N_fk.
    """
    robot = load_robot(robot, "tip") if isinstance(robot, str) else robot
    place = models_of(robot.name) if folder is None else Path(folder)
    kinematics, card = TIP_KINEMATICS.load(place, robot)
    simulated = TipModel(
        fold(extract_mlp(kinematics.forward_kinematics)),
        fold(extract_mlp(kinematics.jacobian)),
        None,
        robot.actuation_min,
        robot.actuation_max,
        card.workspace_width_mm,
    )
    if sim_to_real is None:
        return simulated
    return simulated.with_transfer(robot, load_tip_sim_to_real(robot, Path(sim_to_real), card)[0])


def load_line(robot: Robot, folder: Path | None = None, sim_to_real: Path | None = None) -> LearnedLine:
    """Return the learned centre line of a robot; arguments as of `load_tip_model`.

    A sim-to-real model that was learned without centre lines leaves it as simulated.

    Raises:
        ModelError: For the reasons of `load_tip_model`, and if the model holds no such line.
    """
    place = models_of(robot.name) if folder is None else folder
    kinematics, card = TIP_KINEMATICS.load(place, robot)
    count, again = 3 * robot.line_learning.control_points, TIP_KINEMATICS.train_again(robot)
    network = getattr(kinematics, "centre_line", None)
    if network is None:
        raise ModelError(f"The model in {place} holds no centre line, which '{robot.name}' has.", again)
    layers = fold(extract_mlp(network))
    if len(layers.biases[-1]) != count:
        raise ModelError(f"The centre line in {place} has {len(layers.biases[-1])} numbers, not {count}.", again)
    transfer = None if sim_to_real is None else load_tip_sim_to_real(robot, sim_to_real, card)[0]
    of_line = getattr(transfer, "centre_line", None)
    return LearnedLine(robot, layers, None if of_line is None else fold(extract_mlp(of_line)))


def tip_model_in_use(robot: Robot, folder: Path | None, sim_to_real: str) -> TipModel:
    """Return the kinematics that the parameters of a node ask for.

    Args:
        robot: The robot.
        folder: Holds N_fk and N_J; None for the robot's own in `models/`.
        sim_to_real: `auto` for the robot's own model in `models/` if there is one, `none`, or the folder of a model.

    Raises:
        ModelError: For the reasons of `load_tip_model`.
    """
    return load_tip_model(robot, folder, tip_transfer_in_use(robot, sim_to_real))


def tip_transfer_in_use(robot: Robot, sim_to_real: str) -> Path | None:
    """Return the folder of the sim-to-real model that a node's parameter asks for; None for none."""
    if sim_to_real == AUTO:
        own = models_of(robot.name)
        return own if (own / TIP_SIM_TO_REAL.weights_file).exists() else None
    return None if sim_to_real == NONE else Path(sim_to_real)
