"""Models of several kinds for one robot, of which one is in use at a time: chosen while they are served."""

import threading
from collections.abc import Callable

from softform_core.errors import SoftformError
from softform_core.forward.forward_model import ForwardModel
from softform_core.forward.robot_models import SurfaceModels


class ChosenSurface(SurfaceModels):
    """The models of a robot's surface of the kind that was chosen last; each kind is opened once, and kept fresh.

    A goal takes `of`, and so keeps what it began with; what is served for longer asks for `current` each time.

    Args:
        kind: Kind in use at first.
        models: Its models.
        open_kind: Opens the models of another kind over the same points, ready to be used; takes seconds.

    Attributes:
        kind: Kind in use.
    """

    def __init__(self, kind: str, models: SurfaceModels, open_kind: Callable[[str], SurfaceModels]) -> None:
        self._opened, self._open = {kind: models}, open_kind
        self._lock, self._opening = threading.Lock(), dict[str, threading.Lock]()
        self._use(kind, models)

    def of(self, kind: str) -> SurfaceModels:
        """See `RobotModels.of`; a kind that was not in use yet is opened, which takes seconds. From any thread."""
        if (opened := self._opened.get(kind or self.kind)) is not None:
            return opened  # at once, whatever is being opened meanwhile
        with self._lock:
            opening = self._opening.setdefault(kind, threading.Lock())
        with opening:
            if kind not in self._opened:
                models = self._open(kind)
                if len(models.current.uv) != len(self.models.pipeline.uv):
                    raise SoftformError(
                        f"The model '{kind}' has {len(models.current.uv)} points, and {len(self.models.pipeline.uv)} "
                        "are served.",
                        "Start the stack with that model.",
                    )
                self._opened[kind] = models
            return self._opened[kind]

    def choose(self, kind: str) -> None:
        """Use a kind from now on, which `of` has opened before if that must not take long.

        Raises:
            SoftformError: If there is no such kind, or its models are missing or cannot be used; nothing changes then.
        """
        self._use(kind, self.of(kind))

    def mean_error_mm(self, model: ForwardModel) -> float:
        """See `RobotModels.mean_error_mm`."""
        return self._opened[self.kind].mean_error_mm(model)

    def description(self) -> dict[str, str]:
        """See `RobotModels.description`."""
        return {**self._opened[self.kind].description(), "model": self.kind}

    def refresh(self) -> str | None:
        """See `RobotModels.refresh`."""
        line = self._opened[self.kind].refresh()
        self._use(self.kind, self._opened[self.kind])
        return line

    def _use(self, kind: str, models: SurfaceModels) -> None:
        self.kind, self.models, self.simulated, self.fault = kind, models.models, models.simulated, models.fault
