"""Carries out one study: its runs in order, then table, JSON and plot."""

import csv
import io
import json
from pathlib import Path
from typing import Any

from tqdm import tqdm

from softform_core.files import only_writer, write_atomically
from softform_core.robots import Robot
from softform_rig.reality import Reality
from softform_studies.studies.catalogue import STUDIES, Scale
from softform_studies.studies.drawing import Row, draw
from softform_studies.studies.laboratory import Laboratory

_HISTOGRAMS = ("distances", "normal_errors")


def carry_out(
    name: str, robot: Robot, reality: Reality, scale: Scale, seed: int, folder: Path, progress: bool = False
) -> list[Path]:
    """Do what is not done yet, and write NAME.csv, NAME.json and NAME.png; returns the files written.

    Args:
        name: One of `STUDIES`.
        robot: The robot; its N_fk must be trained.
        reality: Reality of the captured frames.
        scale: Full, or quick for a look at the form.
        seed: Seed of actuations, scanner and training.
        folder: Folder of `runs.jsonl` with the finished trainings, and of the files.
        progress: Show a progress bar on standard error.

    Raises:
        SoftformError: If another process is at it, the reality has no shape, or a file cannot be written.
    """
    runs = STUDIES[name](scale)
    with only_writer(folder / name, "studying"):
        captured = max(run.frames for run in runs)
        laboratory = Laboratory(robot, reality, captured, scale.held_out, seed, folder)
        rows = []
        with tqdm(total=len(runs), desc=name, unit="training", disable=not progress) as bar:
            for run in runs:
                bar.set_postfix_str(f"{run.series} {run.x:g}")
                rows.append(Row(run, laboratory.perform(run)))
                bar.update()
        size = "a quick run, its figures mean nothing" if scale.is_quick else f"{scale.held_out} held-out shapes"
        caption = f"{name}: reality {reality.name}, robot {robot.name}, seed {seed}, {size}"
        files = {
            folder / f"{name}.csv": _table(rows).encode(),
            folder / f"{name}.json": (json.dumps([_entry(row) for row in rows], indent=2) + "\n").encode(),
            folder / f"{name}.png": draw(name, rows, caption),
        }
        for path, content in files.items():
            write_atomically(path, content)
    return list(files)


def by_series(path: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """What a study's JSON file says of each training, without histograms: by its series, then by its abscissa."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for entry in json.loads(path.read_text(encoding="utf-8")):
        kept = {key: value for key, value in entry.items() if key not in (*_HISTOGRAMS, "series", "x")}
        found.setdefault(entry["series"], {})[f"{entry['x']:g}"] = kept
    return found


def _entry(row: Row) -> dict[str, Any]:
    run = row.run
    return {"series": run.series, "x": run.x, "method": run.method, "frames": run.frames, **row.result}


def _table(rows: list[Row]) -> str:
    """One line a run; histograms are left to the JSON file."""
    entries = [{key: value for key, value in _entry(row).items() if key not in _HISTOGRAMS} for row in rows]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(entries[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(entries)
    return text.getvalue()
