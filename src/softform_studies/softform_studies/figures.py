"""The figures of README and docs, each made by a command: run, kept in one JSON file, written into the pages.

`docs/figures.yaml` says which commands are run and which parts of pages are made of them; `docs/figures.json` keeps
what each has printed, with its command, revision and date. What stands between marks in a page is made of these, and
nothing else is.

A template is text with fields as Python's str.format has them: `{run[key][key]:.2f}` is a value of a run. Of a list,
a key is a number, or the `reality` of one of its objects. `{commands[run]}` is the run's command, `{seconds[run]}` how
long it took. Besides Python's own, a format of `.0%` writes a share as `92 %`, one of `.1p` as `92.3`.
"""

import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import Any

import yaml

from softform_core.errors import SoftformError
from softform_core.files import write_atomically
from softform_core.provenance import git_revision, now

END = "<!-- end -->"
_OTHER = ("commands", "seconds")


@dataclass(frozen=True)
class FigureValues:
    """Values of the fields of templates, by the names of the runs: figures, commands, seconds."""

    figures: Mapping[str, Any]
    commands: Mapping[str, str]
    seconds: Mapping[str, float]


@dataclass(frozen=True)
class Block:
    """A part of a page (from the checkout's root): the name in its mark, and its template."""

    page: str
    name: str
    text: str

    @property
    def begin(self) -> str:
        """The mark before it."""
        return f"<!-- made by ./softform figures: {self.name} -->"

    @property
    def runs(self) -> set[str]:
        """Runs that it is made of."""
        fields = [field for _, field, _, _ in Formatter().parse(self.text) if field is not None]
        firsts = {field.partition("[")[0]: field for field in fields}
        timed = {re.findall(r"\[(.*?)\]", field)[0] for field in fields if field.startswith("seconds[")}
        return {first for first in firsts if first not in _OTHER} | timed

    def written(self, values: FigureValues) -> str:
        """Return the template, filled."""
        fields = {**values.figures, "commands": values.commands, "seconds": values.seconds}
        return _Filled().vformat(self.text, (), fields).strip("\n")

    def within(self, root: Path) -> str:
        """Return what stands between the marks in the page.

        Raises:
            SoftformError: If the marks are not there.
        """
        return self._parts((root / self.page).read_text(encoding="utf-8"))[1]

    def write(self, root: Path, values: FigureValues) -> None:
        """Put the filled template between the marks.

        Raises:
            SoftformError: If the marks are not there, or the page cannot be written.
        """
        before, _, after = self._parts((root / self.page).read_text(encoding="utf-8"))
        write_atomically(root / self.page, f"{before}{self.begin}\n{self.written(values)}\n{END}{after}".encode())

    def _parts(self, page: str) -> tuple[str, str, str]:
        before, begin, rest = page.partition(f"{self.begin}\n")
        within, end, after = rest.partition(f"\n{END}")
        if not begin or not end:
            raise SoftformError(
                f"{self.page} has no place for '{self.name}'.",
                f"Put lines '{self.begin}' and '{END}' where it belongs, one line between them.",
            )
        return before, within, after


class _Filled(Formatter):
    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, str]:
        first = field_name.partition("[")[0]
        value = kwargs[first]
        for key in re.findall(r"\[(.*?)\]", field_name):
            if isinstance(value, list):
                value = value[int(key)] if key.isdigit() else next(one for one in value if one.get("reality") == key)
            else:
                value = value[key]
        return value, first

    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec.endswith("%"):
            return f"{format(100.0 * value, format_spec[:-1] + 'f')} %"
        if format_spec.endswith("p"):
            return format(100.0 * value, format_spec[:-1] + "f")
        return format(value, format_spec)


def write_blocks(root: Path, blocks: Sequence[Block], values: FigureValues) -> list[tuple[Block, list[str]]]:
    """Write all blocks whose runs are there.

    Returns:
        The others, which stay as they are, with the names of the absent runs.

    Raises:
        SoftformError: If marks are not there, or a page cannot be written.
    """
    waiting = []
    for block in blocks:
        if absent := sorted(block.runs - set(values.figures)):
            waiting.append((block, absent))
        else:
            block.write(root, values)
    return waiting


@dataclass(frozen=True)
class Run:
    """One command.

    Attributes:
        command: The command without `./softform` and `--json`.
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
    """Runs by their names, and the parts of pages that are made of them."""

    runs: dict[str, Run]
    blocks: list[Block]

    @property
    def commands(self) -> dict[str, str]:
        """Commands by the names of the runs."""
        return {name: run.command for name, run in self.runs.items()}


def read_catalogue(root: Path) -> Catalogue:
    """Return the catalogue of a checkout, `docs/figures.yaml`.

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
    """Read what the runs have printed, by their names: `command`, `revision`, `date`, `seconds`, `figures`."""
    path = root / "docs" / "figures.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def values_of(root: Path, catalogue: Catalogue, kept: dict[str, Any]) -> FigureValues:
    """Return the values that fill templates: of runs whose commands are still the catalogue's, and of cards."""
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
    """Return the checkout's revision; pages and figures, which the command itself writes, may have changed."""
    status = ["git", "-C", str(root), "status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs", ":!*.md"]
    changed = subprocess.run(status, capture_output=True, check=False).stdout
    return git_revision() if changed else git_revision().removesuffix("-dirty")


def foreign_revisions(root: Path, kept: dict[str, Any]) -> list[str]:
    """Return the names of the runs whose revision is not in the history of the checkout, or had uncommitted changes."""

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
