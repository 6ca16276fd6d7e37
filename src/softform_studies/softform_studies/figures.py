"""The figures of README and docs, each made by a command: run, kept in one JSON file, written into the pages.

`docs/figures.yaml` says which commands are run and which parts of pages are made of them; `docs/figures.json` keeps
what each has printed, with its command, revision and date. What stands between marks in a page is made of these
(`figure_blocks`), and nothing else is.
"""

import json
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from softform_core.errors import SoftformError
from softform_core.files import write_atomically
from softform_core.provenance import git_revision, now
from softform_studies.figure_blocks import Block, FigureValues, write_blocks


@dataclass(frozen=True)
class Run:
    """One command.

    Attributes:
        command: Without `./softform` and `--json`.
        minutes: About how long it takes with nothing else running.
        picture: Key of a picture's path in its figures, and where the picture goes; or None. Without a key the command
            itself writes the picture there, and prints no figures.
        card: A JSON file of the checkout that the command has written, such as a model's card: it is read where it is,
            and the command is not run.
    """

    command: str
    minutes: float = 1.0
    picture: tuple[str | None, str] | None = None
    card: str | None = None


@dataclass(frozen=True)
class Catalogue:
    """What is run, and what is made of it: runs by their names, and parts of pages."""

    runs: dict[str, Run]
    blocks: list[Block]

    @property
    def commands(self) -> dict[str, str]:
        """By the names of the runs."""
        return {name: run.command for name, run in self.runs.items()}


def read_catalogue(root: Path) -> Catalogue:
    """The catalogue of a checkout, `docs/figures.yaml`.

    Raises:
        SoftformError: If the file is missing, as in an installed workspace.
    """
    path = root / "docs" / "figures.yaml"
    if not path.is_file():
        raise SoftformError(f"There is no {path}.", "Figures are made in a checkout: start with its ./softform.")
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    runs = {}
    for name, run in content["runs"].items():
        picture = (run["picture"].get("key"), run["picture"]["path"]) if "picture" in run else None
        runs[name] = Run(run["command"], run.get("minutes", 1.0), picture, run.get("card"))
    return Catalogue(runs, [Block(**block) for block in content["blocks"]])


def read_figures(root: Path) -> dict[str, Any]:
    """What the runs have printed, by their names: `command`, `revision`, `date`, `seconds`, `figures`."""
    path = root / "docs" / "figures.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def values_of(root: Path, catalogue: Catalogue, kept: dict[str, Any]) -> FigureValues:
    """What templates are filled with: of the runs whose commands are still those of the catalogue, and of cards."""
    figures = {name: run["figures"] for name, run in kept.items() if catalogue.commands.get(name) == run["command"]}
    for name, run in catalogue.runs.items():
        if run.card is not None:
            figures[name] = json.loads((root / run.card).read_text(encoding="utf-8"))
    seconds = {name: run["seconds"] for name, run in kept.items()}
    return FigureValues(figures, {name: f"`./softform {one}`" for name, one in catalogue.commands.items()}, seconds)


def make_figures(root: Path, names: Sequence[str], again: bool, tell: Callable[[str], None]) -> list[str]:
    """Run what is missing, keep each run as soon as it is done, and write the pages.

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
    to_run = {name: run for name, run in catalogue.runs.items() if run.card is None}
    if unknown := set(names) - set(to_run):
        raise SoftformError(f"There is no run '{unknown.pop()}'.", f"Known: {', '.join(to_run)}.")
    kept = {name: run for name, run in kept.items() if name in to_run and to_run[name].command == run["command"]}
    wanted = [name for name in names or to_run if again or name not in kept]
    failed, revision = [], _revision(root)  # before the first run changes the checkout
    if wanted:
        tell(f"{len(wanted)} runs, about {sum(to_run[name].minutes for name in wanted):.0f} minutes")
    for number, name in enumerate(wanted, 1):
        about = f"about {to_run[name].minutes:g} min"
        tell(f"[{number}/{len(wanted)}] {name}: ./softform {to_run[name].command} ({about})")
        run = _run(root, to_run[name], revision)
        if run is None:
            failed.append(name)
            tell(f"  {name} failed")
            continue
        if (picture := to_run[name].picture) is not None and picture[0] is not None:
            shutil.copyfile(root / run["figures"][picture[0]], root / picture[1])
            run["figures"][picture[0]] = picture[1]
        kept[name] = run
        in_order = {one: kept[one] for one in to_run if one in kept}
        write_atomically(root / "docs" / "figures.json", (json.dumps(in_order, indent=1) + "\n").encode())
        tell(f"  done in {run['seconds']:.0f} s")
    waiting = write_blocks(root, catalogue.blocks, values_of(root, catalogue, kept))
    for block, absent in waiting:
        tell(f"{block.page}, '{block.name}' stays as it is: not run yet: {', '.join(absent)}")
    foreign = foreign_revisions(root, kept)
    for name in foreign:
        tell(f"{name} was made by revision {kept[name]['revision']}, which is no ancestor of this one: --again {name}")
    if not (wanted or waiting or foreign):
        tell("all figures are up to date")
    return failed


def _revision(root: Path) -> str:
    """Revision of the checkout; pages and figures, which the command itself writes, may have changed since."""
    status = ["git", "-C", str(root), "status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs", ":!*.md"]
    changed = subprocess.run(status, capture_output=True, check=False).stdout
    return git_revision() if changed else git_revision().removesuffix("-dirty")


def foreign_revisions(root: Path, kept: dict[str, Any]) -> list[str]:
    """Names of the runs whose revision is not in the history of the checkout, or had uncommitted changes."""

    def is_ancestor(revision: str) -> bool:
        command = ["git", "-C", str(root), "merge-base", "--is-ancestor", revision, "HEAD"]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    return [name for name, run in kept.items() if not is_ancestor(run["revision"])]


def _run(root: Path, run: Run, revision: str) -> dict[str, Any] | None:
    begun, command = time.monotonic(), run.command
    words = [sys.executable, "-m", "softform_core.cli.main", *shlex.split(command)]
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "figures.json"
        if run.picture is not None and run.picture[0] is None:
            output.write_text(json.dumps({"picture": run.picture[1]}), encoding="utf-8")
        else:
            words += ["--json", str(output)]
        done = subprocess.run(words, cwd=root, stdout=sys.stderr, check=False)
        if done.returncode or not output.is_file():
            return None
        figures = json.loads(output.read_text(encoding="utf-8").replace(f"{root}/", ""))
    seconds = round(time.monotonic() - begun, 1)
    return {"command": command, "revision": revision, "date": now()[:10], "seconds": seconds, "figures": figures}
