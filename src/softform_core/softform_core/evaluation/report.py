"""An evaluation on paper: one content of figures, tables and drawings, as JSON, as HTML and as PDF; millimetres."""

import base64
import io
import json
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure

from softform_core.evaluation.evaluate import Evaluation, JudgedFrame, worst_median_best
from softform_core.evaluation.report_figures import AFTER, BEFORE, ReportFigure, report_figures
from softform_core.evaluation.summary import Figures, before_and_after, overall_figures
from softform_core.files import made_folder, write_atomically
from softform_core.provenance import git_revision, now

METRICS_FILE, HTML_FILE, PDF_FILE = "metrics.json", "report.html", "report.pdf"
SCHEMA, SCHEMA_VERSION = "softform/evaluation", 1

_DPI = 120  # of pictures in the HTML
_PAGE = 11.69, 8.27  # A4, landscape, inches
_CHARACTERS_A_LINE, _LINES_A_PAGE = 160, 44
_CHARACTERS_PER_INCH = 14  # of a caption


@dataclass(frozen=True)
class Table:
    """Text in rows, with a cell for each column."""

    header: list[str]
    rows: list[list[str]]

    def lines(self) -> list[str]:
        """Return the table as lines of equal length: the first column to the left, the others to the right."""
        rows = [self.header, *self.rows]
        first, *widths = (max(map(len, column)) for column in zip(*rows, strict=True))
        cells = ([row[0].ljust(first), *(f"{c:>{w}}" for c, w in zip(row[1:], widths, strict=True))] for row in rows)
        return ["  ".join(row) for row in cells]


@dataclass(frozen=True)
class Report:
    """All of a report.

    Attributes:
        title: Title of the report.
        facts: Origin of the data, name and value.
        headline: The few figures that a reader wants first, name and value.
        findings: Remarks for the reader.
        overall: Figures of all frames together.
        frames: Figures of each frame.
        figures: The drawings.
    """

    title: str
    facts: dict[str, str]
    headline: dict[str, str]
    findings: list[str]
    overall: Table
    frames: Table
    figures: list[ReportFigure]


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
            {"frame": frame.number, "trained_on": frame.trained_on}
            | overall_figures([frame])
            | {"actuation": _actuation(evaluation, frame.number)}
            for frame in _in_order(evaluation)
        ],
    }


def write_report(folder: Path, evaluation: Evaluation, figures: Figures) -> None:
    """Write `report.html`, `report.pdf` and, last, `metrics.json`; each replaces an older one at once.

    Raises:
        SoftformError: If they cannot be written.
    """
    report = _report(evaluation, figures)
    made_folder(folder)
    write_atomically(folder / HTML_FILE, _html(report))
    write_atomically(folder / PDF_FILE, _pdf(report))
    write_atomically(folder / METRICS_FILE, (json.dumps(figures, indent=2) + "\n").encode())


def headline(frames: Sequence[JudgedFrame]) -> dict[str, str]:
    """Return the mean, largest error, surface seen and uncertainty, in a few words.

    Raises:
        SoftformError: If there is no frame.
    """
    before, after = before_and_after(frames)
    missing = f"{sum(frame.missing for frame in frames) / len(frames):.0%}"
    if after is None:
        return {
            "mean error": f"{before.captured.mean_mm:.2f} mm",
            "largest of a frame": f"{before.frame_max_mm:.1f} mm",
            "not captured": missing,
        }
    lines = {
        "mean error": f"{before.captured.mean_mm:.2f} → {after.captured.mean_mm:.2f} mm",
        "cut of the mean": f"{1.0 - after.captured.mean_mm / before.captured.mean_mm:.1%}",
        "largest of a frame": f"{before.frame_max_mm:.1f} → {after.frame_max_mm:.1f} mm",
        "cut of the largest": f"{1.0 - after.frame_max_mm / before.frame_max_mm:.1%}",
        "not captured": missing,
    }
    if after.within_two_sigma is not None:
        lines["within 1σ / 2σ"] = f"{after.within_one_sigma:.0%} / {after.within_two_sigma:.0%}"
    return lines


def _report(evaluation: Evaluation, figures: Figures) -> Report:
    robot, captures, card, judged = evaluation.robot, evaluation.captures, evaluation.card, evaluation.judged
    trained_on = [str(capture.number) for capture in captures.frames if capture.trained_on]
    worst = worst_median_best(judged)[0].number
    values = ", ".join(f"{name} {value:.4g}" for name, value in _actuation(evaluation, worst).items())
    model = "none" if card is None else f"sha256 {card.weights_sha256[:12]}, {card.created}, by: {card.command}"
    kind = "held-out frames" if card is not None and not judged[0].trained_on else "frames"
    return Report(
        title=f"{robot.title}: {len(judged)} {kind}",
        facts={
            "robot": f"{robot.name} ({robot.fingerprint()})",
            "frames": f"{captures.path}: {captures.source}, by {captures.via}, begun {captures.created}",
            "judged": ", ".join(str(frame.number) for frame in judged),
            "trained on": ", ".join(trained_on) or "no evaluated frame",
            "left out": ", ".join(str(number) for number in captures.left_out) or "none",
            "sim-to-real": model,
            "command": str(figures["command"]),
            "revision": str(figures["git_revision"]),
            "written": str(figures["created"]),
            f"frame {worst}, the worst": f"{values} {robot.actuation_unit}",
        },
        headline=headline(judged),
        findings=evaluation.findings,
        overall=_overall_table(judged),
        frames=_frames_table(_in_order(evaluation)),
        figures=report_figures(judged, evaluation.others),
    )


def _actuation(evaluation: Evaluation, number: int) -> dict[str, float]:
    """Return values of a frame by the names of the robot's degrees of freedom, in its unit."""
    captured = next(capture for capture in evaluation.captures.frames if capture.number == number)
    return dict(zip(evaluation.robot.actuation_names, captured.actuation.tolist(), strict=True))


def _in_order(evaluation: Evaluation) -> list[JudgedFrame]:
    return sorted([*evaluation.judged, *evaluation.others], key=lambda frame: frame.number)


def _overall_table(frames: Sequence[JudgedFrame]) -> Table:
    """Return every figure, before and after; figures that were not measured are left out."""
    sides = [side for side in before_and_after(frames) if side is not None]
    rows = []
    for name, values, form in (
        ("captured points (or markers) to the predicted surface: mean, mm", [s.captured.mean_mm for s in sides], ".3f"),
        ("their part along the normal: mean, mm", [s.normal_mean_mm for s in sides], ".3f"),
        ("RMS, mm", [s.captured.rms_mm for s in sides], ".3f"),
        ("median, mm", [s.captured.median_mm for s in sides], ".3f"),
        ("99th percentile, mm", [s.captured.p99_mm for s in sides], ".2f"),
        ("largest of a frame, in the mean, mm", [s.frame_max_mm for s in sides], ".2f"),
        ("largest of all, mm", [s.captured.max_mm for s in sides], ".2f"),
        ("predicted points to the capture, where seen: mean, mm", [s.surface_mean_mm for s in sides], ".3f"),
        ("Chamfer distance, Eq. 19, mm²", [s.chamfer_mm2 for s in sides], ".2f"),
        ("Hausdorff distance, Eq. 18, mm", [s.hausdorff_mm for s in sides], ".2f"),
        ("normal error, Eq. 21: mean", [s.normal_error for s in sides], ".5f"),
        ("noise of the capture, standard deviation, mm", [s.noise_mm for s in sides], ".3f"),
        ("predicted standard deviation: mean, mm", [s.sigma_mm for s in sides], ".3f"),
        ("captured points within one standard deviation", [s.within_one_sigma for s in sides], ".1%"),
        ("within two", [s.within_two_sigma for s in sides], ".1%"),
    ):
        if any(value is not None for value in values):
            rows.append([name, *(_text(value, form) for value in values)])
    return Table(["", BEFORE, AFTER][: 1 + len(sides)], rows)


def _frames_table(frames: Sequence[JudgedFrame]) -> Table:
    rows = []
    has_after = any(frame.after is not None for frame in frames)
    for frame in frames:
        before, after = before_and_after([frame])
        best = after or before
        row = [str(frame.number), ("training" if frame.trained_on else "held out") + (", fold" if best.folded else "")]
        row += [f"{frame.missing:.0%}", f"{before.captured.mean_mm:.2f}", f"{before.captured.max_mm:.1f}"]
        if after is not None:
            row += [f"{after.captured.mean_mm:.2f}", f"{after.captured.max_mm:.1f}"]
            row += [f"{1.0 - after.captured.mean_mm / before.captured.mean_mm:.0%}"]
        row += [f"{best.captured.rms_mm:.2f}", _text(best.chamfer_mm2, ".2f"), _text(best.hausdorff_mm, ".1f")]
        row += [_text(best.normal_error, ".4f")]
        if has_after:
            row += [_text(best.within_one_sigma, ".0%"), _text(best.within_two_sigma, ".0%")]
        rows.append(row)
    header = ["frame", "part", "missing", "mean before", "max before"]
    header += ["mean after", "max after", "cut"] if has_after else []
    header += ["RMS", "Chamfer", "Hausdorff", "normal"] + (["in 1σ", "in 2σ"] if has_after else [])
    return Table(header, rows)


def _text(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


def _html(report: Report) -> bytes:
    """Return the report as one file in UTF-8: pictures inline, no script, no outside host."""
    templates = PackageLoader("softform_core.evaluation", ".")
    page = Environment(loader=templates, autoescape=True, undefined=StrictUndefined).get_template("report.html")
    return page.render(report=report, png=_png).encode()


def _png(figure: Figure) -> str:
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=_DPI)
    return base64.b64encode(picture.getvalue()).decode()


def _pdf(report: Report) -> bytes:
    """Return the report as PDF. Drawings get title and caption on their page: draw what else they are for before."""
    words = [f"{name:<24}{value}" for name, value in report.headline.items()]
    words += ["", *report.overall.lines(), "", "To look at"]
    words += _wrapped([f"• {finding}" for finding in report.findings or ["Nothing stands out."]])
    words += ["", "Where this comes from", *_wrapped([f"{name}: {value}" for name, value in report.facts.items()])]
    content = io.BytesIO()
    with PdfPages(content, metadata={"Title": report.title, "Creator": "softform evaluate"}) as pages:
        _add_text(pages, report.title, words)
        for one in report.figures:
            width, height = one.figure.get_size_inches()
            caption = textwrap.fill(one.caption, round(_CHARACTERS_PER_INCH * width))
            # Outside the drawing: a page cut tightly around all grows by them.
            one.figure.text(0.0, 1.0 + 0.2 / height, one.title, fontsize=15, fontweight="bold")
            one.figure.text(0.0, -0.15 / height, caption, fontsize=9, va="top", color="#5b6570", linespacing=1.4)
            pages.savefig(one.figure, bbox_inches="tight", pad_inches=0.5)
        _add_text(pages, "Each frame (distances in mm, Chamfer in mm²)", report.frames.lines())
    return content.getvalue()


def _add_text(pages: PdfPages, title: str, lines: list[str]) -> None:
    for first in range(0, len(lines), _LINES_A_PAGE):
        page, shown = Figure(figsize=_PAGE), "\n".join(lines[first : first + _LINES_A_PAGE])
        page.text(0.05, 0.93, title, fontsize=15, fontweight="bold")
        page.text(0.05, 0.9, shown, family="monospace", fontsize=7.5, va="top", linespacing=1.4)
        pages.savefig(page)


def _wrapped(paragraphs: list[str]) -> list[str]:
    wrapped = (textwrap.wrap(one, _CHARACTERS_A_LINE, subsequent_indent="   ") for one in paragraphs)
    return [line for lines in wrapped for line in lines]
