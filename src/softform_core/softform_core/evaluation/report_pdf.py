"""A report as one PDF: figures and findings, then a page a drawing, then the frames."""

import io
import textwrap

from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from softform_core.evaluation.report_tables import Report, Table

_PAGE = 11.69, 8.27  # A4, landscape, inches
_ROWS_A_PAGE = 34
_LINE = 0.029
_TEXT_LINE = 0.0185
_CHARACTERS_PER_INCH = 14


def report_pdf(report: Report) -> bytes:
    """Return the report as PDF. Drawings get title and caption on their page: draw what else they are for before."""
    content = io.BytesIO()
    with PdfPages(content, metadata={"Title": report.title, "Creator": "softform evaluate"}) as pages:
        pages.savefig(_summary_page(report))
        for one in report.figures:
            _frame(one.figure, one.title, one.caption)
            pages.savefig(one.figure, bbox_inches="tight", pad_inches=0.5)
        for first in range(0, len(report.frames.rows), _ROWS_A_PAGE):
            part = Table(report.frames.header, report.frames.rows[first : first + _ROWS_A_PAGE])
            page = Figure(figsize=_PAGE)
            page.text(0.05, 0.94, "Each frame (distances in mm, Chamfer in mm²)", fontsize=13, fontweight="bold")
            _draw_table(page, part, top=0.9, first_column=1.0)
            pages.savefig(page)
    return content.getvalue()


def _summary_page(report: Report) -> Figure:
    page = Figure(figsize=_PAGE)
    page.text(0.05, 0.93, report.title, fontsize=17, fontweight="bold")
    for place, (name, value) in enumerate(report.headline.items()):
        left = 0.05 + 0.9 / len(report.headline) * place
        page.text(left, 0.865, value, fontsize=13, fontweight="bold")
        page.text(left, 0.84, name, fontsize=8, color="#5b6570")
    _draw_table(page, report.overall, top=0.8, first_column=4.0, bottom=0.8 - _LINE * (1 + len(report.overall.rows)))
    top = 0.77 - _LINE * (1 + len(report.overall.rows))
    room = int((top - 0.03) / _TEXT_LINE) - 1
    lines = _wrapped([f"• {finding}" for finding in report.findings or ["Nothing stands out."]], 92)
    if len(lines) > room:
        lines = [*lines[: room - 1], "… more in the HTML report"]
    page.text(0.05, top, "\n".join(["To look at", *lines]), fontsize=7.5, va="top", linespacing=1.35)
    facts = _wrapped([f"{name}: {value}" for name, value in report.facts.items()], 78)
    page.text(0.57, top, "\n".join(facts), fontsize=7.5, va="top", linespacing=1.35, color="#5b6570")
    return page


def _wrapped(paragraphs: list[str], width: int) -> list[str]:
    return [
        line
        for text in paragraphs
        for line in textwrap.wrap(text, width, subsequent_indent="   ", break_on_hyphens=False)
    ]


def _frame(figure: Figure, title: str, caption: str) -> None:
    """Write title and caption outside the drawing; a page cut tightly around all grows by them."""
    width, height = figure.get_size_inches()
    figure.text(0.0, 1.0 + 0.2 / height, title, fontsize=15, fontweight="bold")
    wrapped = textwrap.fill(caption, round(_CHARACTERS_PER_INCH * width))
    figure.text(0.0, -0.15 / height, wrapped, fontsize=9, va="top", color="#5b6570", linespacing=1.4)


def _draw_table(page: Figure, table: Table, top: float, first_column: float, bottom: float | None = None) -> None:
    lowest = top - 0.025 * (1 + len(table.rows)) if bottom is None else bottom
    axes = page.add_axes((0.05, lowest, 0.9, top - lowest))
    axes.set_axis_off()
    columns = len(table.header)
    unit = 1.0 / (first_column + columns - 1)
    drawn = axes.table(
        table.rows, colLabels=table.header, loc="upper left", cellLoc="right", bbox=Bbox.unit(),
        colWidths=[first_column * unit] + [unit] * (columns - 1),
    )  # fmt: skip
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(8.5)
    for (row, column), cell in drawn.get_celld().items():
        cell.set(edgecolor="#dfe3e8", linewidth=0.5)
        cell.visible_edges = "B"
        if row == 0:
            cell.get_text().set_horizontalalignment("right")
        if column == 0:
            cell.get_text().set_horizontalalignment("left")
            cell.PAD = 0.02
        if row == 0:
            cell.get_text().set(fontweight="bold", color="#5b6570", fontsize=7.5)
