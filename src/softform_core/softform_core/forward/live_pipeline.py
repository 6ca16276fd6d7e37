"""The learned models of a robot: the pipeline N_fk, N_s2r of its surface, or its tip, line and bones."""

from pathlib import Path

from softform_core.forward.bones import BonesOnLine
from softform_core.forward.forward_model import ForwardModel
from softform_core.forward.live_surface import LiveSurface
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.forward.rbf_warp import SimToReal
from softform_core.forward.robot_models import AUTO, NONE, ModelRequest, RobotModels, TipModels
from softform_core.forward.robot_pipeline import SURFACE_POINTS, pipeline_of
from softform_core.forward.simulated_models import SimulatedBones, has_bones
from softform_core.forward.tip_model import load_line, tip_model_in_use, tip_transfer_in_use
from softform_core.networks.mlp_weights import extract_mlp
from softform_core.networks.store import load_forward_kinematics
from softform_core.paths import models_of
from softform_core.robots import Robot


class LivePipeline(LiveSurface):
    """Forward kinematics of the real robot, by N_fk and N_s2r.

    Args:
        robot: Robot whose models are loaded.
        points: Wanted number of surface points.
        forward_kinematics: Folder of N_fk; None for the robot's own in `models/`.
        sim_to_real: `auto` for the robot's own model in `models/` if there is one that can be used (a `fault` says why
            not), `none`, or the folder of a model, which must be usable.

    Raises:
        SoftformError: If N_fk, or the sim-to-real model in the folder given, is missing or cannot be used.
    """

    simulated: ForwardPipeline

    def __init__(
        self,
        robot: Robot,
        points: int = SURFACE_POINTS,
        forward_kinematics: Path | None = None,
        sim_to_real: str = AUTO,
    ) -> None:
        network, self._simulated_card = load_forward_kinematics(robot, forward_kinematics)
        self._uv, self._weights = robot.patches.samples(points), extract_mlp(network)
        folder = None
        if sim_to_real != NONE:
            folder = models_of(robot.name) if sim_to_real == AUTO else Path(sim_to_real)
        simulated = pipeline_of(robot, self._weights, self._uv)
        super().__init__(robot, simulated, folder, sim_to_real not in (AUTO, NONE), self._simulated_card)

    def corrected(self, sim_to_real: SimToReal) -> ForwardPipeline:
        """See `LiveSurface.corrected`."""
        return pipeline_of(self._robot, self._weights, self._uv, sim_to_real)

    @property
    def current(self) -> ForwardPipeline:
        """The real robot's pipeline: with sim-to-real, if there is a model."""
        assert isinstance(self.models.pipeline, ForwardPipeline)
        return self.models.pipeline

    def mean_error_mm(self, model: ForwardModel) -> float:
        """Return the mean error of `current` or `simulated` on data held out from its training, mm."""
        if model is self.simulated or self.models.card is None:
            return self._simulated_card.errors_mm.test_mean
        return super().mean_error_mm(model)


def learned(request: ModelRequest) -> RobotModels:
    """Return the learned models of a robot, of its surfaces or its tip, line and bones; offered as `softform.models`.

    Raises:
        SoftformError: If a model that is asked for is missing or cannot be used.
    """
    robot = request.robot
    if robot.surfaces:
        return LivePipeline(robot, request.points, request.folder, request.sim_to_real)
    tip = tip_model_in_use(robot, request.folder, request.sim_to_real)
    told = NONE if tip.sim_to_real is None else "in use"
    boned = has_bones(robot)
    if not robot.learns_line:  # what corrects a tip alone does not say where its bones are
        bones = SimulatedBones(robot) if boned and tip.sim_to_real is None else None
        return TipModels(tip, told, bones=bones)
    lines = [load_line(robot, request.folder, tip_transfer_in_use(robot, request.sim_to_real))]
    lines.append(load_line(robot, request.folder))
    return TipModels(tip, told, *lines, *(BonesOnLine(robot, line) if boned else None for line in lines))
