"""The members of an exported N_s2r, for kinematics in numpy."""

from typing import TYPE_CHECKING

import numpy as np

from softform_core.errors import SoftformError
from softform_core.forward.actuation_correction import ActuationCorrection
from softform_core.forward.rbf_warp import SimToReal
from softform_core.networks.mlp_weights import MlpWeights
from softform_core.networks.saved_network import SavedNetwork, arrays_of

if TYPE_CHECKING:
    from torch import nn


def members_of(network: "SavedNetwork | nn.Module") -> list[SimToReal]:
    """The members of an exported transfer, for kinematics in numpy.

    Args:
        network: A `SimToRealNetwork`, or what was read of its export.

    Raises:
        SoftformError: If it is no such network.
    """
    state = arrays_of(network)
    try:
        depth = len({name.split(".")[1] for name in state if name.startswith("layers.")})
        weights = [state[f"layers.{place}.weight"] for place in range(depth)]
        biases = [state[f"layers.{place}.bias"][:, 0] for place in range(depth)]
        weights[0] = weights[0] @ state["projection"]
        activation, width = str(network.activation), float(network.width)  # type: ignore[arg-type]
        ends = [state[name] for name in ("input_offset", "input_scale", "output_offset", "output_scale")]
        # Files of before have no correction of the actuation.
        correction = state.get("actuation_gain", np.ones(0)), state.get("actuation_offset", np.zeros(0))
        actuation = ActuationCorrection(*correction) if len(correction[0]) else None
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
