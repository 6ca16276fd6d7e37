"""The model file of N_s2r, its card, and its members for kinematics in numpy."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.memory import PARTS, PrandtlIshlinskii
from softform_core.forward.rbf_warp import ActuationCorrection, SimToReal
from softform_core.networks.card import ModelCard
from softform_core.networks.mlp_weights import MlpWeights, mean_of, perceptron_of
from softform_core.networks.model_files import ModelError, ModelFiles
from softform_core.networks.saved_network import SavedNetwork, arrays_of
from softform_core.networks.sim_to_real_card import SurfaceSimToRealCard
from softform_core.networks.store import FORWARD_KINEMATICS, SIM_TO_REAL_FILES, require_kinematics
from softform_core.paths import models_of
from softform_core.robots import Robot, load_robot

if TYPE_CHECKING:
    from torch import nn

SIM_TO_REAL = ModelFiles("sim-to-real", SurfaceSimToRealCard, *SIM_TO_REAL_FILES)


@dataclass(frozen=True)
class SimToRealModel:
    """A sim-to-real model that has been read and checked.

    Attributes:
        sim_to_real: The mean of the members, for the pipelines of kinematics.
        members: Members of the ensemble.
        spread_factor: See `forward.surface_uncertainty`.
        spread_floor_mm: See `forward.surface_uncertainty`.
        card: Card of the model.
    """

    sim_to_real: SimToReal
    members: list[SimToReal]
    spread_factor: float
    spread_floor_mm: float
    card: SurfaceSimToRealCard


def load_sim_to_real(
    robot: Robot | str, folder: Path | str | None = None, forward_kinematics: ModelCard | None = None
) -> SimToRealModel:
    """Return N_s2r of a robot.

    Args:
        robot: The robot or its name.
        folder: Folder that holds the model; `models/<robot>` by default.
        forward_kinematics: Card of the N_fk with which it will be used; by default of the robot's own in `models`.

    Raises:
        ModelError: If the model is missing, corrupt, of another schema, made for another robot, or trained with
            another N_fk.
    """
    robot = load_robot(robot) if isinstance(robot, str) else robot
    own = models_of(robot.name)
    folder = own if folder is None else Path(folder)
    network, card = SIM_TO_REAL.load(folder, robot)
    simulated = FORWARD_KINEMATICS.read_card(own, robot) if forward_kinematics is None else forward_kinematics
    require_kinematics(card, simulated, folder, SIM_TO_REAL.train_again(robot))
    members = members_of(network)
    mean = replace(members[0], coefficients=mean_of([one.coefficients for one in members]))
    return SimToRealModel(mean, members, float(network.spread_factor), float(network.spread_floor_mm), card)


def members_of(network: "SavedNetwork | nn.Module") -> list[SimToReal]:
    """Return the members of a `SimToRealNetwork`, or of what was read of its export, for kinematics in numpy.

    Raises:
        ModelError: If it has a memory of a kind that is no longer read.
        SoftformError: If it is no such network.
    """
    state = arrays_of(network)
    if state.get("play_width", np.empty(0)).size:
        raise ModelError(
            "This sim-to-real model keeps its memory as one `play_width`, which is no longer read: it would predict "
            "as if the body had none.",
            "Train it again: ./softform train s2r.",
        )
    try:
        depth = len({name.split(".")[1] for name in state if name.startswith("layers.")})
        weights = [state[f"layers.{place}.weight"] for place in range(depth)]
        biases = [state[f"layers.{place}.bias"][:, 0] for place in range(depth)]
        weights[0] = weights[0] @ state["projection"]
        activation, width = str(network.activation), float(network.width)  # type: ignore[arg-type]
        ends = [state[name] for name in ("input_offset", "input_scale", "output_offset", "output_scale")]
        actuation = _correction_of(state, str(getattr(network, "correction_activation", "")))
        return [
            SimToReal(
                state["kernel_uv"],
                MlpWeights([layer[k] for layer in weights], [layer[k] for layer in biases], activation, *ends),
                width,
                actuation,
            )
            for k in range(len(weights[0]))
        ]
    except (AttributeError, KeyError, IndexError, ValueError) as error:
        raise SoftformError(f"This network is no sim-to-real transfer: {error}.", "Export the model again.") from error


def _correction_of(state: Mapping[str, Array], activation: str) -> ActuationCorrection | None:
    """Return the correction before N_fk, if there is one."""
    depth = sum(name.startswith("correction.") and name.endswith(".weight") for name in state)
    if not depth:
        return None
    weights = [state[f"correction.{place}.weight"][0] for place in range(depth)]
    biases = [state[f"correction.{place}.bias"][0, 0] for place in range(depth)]
    learned = [state.get(f"memory_{name}", np.empty(0)) for name in PARTS]
    memory = PrandtlIshlinskii(*learned) if learned[0].size else None
    return ActuationCorrection(perceptron_of(weights, biases, activation), memory)
