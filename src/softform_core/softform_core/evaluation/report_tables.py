"""Words and tables of an evaluation, the same in HTML and PDF."""

from collections.abc import Sequence
from dataclasses import dataclass

from softform_core.evaluation.evaluate import JudgedFrame
from softform_core.evaluation.report_figures import AFTER, BEFORE, ReportFigure
from softform_core.evaluation.summary import before_and_after


@dataclass(frozen=True)
class Table:
    """Text in rows, with a cell for each column."""

    header: list[str]
    rows: list[list[str]]


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


def headline(frames: Sequence[JudgedFrame]) -> dict[str, str]:
    """Return the mean, largest error, surface seen and uncertainty, in a few words.

    Raises:
        SoftformError: If there is no frame.
    """
    before, after = before_and_after(frames)
    missing = sum(frame.missing for frame in frames) / len(frames)
    if after is None:
        return {
            "mean error": f"{before.captured.mean_mm:.2f} mm",
            "largest of a frame": f"{before.frame_max_mm:.1f} mm",
            "not captured": f"{missing:.0%}",
        }
    cut = 1.0 - after.captured.mean_mm / before.captured.mean_mm
    max_cut = 1.0 - after.frame_max_mm / before.frame_max_mm
    lines = {
        "mean error": f"{before.captured.mean_mm:.2f} → {after.captured.mean_mm:.2f} mm",
        "cut of the mean": f"{cut:.1%}",
        "largest of a frame": f"{before.frame_max_mm:.1f} → {after.frame_max_mm:.1f} mm",
        "cut of the largest": f"{max_cut:.1%}",
        "not captured": f"{missing:.0%}",
    }
    if after.within_two_sigma is not None:
        lines["within 1σ / 2σ"] = f"{after.within_one_sigma:.0%} / {after.within_two_sigma:.0%}"
    return lines


def overall_table(frames: Sequence[JudgedFrame]) -> Table:
    """Return every figure, before and after; figures that were not measured are left out.

    Raises:
        SoftformError: If there is no frame.
    """
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


def frames_table(frames: Sequence[JudgedFrame]) -> Table:
    """Return one row a frame."""
    rows = []
    has_after = any(frame.after is not None for frame in frames)
    for frame in frames:
        before, after = before_and_after([frame])
        best = after or before
        row = [
            str(frame.number),
            ("training" if frame.trained_on else "held out") + (", fold" if best.folded else ""),
            f"{frame.missing:.0%}",
        ]
        row += [f"{before.captured.mean_mm:.2f}", f"{before.captured.max_mm:.1f}"]
        if has_after and after is not None:
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
