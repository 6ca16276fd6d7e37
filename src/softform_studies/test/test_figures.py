"""README and pages say what their commands have printed; runs are kept one by one."""

import json
import shlex
import subprocess
from pathlib import Path

import click
import pytest
import yaml

from softform_core.cli.main import main
from softform_core.errors import SoftformError
from softform_core.paths import home
from softform_studies.figures import (
    END,
    Block,
    FigureValues,
    foreign_revisions,
    make_figures,
    read_catalogue,
    read_figures,
    values_of,
)

POINTS = "bench ik --only prediction --points"
CATALOGUE = {
    "runs": {
        "one": {"command": f"{POINTS} 25"},
        "broken": {"command": "bench ik --only lunch", "minutes": 60},
        "two": {"command": f"{POINTS} 36"},
        "drawn": {"command": "channels membrane --output docs/drawn.png", "picture": {"path": "docs/drawn.png"}},
        "card": {"command": "train fk", "card": "docs/card.json"},
    },
    "blocks": [
        {"page": "README.md", "name": "points", "text": "| {one[prediction][points]:d} | {commands[one]} |\n"},
        {"page": "README.md", "name": "absent", "text": "{broken[lunch]:d}"},
        {"page": "docs/page.md", "name": "more", "text": "{two[prediction][points]:d}, {card[share]:.0%}"},
    ],
}


def between(name: str, text: str) -> str:
    return f"<!-- made by ./softform figures: {name} -->\n{text}\n{END}\n"


@pytest.fixture(name="root")
def checkout(tmp_path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "figures.yaml").write_text(yaml.safe_dump(CATALOGUE, sort_keys=False))
    (tmp_path / "docs" / "card.json").write_text('{"share": 0.924}')
    (tmp_path / "README.md").write_text(f"before\n{between('points', 'old')}{between('absent', 'by hand')}after\n")
    (tmp_path / "docs" / "page.md").write_text(between("more", "old"))
    return tmp_path


def test_pages_say_what_the_commands_have_printed():
    catalogue, kept = read_catalogue(home()), read_figures(home())
    values = values_of(home(), catalogue, kept)
    made = [block for block in catalogue.blocks if block.runs <= set(values.figures)]
    assert {"README.md", "docs/notes/waypoints-001.md", "docs/notes/bench-ik.md"} <= {block.page for block in made}
    for block in catalogue.blocks:
        within = block.within(home())
        assert block not in made or within == block.written(values), f"{block.page}: run ./softform figures"
    for name, run in kept.items():
        assert run["command"] == catalogue.commands[name], f"run: ./softform figures {name}"
        assert run["revision"] and run["date"] and run["figures"]


def test_every_run_is_a_command_that_parses_and_is_written_somewhere():
    catalogue = read_catalogue(home())
    pictured = {name for name, run in catalogue.runs.items() if run.picture}
    assert (
        set(catalogue.runs)
        >= set().union(*(block.runs for block in catalogue.blocks))
        >= set(catalogue.runs) - pictured
    )
    for run in catalogue.runs.values():
        words = shlex.split(run.command) + (
            [] if run.card or (run.picture and run.picture[0] is None) else ["--json", "-"]
        )
        _, command, arguments = main.resolve_command(click.Context(main), words)
        while isinstance(command, click.Group):
            _, command, arguments = command.resolve_command(click.Context(command), arguments)
        command.make_context(run.command, arguments)  # raises a UsageError on what the command does not take


def test_every_picture_in_docs_is_made_by_one_run():
    """And each run that names no key draws there itself."""
    drawn = [run for run in read_catalogue(home()).runs.values() if run.picture]
    there = sorted(str(path.relative_to(home())) for path in (home() / "docs" / "images").iterdir())
    assert sorted(run.picture[1] for run in drawn) == there
    for run in drawn:
        assert run.picture[0] is not None or run.picture[1] in shlex.split(run.command, comments=True)


def test_the_description_that_is_drawn_is_the_one_of_the_page():
    page = (home() / "docs" / "robots" / "freeform.md").read_text()
    assert f"```yaml\n{(home() / 'docs' / 'examples' / 'tapered_arm.yaml').read_text()}```" in page


@pytest.mark.long
def test_a_run_that_fails_does_not_take_the_others_with_it_and_only_what_is_missing_is_run(root):
    told: list[str] = []
    assert make_figures(root, (), False, told.append) == ["broken"]
    assert told[0] == "4 runs, about 63 minutes"
    kept = read_figures(root)
    assert list(kept) == ["one", "two", "drawn"] and kept["one"]["figures"]["prediction"]["points"] == 25
    assert kept["drawn"]["figures"] == {"picture": "docs/drawn.png"} and (root / "docs" / "drawn.png").is_file()
    points = between("points", f"| 25 | `./softform {POINTS} 25` |")
    assert (root / "README.md").read_text() == f"before\n{points}{between('absent', 'by hand')}after\n"
    assert (root / "docs" / "page.md").read_text() == between("more", "36, 92 %")
    assert any(line.startswith("[1/4] one") for line in told)
    assert "README.md, 'absent' stays as it is: not run yet: broken" in told
    assert any(line.startswith("one was made by revision") for line in told), "there is no history here"

    kept["one"]["figures"]["prediction"]["points"] = 99
    kept["two"]["command"] = "bench ik --only solver"  # the catalogue was changed since
    (root / "docs" / "figures.json").write_text(json.dumps(kept))
    told.clear()
    assert make_figures(root, ("one", "two"), False, told.append) == []
    assert told[1].startswith("[1/1] two") and "| 99 |" in (root / "README.md").read_text()
    assert "all figures are up to date" not in told


def test_with_nothing_to_do_it_is_said(root):
    (root / "docs" / "figures.yaml").write_text(yaml.safe_dump({"runs": {}, "blocks": []}))
    told: list[str] = []
    assert make_figures(root, (), False, told.append) == [] and told == ["all figures are up to date"]


def test_fields_of_a_block():
    text = "{a[b][w = 1][3.5]:.1p} {a[list][worn][x]} {a[list][0][x]:.2f} {seconds[c]:.0f} {commands[d]}"
    block = Block("page.md", "name", text)
    assert block.runs == {"a", "c"}
    figures = {"b": {"w = 1": {"3.5": 0.5}}, "list": [{"reality": "ideal", "x": 1.0}, {"reality": "worn", "x": 2}]}
    assert block.written(FigureValues({"a": figures}, {"d": "it"}, {"c": 7.4})) == "50.0 2 1.00 7 it"


def test_revisions_of_another_history_are_named(root):
    def git(*words: str) -> str:
        command = ["git", "-C", str(root), "-c", "user.name=me", "-c", "user.email=me@here", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "first")
    first = git("rev-parse", "--short=12", "HEAD")
    git("commit", "-q", "--allow-empty", "-m", "second")
    runs = {
        "ours": {"revision": first},
        "dirty": {"revision": f"{first}-dirty"},
        "theirs": {"revision": "44b5587ee336"},
    }
    assert foreign_revisions(root, runs) == ["dirty", "theirs"]


def test_what_cannot_be_made_is_said(root):
    with pytest.raises(SoftformError, match="no run 'three'.*one, broken, two"):
        make_figures(root, ("three",), False, print)
    (root / "README.md").write_text("nothing\n")
    catalogue = read_catalogue(root)
    with pytest.raises(SoftformError, match="no place for 'points'"):
        catalogue.blocks[0].within(root)
    (root / "docs" / "figures.yaml").unlink()
    with pytest.raises(SoftformError, match="checkout"):
        make_figures(root, (), False, print)
