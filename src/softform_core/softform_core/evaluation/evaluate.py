"""A model judged on captured frames: simulation alone ("before") against sim-to-real ("after")."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.evaluation.captures import Capture, Captures, read_captures
from softform_core.evaluation.comparison import Comparison, PredictedSurface, compare_markers, compare_scan
from softform_core.forward.live_pipeline import LivePipeline
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.forward.robot_models import NONE
from softform_core.forward.surface_uncertainty import SurfaceUncertainty
from softform_core.networks.sim_to_real_card import SurfaceSimToRealCard
from softform_core.robots import Robot

CPU = "cpu"

SURFACE_POINTS = 10_000
"""Grid points that stand for the surface: 3.2 mm apart on the membrane, triangles 0.02 mm off the surface."""

_STANDS_OUT = 5.0
_DRIFTED = 1.5
"""Error over that on the model's own held-out frames, above which the model no longer fits the robot."""

Progress = Callable[[Iterable[Capture]], Iterable[Capture]]
Predict = Callable[[Capture], tuple[PredictedSurface, PredictedSurface | None]]
"""Returns the simulated surface at a capture's actuation, and the corrected one if there is a sim-to-real model."""


@dataclass(frozen=True)
class JudgedFrame:
    """One frame and how far the predictions are from it.

    Attributes:
        number: Index of the frame in the recording.
        trained_on: Whether the model has learned from it.
        missing: Share of the predicted surface, or of the markers, that was not captured.
        before: Simulation alone.
        after: Errors with sim-to-real; None without a model.
    """

    number: int
    trained_on: bool
    missing: float
    before: Comparison
    after: Comparison | None

    @property
    def best(self) -> Comparison:
        """The comparison that counts: after, if there is a model."""
        return self.before if self.after is None else self.after


def predict_by(simulated: ForwardPipeline, current: ForwardPipeline, uncertainty: SurfaceUncertainty | None) -> Predict:
    """Return a predictor by pipelines over one grid; `current` is corrected, unless it has no uncertainty."""

    def predict(capture: Capture) -> tuple[PredictedSurface, PredictedSurface | None]:
        before = PredictedSurface.of(simulated, capture.actuation)
        if uncertainty is None:
            return before, None
        effective = capture.effective(current.sim_to_real)
        return before, PredictedSurface.of(current, effective, uncertainty.along_normals(effective))

    return predict


def predict_all_with(models: LivePipeline, captures: Sequence[Capture], device: str) -> Predict:
    """Return a predictor like `predict_by`, of all these captures at once by PyTorch on a device.

    Raises:
        SoftformError: If PyTorch cannot compute on it.
    """
    from softform_core.forward.shapes_on_device import ShapesOnDevice  # torch takes a second to load
    from softform_core.torch_device import checked_device

    place, current, patches = checked_device(device), models.current, models.simulated.patches
    actuation = np.array([capture.actuation for capture in captures])
    points, _ = ShapesOnDevice(models.simulated, None, place).predicted(actuation)
    before = [PredictedSurface(shape, None, patches) for shape in points]
    after: list[PredictedSurface | None] = [None] * len(before)
    if current is not models.simulated:
        effective = np.array([capture.effective(current.sim_to_real) for capture in captures])
        points, sigma = ShapesOnDevice(current, models.models.uncertainty, place).predicted(effective)
        assert sigma is not None
        after = [PredictedSurface(*shape, patches) for shape in zip(points, sigma, strict=True)]
    numbers = (capture.number for capture in captures)
    surfaces = dict(zip(numbers, zip(before, after, strict=True), strict=True))
    return lambda capture: surfaces[capture.number]


def judge(capture: Capture, uv: Array | None, predict: Predict) -> JudgedFrame:
    """Compare one frame, of markers at (M, 2) or of a scan, with the surfaces predicted for its actuation.

    Raises:
        SoftformError: If the prediction is not finite, or the frame cannot be compared with.
    """
    surfaces = predict(capture)
    compared = []
    for surface in surfaces:
        if surface is None:
            continue
        if not np.isfinite(surface.points).all():
            raise SoftformError(
                f"The surface predicted for frame {capture.number} is not finite.", "Train the model again."
            )
        try:
            if uv is None:
                compared.append(compare_scan(surface, capture.points))
            else:
                compared.append(compare_markers(surface, capture.points, uv))
        except SoftformError as error:
            raise SoftformError(f"Frame {capture.number}: {error.message}", error.next_step) from error
    before, after = compared[0], compared[1] if len(compared) > 1 else None
    seen = compared[-1].seen.mean() if uv is None else len(before.captured) / len(capture.points)
    return JudgedFrame(capture.number, capture.trained_on, 1.0 - float(seen), before, after)


def mean_error(frame: JudgedFrame) -> float:
    """Return the mean distance (mm) by which frames are ranked."""
    return float(frame.best.distances.mean())


def worst_median_best(frames: Sequence[JudgedFrame]) -> list[JudgedFrame]:
    """Return the frames with the largest, the middle and the smallest mean error; fewer if there are fewer."""
    ranked = sorted(frames, key=mean_error, reverse=True)
    places = sorted({0, len(ranked) // 2, len(ranked) - 1})
    return [ranked[place] for place in places]


def findings(frames: Sequence[JudgedFrame], left_out: dict[int, str]) -> list[str]:
    """Return what a person should look at, each with the number of its frame."""
    found = [f"Frame {number} is left out: {reason}" for number, reason in left_out.items()]
    errors = np.array([mean_error(frame) for frame in frames])
    median = float(np.median(errors))
    spread = 1.4826 * float(np.median(np.abs(errors - median)))
    for frame, error in zip(frames, errors, strict=True):
        before = float(frame.before.distances.mean())
        if folds := frame.best.folded:
            found.append(
                f"Frame {frame.number}: the predicted surface folds over itself (du x dv flips at {folds} cells of its "
                "grid). Do not command this actuation before the model is trained anew."
            )
        if error > max(2.0 * median, median + _STANDS_OUT * spread):
            found.append(
                f"Frame {frame.number} stands out: {error:.2f} mm in the mean, {median:.2f} mm is usual. Was it "
                "captured under another actuation, unregistered, or is its actuation far from all that was learned?"
            )
        if frame.after is not None and error > before:
            found.append(f"Frame {frame.number}: sim-to-real makes it worse, {before:.2f} to {error:.2f} mm.")
        if frame.best.beside:
            found.append(
                f"Frame {frame.number}: {frame.best.beside} captured points lie beside the robot, not compared."
            )
    return found


def drift(robot: Robot, errors_mm: Sequence[float], promised_mm: float) -> str:
    """Return a warning if shapes captured after a model was made have larger errors than its own; else empty."""
    error = float(np.median(errors_mm))
    if error <= _DRIFTED * promised_mm:
        return ""
    return (
        f"The robot has drifted from its model: {error:.2f} mm in the mean, {promised_mm:.2f} mm when it was made. "
        f"Correct the model by five scans: ./softform collect --robot {robot.given_as} --attach --frames 5 "
        f"--output NEW, then ./softform refresh --robot {robot.given_as} --frames NEW"
    )


@dataclass(frozen=True)
class Evaluation:
    """A model judged on a recording.

    Attributes:
        robot: Robot of the model.
        captures: The recording.
        card: Card of the sim-to-real model; None for the simulation alone.
        judged: Frames that count: the held-out ones, or all if there are no other.
        others: Frames that the model was trained on, if they were asked for, too.
        findings: Remarks for the reader.
    """

    robot: Robot
    captures: Captures
    card: SurfaceSimToRealCard | None
    judged: list[JudgedFrame]
    others: list[JudgedFrame]
    findings: list[str]


def evaluate(
    robot: Robot,
    recording: Path,
    sim_to_real: str,
    held_out_only: bool = True,
    progress: Progress = iter,
    device: str = CPU,
) -> Evaluation:
    """Judge a model on captured frames.

    `sim_to_real` is `auto`, `none` or a folder, as of `LivePipeline`; `progress` wraps the frames while they are
    judged. On another device than `cpu`, such as `cuda`, PyTorch predicts all surfaces at once.

    Raises:
        SoftformError: If a model or the recording is missing or cannot be used, no frame is left to judge, or PyTorch
            cannot compute on the device.
    """
    models = LivePipeline(robot, SURFACE_POINTS, None, sim_to_real)
    if models.fault:
        raise SoftformError(models.fault, "To judge the simulation alone, give --sim-to-real none.")
    card = models.models.card
    captures = read_captures(recording, robot, card)
    chosen = [capture for capture in captures.frames if not (held_out_only and capture.trained_on)]
    if not chosen:
        raise SoftformError(
            f"The model was trained on each of the {len(captures.frames)} frames of {recording}.",
            "Give frames that it has not seen, or --all to judge it on these.",
        )
    if device == CPU:
        predict = predict_by(models.simulated, models.current, models.models.uncertainty)
    else:
        predict = predict_all_with(models, chosen, device)
    frames = [judge(capture, captures.uv, predict) for capture in progress(chosen)]
    held_out = [frame for frame in frames if not frame.trained_on]
    others = [frame for frame in frames if frame.trained_on] if held_out else []
    found = findings(frames, captures.left_out)
    if not held_out:
        found.insert(0, "The model was trained on every judged frame: its errors elsewhere are larger.")
    if card is not None and captures.created != card.frames.created:
        aged = drift(robot, [mean_error(frame) for frame in frames], card.errors_mm.after_mean)
        found = [*filter(None, [aged]), *found]
    if card is None and sim_to_real != NONE:
        found.insert(
            0,
            f"There is no sim-to-real model of '{robot.name}': only the simulation is judged. "
            f"Train one with: ./softform train s2r --robot {robot.given_as}",
        )
    return Evaluation(robot, captures, card, held_out or frames, others, found)
