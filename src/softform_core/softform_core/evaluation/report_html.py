"""A report as one HTML file: pictures inline, no script, no outside host."""

import base64
import io
from html import escape

from matplotlib.figure import Figure

from softform_core.evaluation.report_tables import Report, Table

_DPI = 120

_STYLE = """
:root { color: #1d2329; background: #f3f4f6; font: 15px/1.5 system-ui, "DejaVu Sans", sans-serif; }
body { max-width: 1080px; margin: 0 auto; padding: 28px 22px 60px; }
h1 { font-size: 25px; margin: 0 0 4px; } h2 { font-size: 18px; margin: 0 0 10px; }
section { background: #fff; border: 1px solid #dfe3e8; border-radius: 8px; padding: 18px 20px; margin-top: 18px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(160px, 1fr)); gap: 12px; margin-top: 16px; }
.tile { background: #fff; border: 1px solid #dfe3e8; border-radius: 8px; padding: 12px 14px; }
.tile b { display: block; font-size: 17px; white-space: nowrap; } .tile span { color: #5b6570; font-size: 13px; }
.findings { border-left: 5px solid #d55e00; } .quiet { border-left: 5px solid #009e73; }
.findings ul { margin: 0; padding-left: 20px; }
img { display: block; max-width: 100%; height: auto; margin: 0 auto; }
p.caption { color: #5b6570; margin: 10px 0 0; font-size: 13.5px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; width: 100%; }
th, td { padding: 4px 7px; border-bottom: 1px solid #eceff2; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } th { color: #5b6570; font-weight: 600; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 3px 18px; margin: 0; font-size: 13.5px; }
dt { color: #5b6570; } dd { margin: 0; overflow-wrap: anywhere; }
@media print { :root { background: #fff; } section { break-inside: avoid; } }
"""


def report_html(report: Report) -> bytes:
    """Return the report as UTF-8."""
    tiles = "".join(
        f'<div class="tile"><b>{escape(value)}</b><span>{escape(name)}</span></div>'
        for name, value in report.headline.items()
    )
    if report.findings:
        items = "".join(f"<li>{escape(finding)}</li>" for finding in report.findings)
        findings = f'<section class="findings"><h2>To look at</h2><ul>{items}</ul></section>'
    else:
        findings = '<section class="quiet"><h2>To look at</h2>Nothing stands out.</section>'
    figures = "".join(
        f'<section id="{escape(one.name)}"><h2>{escape(one.title)}</h2>'
        f'<img alt="{escape(one.title)}" src="data:image/png;base64,{_png(one.figure)}">'
        f'<p class="caption">{escape(one.caption)}</p></section>'
        for one in report.figures
    )
    facts = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in report.facts.items())
    page = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(report.title)}</title><style>{_STYLE}</style></head><body>
<h1>{escape(report.title)}</h1>
<div class="tiles">{tiles}</div>
{findings}
<section><h2>All frames together</h2>{_table(report.overall)}</section>
{figures}
<section><h2>Each frame</h2>{_table(report.frames)}
<p class="caption">Distances in mm, Chamfer in mm²; of the surface with sim-to-real, if there is one.</p></section>
<section><h2>Where this comes from</h2><dl>{facts}</dl></section>
</body></html>
"""
    return page.encode()


def _png(figure: Figure) -> str:
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=_DPI)
    return base64.b64encode(picture.getvalue()).decode()


def _table(table: Table) -> str:
    header = "".join(f"<th>{escape(cell)}</th>" for cell in table.header)
    rows = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows)
    return f'<div class="wide"><table><thead><tr>{header}</tr></thead><tbody>{rows}</tbody></table></div>'
