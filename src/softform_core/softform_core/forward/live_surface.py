"""A surface whose sim-to-real model may be trained anew while it is in use."""

from abc import abstractmethod
from datetime import UTC, datetime
from pathlib import Path

from softform_core.errors import SoftformError
from softform_core.forward.forward_model import ForwardModel, SurfaceModel
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.forward.rbf_warp import SimToReal
from softform_core.forward.robot_models import LiveModels, SurfaceModels
from softform_core.forward.sim_to_real_store import SIM_TO_REAL, load_sim_to_real
from softform_core.forward.surface_uncertainty import SurfaceUncertainty
from softform_core.forward.warped_surface import WarpedSurface
from softform_core.networks.card import ModelCard
from softform_core.networks.model_files import ModelError
from softform_core.robots import Robot

_Signature = tuple[tuple[int, int, int] | None, ...]


class LiveSurface(SurfaceModels):
    """The simulated robot, and the real one by what was learned of it.

    `refresh` takes a newly trained sim-to-real model into use, by one assignment: a solution or prediction under way
    keeps the models that it began with.

    Args:
        robot: Robot whose models are loaded.
        simulated: The simulated robot.
        folder: Folder of the sim-to-real model; None for none, ever.
        is_needed: Whether a model must be there that can be used; else a `fault` says why there is none.
        learned_behind: Card of the N_fk that sim-to-real was learned behind; the robot's own N_fk by default.

    Raises:
        SoftformError: If a model that is needed is missing or cannot be used.
    """

    def __init__(
        self,
        robot: Robot,
        simulated: SurfaceModel,
        folder: Path | None,
        is_needed: bool,
        learned_behind: ModelCard | None = None,
    ) -> None:
        self._robot, self._folder, self._learned_behind = robot, folder, learned_behind
        self.simulated = simulated
        self.models = LiveModels(simulated, None, None, datetime.now(UTC))
        self.fault = self._unreported = ""
        self._seen = self._signature()
        if is_needed:
            self._take_into_use()
        elif self._seen is not None:
            try:
                self._take_into_use()
            except SoftformError as error:
                self.fault = self._unreported = str(error)

    @abstractmethod
    def corrected(self, sim_to_real: SimToReal) -> ForwardPipeline | WarpedSurface:
        """Return the simulated robot with N_s2r behind it."""

    def mean_error_mm(self, model: ForwardModel) -> float:
        """See `RobotModels.mean_error_mm`; known of what was learned."""
        card = self.models.card
        return 0.0 if card is None or model is self.simulated else card.errors_mm.after_mean

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
            model = load_sim_to_real(self._robot, self._folder, self._learned_behind)
            surface = self.corrected(model.sim_to_real)
        except (RuntimeError, ValueError) as error:  # TorchScript that loads, but is not ours
            raise ModelError(f"The sim-to-real model in {self._folder} cannot be used: {error}.") from error
        uncertainty = SurfaceUncertainty(surface, model.members, model.spread_factor, model.spread_floor_mm)
        self.models = LiveModels(surface, uncertainty, model.card, datetime.now(UTC))
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
