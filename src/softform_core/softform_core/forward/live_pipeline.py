"""The pipeline of the real robot, whose sim-to-real model may be trained anew while it is in use."""

from datetime import UTC, datetime
from pathlib import Path

from softform_core.errors import SoftformError
from softform_core.forward.bones import BonesOnLine
from softform_core.forward.forward_model import ForwardModel
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.forward.robot_models import (
    AUTO,
    NONE,
    LiveModels,
    ModelRequest,
    RobotModels,
    SurfaceModels,
    TipModels,
)
from softform_core.forward.robot_pipeline import SURFACE_POINTS, pipeline_of
from softform_core.forward.sim_to_real_store import SIM_TO_REAL, load_sim_to_real
from softform_core.forward.simulated_models import SimulatedBones, has_bones
from softform_core.forward.surface_uncertainty import SurfaceUncertainty
from softform_core.forward.tip_model import load_line, tip_model_in_use, tip_transfer_in_use
from softform_core.networks.mlp_weights import extract_mlp
from softform_core.networks.model_files import ModelError
from softform_core.networks.store import load_forward_kinematics
from softform_core.paths import models_of
from softform_core.robots import Robot

_Signature = tuple[tuple[int, int, int] | None, ...]


class LivePipeline(SurfaceModels):
    """Forward kinematics of the real robot; `refresh` takes a newly trained sim-to-real model into use.

    A model is swapped by one assignment: a solution or prediction under way keeps the models that it began with.

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
        self._robot, self._uv, self._weights = robot, robot.patches.samples(points), extract_mlp(network)
        self.simulated = pipeline_of(robot, self._weights, self._uv)
        self.models = LiveModels(self.simulated, None, None, datetime.now(UTC))
        self._folder: Path | None = None
        if sim_to_real != NONE:
            self._folder = models_of(robot.name) if sim_to_real == AUTO else Path(sim_to_real)
        self.fault = self._unreported = ""
        self._seen = self._signature()
        if sim_to_real not in (AUTO, NONE):
            self._take_into_use()
        elif self._seen is not None:
            try:
                self._take_into_use()
            except SoftformError as error:
                self.fault = self._unreported = str(error)

    @property
    def current(self) -> ForwardPipeline:
        """The real robot's pipeline: with sim-to-real, if there is a model."""
        assert isinstance(self.models.pipeline, ForwardPipeline)
        return self.models.pipeline

    def mean_error_mm(self, model: ForwardModel) -> float:
        """Return the mean error of `current` or `simulated` on data held out from its training, mm."""
        card = self.models.card
        if model is self.simulated or card is None:
            return self._simulated_card.errors_mm.test_mean
        return card.errors_mm.after_mean

    def description(self) -> dict[str, str]:
        """Return what is in use, for diagnostics."""
        models = self.models
        if models.card is None or self._folder is None:
            return {"sim-to-real": "none"}
        return {
            "sim-to-real": self._folder.name,
            "sim-to-real sha256": models.card.weights_sha256[:12],
            "sim-to-real in use since": models.since.isoformat(timespec="seconds"),
            "sim-to-real mean error on held-out frames, mm": f"{models.card.errors_mm.after_mean:.3f}",
        }

    def refresh(self) -> str | None:
        """Look whether the model on disk has changed, and take it into use; call this about once a second.

        A model that cannot be used leaves the old one in use. It is reported once, at the first call that finds the
        files as the call before did: files that are being copied are met half written.

        Returns:
            A line for the log when a model came into use or was rejected, else None.
        """
        signature = self._signature()
        if signature == self._seen:
            line, self._unreported = self._unreported, ""
            kept = "" if self.models.card is None else f" Model {self.models.card.weights_sha256[:12]} stays in use."
            return f"sim-to-real model rejected: {line}{kept}" if line else None
        self._seen = signature
        before = self.models.card
        try:
            self._take_into_use()
        except SoftformError as error:
            self.fault = self._unreported = str(error)
            return None
        after = self.models.card
        assert after is not None
        if before is not None and before.weights_sha256 == after.weights_sha256:
            return None
        instead = "the simulation alone" if before is None else f"model {before.weights_sha256[:12]}"
        return (
            f"sim-to-real model {after.weights_sha256[:12]} ({after.errors_mm.after_mean:.3f} mm on "
            f"{after.errors_mm.frames} held-out frames) is in use instead of {instead}"
        )

    def _take_into_use(self) -> None:
        """Load the model in the folder and swap.

        Raises:
            SoftformError: If it cannot be used; the old one stays.
        """
        assert self._folder is not None
        try:
            model = load_sim_to_real(self._robot, self._folder, self._simulated_card)
            pipeline = pipeline_of(self._robot, self._weights, self._uv, model.sim_to_real)
        except (RuntimeError, ValueError) as error:  # TorchScript that loads, but is not ours
            raise ModelError(f"The sim-to-real model in {self._folder} cannot be used: {error}.") from error
        uncertainty = SurfaceUncertainty(pipeline, model.members, model.spread_factor, model.spread_floor_mm)
        self.models = LiveModels(pipeline, uncertainty, model.card, datetime.now(UTC))
        self.fault = self._unreported = ""

    def _signature(self) -> _Signature | None:
        """Return which files are there, or None if there is no model."""
        if self._folder is None:
            return None
        files = (self._folder / SIM_TO_REAL.card_file, self._folder / SIM_TO_REAL.weights_file)
        signature = tuple(_identity(file) for file in files)
        return signature if any(signature) else None


def _identity(file: Path) -> tuple[int, int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


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
