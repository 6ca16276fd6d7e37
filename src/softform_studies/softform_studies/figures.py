"""The figures of the README, each made by a command: run, kept in one JSON file, written into its table.

`docs/figures.yaml` says which commands are run and which rows are made of them; `docs/figures.json` keeps what each has
printed, with its command, revision and date. The README's table between the marks is made of it, and nothing else is.
"""

import json
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from softform_core.errors import SoftformError
from softform_core.files import write_atomically
from softform_core.provenance import git_revision, now

BEGIN, END = "<!-- made by ./softform figures -->", "<!-- end -->"


@dataclass(frozen=True)
class Catalogue:
    """What is run, and what is made of it.

    Attributes:
        commands: Command by the name of its run, without `./softform` and `--json`.
        pictures: By the name of a run, the key of a picture's path in its figures, and where the picture goes.
        rows: `what`, `figure` (a format of the runs' figures) and `run` of each row of the table.
    """

    commands: dict[str, str]
    pictures: dict[str, tuple[str, str]]
    rows: list[dict[str, str]]


def read_catalogue(root: Path) -> Catalogue:
    """The catalogue of a checkout, `docs/figures.yaml`.

    Raises:
        SoftformError: If the file is missing, as in an installed workspace.
    """
    path = root / "docs" / "figures.yaml"
    if not path.is_file():
        raise SoftformError(f"There is no {path}.", "Figures are made in a checkout: start with its ./softform.")
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    runs = content["runs"]
    pictures = {name: (run["picture"]["key"], run["picture"]["path"]) for name, run in runs.items() if "picture" in run}
    return Catalogue({name: run["command"] for name, run in runs.items()}, pictures, content["rows"])


def read_figures(root: Path) -> dict[str, Any]:
    """What the runs have printed, by their names: `command`, `revision`, `date`, `seconds`, `figures`."""
    path = root / "docs" / "figures.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def make_figures(root: Path, names: Sequence[str], again: bool, tell: Callable[[str], None]) -> list[str]:
    """Run what is missing, keep each run as soon as it is done, and write the table.

    Args:
        root: The checkout.
        names: Runs that are wanted; none for all.
        again: Whether to run what is there already, too.
        tell: Takes a line of progress at a time.

    Returns:
        Names of the runs that failed.

    Raises:
        SoftformError: If a name is unknown, or a file cannot be read or written.
    """
    catalogue, kept = read_catalogue(root), read_figures(root)
    if unknown := set(names) - set(catalogue.commands):
        raise SoftformError(f"There is no run '{unknown.pop()}'.", f"Known: {', '.join(catalogue.commands)}.")
    kept = {name: run for name, run in kept.items() if catalogue.commands.get(name) == run["command"]}
    wanted = [name for name in names or catalogue.commands if again or name not in kept]
    failed, revision = [], git_revision()  # before the first run changes the checkout
    for number, name in enumerate(wanted, 1):
        tell(f"[{number}/{len(wanted)}] {name}: ./softform {catalogue.commands[name]}")
        run = _run(root, catalogue.commands[name], revision)
        if run is None:
            failed.append(name)
            tell(f"  {name} failed")
            continue
        if name in catalogue.pictures:
            key, place = catalogue.pictures[name]
            shutil.copyfile(root / run["figures"][key], root / place)
            run["figures"][key] = place
        kept[name] = run
        in_order = {one: kept[one] for one in catalogue.commands if one in kept}
        write_atomically(root / "docs" / "figures.json", (json.dumps(in_order, indent=1) + "\n").encode())
        tell(f"  done in {run['seconds']:.0f} s")
    write_table(root, catalogue, kept)
    return failed


def _run(root: Path, command: str, revision: str) -> dict[str, Any] | None:
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "figures.json"
        words = [sys.executable, "-m", "softform_core.cli.main", *shlex.split(command), "--json", str(output)]
        done = subprocess.run(words, cwd=root, stdout=sys.stderr, check=False)
        if done.returncode or not output.is_file():
            return None
        figures = json.loads(output.read_text(encoding="utf-8").replace(f"{root}/", ""))
    seconds = round(time.monotonic() - begun, 1)
    return {"command": command, "revision": revision, "date": now()[:10], "seconds": seconds, "figures": figures}


def table(catalogue: Catalogue, kept: Mapping[str, Any]) -> str:
    """The rows whose runs are there, as a table with the command beside each figure."""
    values = {name: run["figures"] for name, run in kept.items()}
    lines = ["| what | figure | command |", "|---|---|---|"]
    for row in catalogue.rows:
        if row["run"] in kept:
            what, figure = (row[part].format(**values) for part in ("what", "figure"))
            lines.append(f"| {what} | {figure} | `./softform {catalogue.commands[row['run']]}` |")
    return "\n".join(lines)


def write_table(root: Path, catalogue: Catalogue, kept: Mapping[str, Any]) -> None:
    """Put the table between the marks in the README.

    Raises:
        SoftformError: If the marks are not there, or the file cannot be written.
    """
    page = root / "README.md"
    text = page.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SoftformError(f"{page} has no place for the table.", f"Put lines '{BEGIN}' and '{END}' where it belongs.")
    write_atomically(page, f"{before}{BEGIN}\n{table(catalogue, kept)}\n{END}{after}".encode())
