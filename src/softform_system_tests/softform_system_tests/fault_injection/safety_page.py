"""The table of hazards in docs/safety.md: the list of hazards, and what the last whole run of `bench rig` measured."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from softform_core.errors import SoftformError
from softform_core.files import write_atomically
from softform_core.provenance import git_revision, now
from softform_system_tests.fault_injection.hazards import HAZARDS, Hazard

BEGIN, END = "<!-- made by ./softform bench rig: hazards -->\n", "\n<!-- end -->"
_NOT_YET = "not measured yet"
_HEAD = (
    "| hazard | cause | detected by | measured safe within | not detected | what remains | tests |\n"
    "|---|---|---|---|---|---|---|"
)
_TIMES = {
    "vented_within_ms_p99": "vent request {:.0f} ms",
    "chamber_falls_within_ms_p99": "air leaves {:.0f} ms",
    "chamber_vented_within_ms_p99": "empty {:.0f} ms",
    "slack_within_ms_max": "slack {:.0f} ms at most",
    "still_within_ms_max": "still {:.0f} ms at most",
}
"""Figures of a class, in words."""


def page_of(root: Path) -> Path:
    """Where the page is in a checkout; an installed workspace has none."""
    return root / "docs" / "safety.md"


def keep(root: Path, figures: Mapping[str, Any]) -> None:
    """Keep what a whole run has measured, in docs/safety.json, and write the page of a checkout.

    Raises:
        SoftformError: If a file cannot be written, or the page has no place for the table.
    """
    told = {name: figures[name] for name in ("injected", "safe", "safe_measured", "reported_safe_but_not", "classes")}
    kept = {"revision": git_revision(), "date": now()[:10], **told}
    write_atomically(root / "docs" / "safety.json", (json.dumps(kept, indent=1) + "\n").encode())
    write(root)


def write(root: Path) -> None:
    """Write the table into docs/safety.md of a checkout; errors are those of `keep`."""
    page = page_of(root)
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SoftformError(
            f"{page} has no place for the hazards.", f"Put lines '{BEGIN.strip()}' and '{END.strip()}' in."
        )
    write_atomically(page, f"{before}{BEGIN}{tables(read_kept(root))}{END}{after}".encode())


def read_kept(root: Path) -> dict[str, Any] | None:
    """What the last whole run has measured; None if there was none."""
    path = root / "docs" / "safety.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def tables(kept: Mapping[str, Any] | None) -> str:
    """All hazards, by headings, with what was kept of a run."""
    parts = [f"No whole run of `./softform bench rig` was kept: {_NOT_YET}."]
    if kept is not None:
        parts = [
            f"The last whole run, of {kept['date']}, revision {kept['revision']}: {kept['safe']} of {kept['injected']} "
            f"safe; {kept['safe_measured']} times the true values were seen at rest; {kept['reported_safe_but_not']} "
            "times the driver said that all is safe while it was not. Times are 99th percentiles, from when a fault "
            "could be observed."
        ]
    for heading, rows in HAZARDS.items():
        lines = (_line(row, {} if kept is None else kept["classes"]) for row in rows)
        parts.append("\n".join([f"### {heading}", "", _HEAD, *lines]))
    return "\n\n".join(parts)


def _line(row: Hazard, classes: Mapping[str, Any]) -> str:
    tests = [f"`bench rig`: {name}" for name in row.rig]
    tests += [f"`bench schedules`: {promise}" for promise in row.promises]
    tests += [f"`{test.removesuffix('::*')}`" for test in row.tests]
    cells = (row.hazard, row.cause, row.detected, _within(row.rig, classes), row.undetected, row.risk, "; ".join(tests))
    return f"| {' | '.join(cells)} |"


def _within(names: Iterable[str], classes: Mapping[str, Any]) -> str:
    measured = [classes[name] for name in names if name in classes]
    if not measured:
        return _NOT_YET if list(names) else "see the tests"
    times = {field: [one[field] for one in measured if one.get(field) is not None] for field in _TIMES}
    told = [words.format(max(times[field])) for field, words in _TIMES.items() if times[field]]
    count = f"{sum(one['safe'] for one in measured)} of {sum(one['injected'] for one in measured)} safe"
    return "; ".join([count, *told])
