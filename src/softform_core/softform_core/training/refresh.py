"""A sim-to-real model corrected from a handful of scans after sensors have drifted, or the body has softened.

What ages changes shapes nearly as other actuations do: gain and offset of every actuation are fitted anew, the learned
warp stays. Not in paper 000.
"""

import time
from dataclasses import replace

from softform_core.forward.pipeline import ForwardPipeline
from softform_core.forward.rbf_warp import SimToReal
from softform_core.forward.sim_to_real_store import SimToRealModel
from softform_core.frames.frames import Frames
from softform_core.networks.mlp_weights import MlpWeights
from softform_core.networks.sim_to_real import ShapeInput
from softform_core.surface.patch_set import PatchSet
from softform_core.training.actuation_fit import AGED, fit_actuation
from softform_core.training.sim_to_real_recipes import DEFAULT
from softform_core.training.trained_sim_to_real import TrainedSimToReal


def refresh(
    forward_kinematics: MlpWeights, model: SimToRealModel, frames: Frames, patches: PatchSet
) -> TrainedSimToReal:
    """Fit gain and offset of every actuation to new frames (four say enough), before what the model corrects."""
    begun = time.monotonic()
    uv = patches.samples(DEFAULT.surface_points)
    frames = frames.felt(model.sim_to_real.play)
    predicted = ForwardPipeline(forward_kinematics, uv, model.sim_to_real, patches)
    change = fit_actuation(predicted, forward_kinematics, frames, AGED)

    def corrected(one: SimToReal) -> SimToReal:
        return replace(one, actuation=change if one.actuation is None else one.actuation.after(change))

    of, training = model.sim_to_real.coefficients, model.card.training
    return TrainedSimToReal(
        sim_to_real=corrected(model.sim_to_real),
        members=[corrected(member) for member in model.members],
        confidence=[],
        shape_input=ShapeInput(of.input_offset, None, of.input_scale),
        validation_mm=training.validation_mm,
        best_epochs=training.best_epochs,
        seconds=time.monotonic() - begun,
        spread_factor=model.spread_factor,
        spread_floor_mm=model.spread_floor_mm,
    )
