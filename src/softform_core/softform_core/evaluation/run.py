"""An evaluation from end to end: models and frames in, figures and report out."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from softform_core.errors import SoftformError
from softform_core.evaluation.captures import Capture, Captures, read_captures
from softform_core.evaluation.evaluate import (
    SURFACE_POINTS,
    JudgedFrame,
    drift,
    findings,
    judge,
    mean_error,
    predict_all_with,
    predict_by,
    worst_median_best,
)
from softform_core.evaluation.report_figures import report_figures
from softform_core.evaluation.report_html import report_html
from softform_core.evaluation.report_pdf import report_pdf
from softform_core.evaluation.report_tables import Report, frames_table, headline, overall_table
from softform_core.evaluation.summary import Figures, frame_figures, overall_figures
from softform_core.files import made_folder, write_atomically
from softform_core.forward.live_pipeline import LivePipeline
from softform_core.forward.robot_models import NONE
from softform_core.networks.sim_to_real_card import SurfaceSimToRealCard
from softform_core.provenance import git_revision, now
from softform_core.robots import Robot

METRICS_FILE, HTML_FILE, PDF_FILE = "metrics.json", "report.html", "report.pdf"
CPU = "cpu"
SCHEMA, SCHEMA_VERSION = "softform/evaluation", 1

Progress = Callable[[Iterable[Capture]], Iterable[Capture]]


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


def metrics(evaluation: Evaluation, command: str) -> Figures:
    """Return what `metrics.json` holds of an evaluation by that command line; distances in mm."""
    captures, card = evaluation.captures, evaluation.card
    ranked = worst_median_best(evaluation.judged)
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "robot": evaluation.robot.name,
        "robot_fingerprint": evaluation.robot.fingerprint(),
        "created": now(),
        "command": command,
        "git_revision": git_revision(),
        "recording": str(captures.path),
        "via": captures.via,
        "source": captures.source,
        "sim_to_real_sha256": None if card is None else card.weights_sha256,
        "frames_held_out": [capture.number for capture in captures.frames if not capture.trained_on],
        "frames_trained_on": [capture.number for capture in captures.frames if capture.trained_on],
        "frames_left_out": {str(number): reason for number, reason in captures.left_out.items()},
        "overall": overall_figures(evaluation.judged),
        "trained_on": overall_figures(evaluation.others) if evaluation.others else None,
        "worst_frame": ranked[0].number,
        "best_frame": ranked[-1].number,
        "findings": evaluation.findings,
        "actuation_unit": evaluation.robot.actuation_unit,
        "per_frame": [
            frame_figures(frame) | {"actuation": _actuation(evaluation, frame.number)}
            for frame in _in_order(evaluation)
        ],
    }


def _actuation(evaluation: Evaluation, number: int) -> dict[str, float]:
    """Return values of a frame by the names of the robot's degrees of freedom, in its unit."""
    captured = next(capture for capture in evaluation.captures.frames if capture.number == number)
    return dict(zip(evaluation.robot.actuation_names, captured.actuation.tolist(), strict=True))


def write_report(folder: Path, evaluation: Evaluation, figures: Figures) -> None:
    """Write `report.html`, `report.pdf` and, last, `metrics.json`; each replaces an older one at once.

    Raises:
        SoftformError: If they cannot be written.
    """
    report = _report(evaluation, figures)
    made_folder(folder)
    write_atomically(folder / HTML_FILE, report_html(report))
    write_atomically(folder / PDF_FILE, report_pdf(report))
    write_atomically(folder / METRICS_FILE, (json.dumps(figures, indent=2) + "\n").encode())


def _report(evaluation: Evaluation, figures: Figures) -> Report:
    robot, captures, card, judged = evaluation.robot, evaluation.captures, evaluation.card, evaluation.judged
    trained_on = [str(capture.number) for capture in captures.frames if capture.trained_on]
    facts = {
        "robot": f"{robot.name} ({robot.fingerprint()})",
        "frames": f"{captures.path}: {captures.source}, by {captures.via}, begun {captures.created}",
        "judged": ", ".join(str(frame.number) for frame in judged),
        "trained on": ", ".join(trained_on) or "no evaluated frame",
        "left out": ", ".join(str(number) for number in captures.left_out) or "none",
        "sim-to-real": "none",
        "command": str(figures["command"]),
        "revision": str(figures["git_revision"]),
        "written": str(figures["created"]),
    }
    if card is not None:
        facts["sim-to-real"] = f"sha256 {card.weights_sha256[:12]}, {card.created}, by: {card.command}"
    worst = worst_median_best(judged)[0].number
    values = ", ".join(f"{name} {value:.4g}" for name, value in _actuation(evaluation, worst).items())
    facts[f"frame {worst}, the worst"] = f"{values} {robot.actuation_unit}"
    kind = "held-out frames" if card is not None and not judged[0].trained_on else "frames"
    return Report(
        title=f"{robot.title}: {len(judged)} {kind}",
        facts=facts,
        headline=headline(judged),
        findings=evaluation.findings,
        overall=overall_table(judged),
        frames=frames_table(_in_order(evaluation)),
        figures=report_figures(judged, evaluation.others),
    )


def _in_order(evaluation: Evaluation) -> list[JudgedFrame]:
    return sorted([*evaluation.judged, *evaluation.others], key=lambda frame: frame.number)
