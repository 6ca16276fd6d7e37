"""Carries out one study, then writes table, JSON and plot."""

import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from softform_core.files import only_writer, write_atomically, write_figure
from softform_core.robots import Robot
from softform_rig.reality import Reality
from softform_studies.studies.arm import arm
from softform_studies.studies.catalogue import BY_TWO_SIMULATORS, STUDIES, Outcome, Scale, Setting
from softform_studies.studies.drawing import Row, draw
from softform_studies.studies.laboratory import Laboratory, learned_from
from softform_studies.studies.layers import layers
from softform_studies.studies.mannequin import mannequin
from softform_studies.studies.mould import mould
from softform_studies.studies.stick import stick
from softform_studies.studies.torsos import torsos

OTHERS: dict[str, Callable[[Setting], Outcome]] = {
    study.__name__: study for study in (mould, layers, arm, mannequin, stick, torsos)
}
"""Studies that are no series of trainings, by their names."""

_HISTOGRAMS = ("distances", "normal_errors")


def carry_out(
    name: str, robot: Robot, reality: Reality, scale: Scale, seed: int, folder: Path, progress: bool = False
) -> list[Path]:
    """Run what is not done yet, and write NAME.csv, NAME.json and NAME.png; returns the files written.

    Args:
        name: One of `STUDIES` or `OTHERS`.
        robot: The robot; its N_fk must be trained.
        reality: Reality of the captured frames.
        scale: Full, or quick for a look at the form.
        seed: Seed of actuations, scanner and training.
        folder: Folder of `runs.jsonl` with the finished trainings, and of the files.
        progress: Show progress on standard error.

    Raises:
        SoftformError: If another process is at it, the reality has no shape, or a file cannot be written.
    """
    setting = Setting(robot, reality, scale, seed, folder, progress)
    with only_writer(folder / name, "studying"):
        entries, figure, judged = _trained(name, setting) if name in STUDIES else OTHERS[name](setting)
        size = "a quick run, its figures mean nothing" if scale.is_quick else judged
        caption = f"{name}: reality {reality.name}, robot {robot.name}, seed {seed}, {size}"
        figure.suptitle(caption, fontsize=10, wrap=True)
        table, entries_file, picture = (folder / f"{name}.{kind}" for kind in ("csv", "json", "png"))
        write_atomically(table, _table(entries).encode())
        write_atomically(entries_file, (json.dumps(entries, indent=2) + "\n").encode())
        write_figure(picture, figure)
    return [table, entries_file, picture]


def _trained(name: str, setting: Setting) -> Outcome:
    runs = STUDIES[name](setting.scale)
    captured, held_out = max(run.frames for run in runs), setting.scale.held_out
    laboratories, body = {"": Laboratory(setting, captured, held_out)}, setting.robot.body
    if name in BY_TWO_SIMULATORS and (second := body.second_model) is not None:
        laboratories = {
            body.kind: laboratories[""],
            second.kind: Laboratory(setting, captured, held_out, learned_from(setting, second)),
        }
    cells = [
        (f"{simulator} {run.series} {run.x:g}", replace(run, simulator=simulator))
        for simulator in laboratories
        for run in runs
    ]
    rows = [Row(run, laboratories[run.simulator].perform(run)) for run in setting.each(cells, name, "training")]
    return Outcome([_entry(row) for row in rows], draw(name, rows), f"{held_out} held-out shapes")


def by_series(path: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the records of a study's JSON file, without histograms, by series, then by abscissa."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for entry in json.loads(path.read_text(encoding="utf-8")):
        kept = {key: value for key, value in entry.items() if key not in (*_HISTOGRAMS, "series", "x")}
        x = entry["x"]
        found.setdefault(entry["series"], {})[x if isinstance(x, str) else f"{x:g}"] = kept
    return found


def _entry(row: Row) -> dict[str, Any]:
    run = row.run
    series = f"{run.simulator}, {run.series}" if run.simulator else run.series
    return {"series": series, "x": run.x, "method": run.method, "frames": run.frames, **row.result}


def _table(entries: list[dict[str, Any]]) -> str:
    """Return one line an entry; histograms are left to the JSON file."""
    lines = [{key: value for key, value in entry.items() if key not in _HISTOGRAMS} for entry in entries]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()
