"""The models of one robot that nodes serve, by name: each kind from the package that offers it.

A package adds a kind by an entry point of the group `softform.models`: `name = module:function`. The function takes a
`ModelRequest` and returns `RobotModels`.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from softform_core.errors import SoftformError
from softform_core.forward.forward_model import ForwardModel, SurfaceModel
from softform_core.forward.one_point import ServedTip, TipPoint
from softform_core.forward.outputs import Outputs
from softform_core.forward.surface_uncertainty import SurfaceUncertainty
from softform_core.networks.sim_to_real_card import SurfaceSimToRealCard
from softform_core.networks.store import FORWARD_KINEMATICS
from softform_core.paths import models_of
from softform_core.plugins import load_plugin
from softform_core.robots import Robot

GROUP = "softform.models"
LEARNED, SIMULATED = "learned", "fem"
"""Kinds of models: networks, and the simulator itself."""

AUTO = "auto"
NONE = "none"


@dataclass(frozen=True)
class ModelRequest:
    """Models that are to be served.

    Attributes:
        robot: The robot.
        points: Wanted number of surface points.
        folder: Folder of the model; None for the robot's own in `models/`.
        sim_to_real: `auto` for the robot's own sim-to-real model in `models/` if there is one, `none`, or its folder.
    """

    robot: Robot
    points: int
    folder: Path | None = None
    sim_to_real: str = AUTO


@dataclass(frozen=True)
class LiveModels:
    """Models of a robot's surface in use at one moment; immutable, so they may be kept as long as needed.

    Attributes:
        pipeline: The real robot's shapes, as far as they are known.
        uncertainty: Uncertainty of the points; None where it is not known.
        card: Card of the sim-to-real model; None without one.
        since: Time at which it was taken into use.
    """

    pipeline: SurfaceModel
    uncertainty: SurfaceUncertainty | None
    card: SurfaceSimToRealCard | None
    since: datetime


class RobotModels(ABC):
    """The models of one robot, kept fresh.

    Attributes:
        simulated: The simulated robot; the same object as `current` where nothing is known of the real one.
        fault: Reason why a newer model is not in use; empty if there is none, or it is.
    """

    simulated: ForwardModel
    fault = ""

    @property
    @abstractmethod
    def current(self) -> ForwardModel:
        """The real robot, as far as it is known."""

    def of(self, kind: str) -> "RobotModels":
        """Return the models of a kind, for one goal; empty: those in use now.

        Raises:
            SoftformError: If they cannot be used, or no other kind can be chosen here.
        """
        if kind:
            raise SoftformError("The model of a tip is settled when its node starts.", "Launch it with model:=KIND.")
        return self

    def mean_error_mm(self, model: ForwardModel) -> float:
        """Mean error of `current` or `simulated` on data it was not made from, mm; 0 if not known."""
        return 0.0

    @abstractmethod
    def description(self) -> dict[str, str]:
        """Return the description of the models in use, for diagnostics."""

    def refresh(self) -> str | None:
        """Look whether the models on disk have changed, and take them into use; returns a line for the log if so."""
        return None


class SurfaceModels(RobotModels):
    """The models of a robot with surfaces.

    Attributes:
        models: Model, uncertainty and card that belong together.
        simulated: The simulated robot, over the same points.
    """

    models: LiveModels
    simulated: SurfaceModel

    def of(self, kind: str) -> "SurfaceModels":
        """See `RobotModels.of`."""
        if kind:
            raise SoftformError("No other kind of model can be chosen here.", "Choose it where the models are opened.")
        return self

    @property
    def current(self) -> SurfaceModel:
        """The real robot, as far as it is known."""
        return self.models.pipeline


class TipModels(RobotModels):
    """The models of a robot's tip and, as far as they are known, of its centre line and its bones.

    Args:
        tip: The tip.
        told: What is said of its sim-to-real model.
        line: The centre line at effective actuations, a model whose `at` takes v along it; None without one.
        simulated_line: That of the simulated robot; `line` by default.
        bones: The places of `Robot.rider_parameters` at effective actuations; None if they are not known.
        simulated_bones: Those of the simulated robot; `bones` by default.

    Attributes:
        bones: As given.
        has_line: Whether they predict a centre line.
    """

    def __init__(
        self,
        tip: ServedTip,
        told: str,
        line: ForwardModel | None = None,
        simulated_line: ForwardModel | None = None,
        bones: ForwardModel | None = None,
        simulated_bones: ForwardModel | None = None,
    ) -> None:
        self.tip, self._told, self.has_line, self.bones = tip, told, line is not None, bones
        self._current = self.simulated = Outputs(TipPoint(tip), line, bones)
        if tip.sim_to_real is not None:
            simulated = TipPoint(tip.without_sim_to_real)
            self.simulated = Outputs(simulated, simulated_line or line, simulated_bones or bones)

    @property
    def current(self) -> ForwardModel:
        """The tip as a model of one point; by parameters (`forward.outputs`) points of line and bones, too."""
        return self._current

    def description(self) -> dict[str, str]:
        """See `RobotModels.description`."""
        return {"sim-to-real": self._told}


class FixedSurface(SurfaceModels):
    """One model of a surface beside which nothing is learned, such as a simulation.

    Args:
        model: The model.
        kind: Its kind, for diagnostics.
    """

    def __init__(self, model: SurfaceModel, kind: str) -> None:
        self.models = LiveModels(model, None, None, datetime.now(UTC))
        self.simulated, self._kind = model, kind

    def description(self) -> dict[str, str]:
        """See `RobotModels.description`."""
        return {"model": self._kind, "sim-to-real": NONE}


def kind_of_models(kind: str, request: ModelRequest) -> str:
    """Return the kind of models that is meant: of `auto` the learned ones, or where there are none the simulator."""
    if kind != AUTO:
        return kind
    folder = models_of(request.robot.name) if request.folder is None else request.folder
    is_learned = (folder / FORWARD_KINEMATICS.card_file).exists()  # that of a tip has the same name
    return LEARNED if is_learned or not request.robot.body.is_simulated else SIMULATED


def open_models(kind: str, request: ModelRequest) -> RobotModels:
    """Return the models of a kind for a robot.

    Raises:
        SoftformError: If there is no such kind, or its models are missing or cannot be used.
    """
    found, origin = load_plugin(GROUP, kind, "model")
    models = found(request)
    if not isinstance(models, RobotModels):
        raise SoftformError(f"The model '{kind}' of {origin} gives no RobotModels.", "See docs/extending.md.")
    return models


def open_surface_models(kind: str, request: ModelRequest) -> SurfaceModels:
    """Open the models of a robot that must have a surface, like `open_models`.

    Raises:
        SoftformError: For the reasons of `open_models`, and if the models are of a tip.
    """
    models = open_models(kind, request)
    if not isinstance(models, SurfaceModels):
        raise SoftformError(
            f"The model '{kind}' predicts a tip of '{request.robot.name}' and no surface.", "Choose another model."
        )
    return models
