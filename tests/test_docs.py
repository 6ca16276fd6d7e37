"""What the pages promise is there: files behind links, commands behind names, launch files that can be evaluated."""

import itertools
import math
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner

from softform_core import equations
from softform_core.cli.main import main
from softform_core.plugins import plugin_kinds
from softform_core.robots import read_robot
from softform_launch.launch_file import load_launch_file
from softform_rig.reality import known_realities, load_reality

ROOT = Path(__file__).parents[1]
CORE = ROOT / "src" / "softform_core" / "softform_core"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    targets = re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
    missing = [t for t in targets if "://" not in t and not (page.parent / t).exists()]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_exist(page):
    named = set(re.findall(r"\./softform ([a-z][a-z-]+)", page.read_text(encoding="utf-8")))
    known = {*main.list_commands(None), "test", "build"}
    assert named <= known


_REFERENCE = "description-reference"
OF_OPERATORS = [page for page in PAGES if page.parent.name in {"steps", "robots"} and page.stem != _REFERENCE]


@pytest.mark.parametrize("page", OF_OPERATORS, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_of_operators_are_short(page):
    assert len(page.read_text(encoding="utf-8").split()) <= 1500, "how a number was found belongs to docs/notes"


@pytest.mark.parametrize("page", ["docs/extending.md", "docs/papers.md"])
def test_named_paths_and_tests_exist(page):
    named = set(re.findall(r"`((?:src|config|docs|launch|tests)/[^`\s]+)`", (ROOT / page).read_text(encoding="utf-8")))
    named = {name for name in named if not re.search(r"/[A-Z]+[/.]", name)}  # KIND and NAME stand for any
    assert len(named) >= 3
    for name in named:
        path, _, test = name.partition("::")
        assert (ROOT / path).exists(), name
        assert not test or re.search(rf"^def {test}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE), name


def _asks_for(file, keys):
    """Whether a robot's description has these keys, or a launch file this argument."""
    if file.suffix == ".xml":
        return f'<arg name="{keys[0]}"' in file.read_text(encoding="utf-8")
    part = yaml.safe_load(file.read_text(encoding="utf-8"))
    for key in keys:
        part = (part[0] if isinstance(part, list) else part).get(key)
    return part is not None


@pytest.mark.parametrize("what", ["body", "term", "output", "model", "device"])
def test_what_is_found_by_name_has_a_folder_an_entry_point_a_place_and_a_page(what):
    text = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    (row,) = re.findall(rf"^\| \[an? {what}\]\(#an?-{what}\)(.*) \|$", text, re.MULTILINE)
    _, folders, groups, places, page, tests = row.split(" | ")
    folders = re.findall(r"`(src/[^`]+)`", folders)
    assert folders and all((ROOT / folder).is_dir() for folder in folders)
    groups = re.findall(r"`(softform\.\w+)`", groups)
    assert groups and all(plugin_kinds(group) for group in groups)
    places = re.findall(r"`([\w: ]+)` in `([^`]+)`", places)
    assert places and all(_asks_for(ROOT / file, keys.split(": ")) for keys, file in places)
    linked, _, heading = re.fullmatch(r"\[.*\]\((.*)\)", page)[1].partition("#")
    told = (ROOT / "docs" / linked).read_text(encoding="utf-8")
    assert not heading or heading in [line.strip("# ").lower().replace(" ", "-") for line in told.splitlines()]
    assert all(any(f"`{key}`" in told for key in keys.split(": ")) for keys, _ in places)
    assert re.search(r"`(?:src|tests)/[^`]+\.py(?:::\w+)?`", tests)
    assert re.search(rf"^##+ An? {what}$", text, re.MULTILINE)


@pytest.mark.parametrize("paper", ["000", "001"])
def test_the_page_of_papers_lists_every_equation(paper):
    text = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    listed = set(re.findall(rf"^\| {paper}, (\d+) \| .*? \| `([\w.]+)` \|", text, re.MULTILINE))
    tables = re.split(r"^Paper (\d+),.*$", equations.__doc__, flags=re.MULTILINE)
    in_code = dict(zip(tables[1::2], tables[2::2], strict=True))[paper]
    assert listed == set(re.findall(r"^(\d+) .*`([\w.]+)`$", in_code, re.MULTILINE))


def equations_named(text):
    """Numbers of the equations that a text names, also in lists and ranges such as `Eqs. 2, 5 and 23-30`."""
    found = set()
    for words in re.findall(r"Eqs?\.\s+(\d+(?:(?:\s*(?:,|-|and|or)\s*)+\d+)*)", text):
        for first, last in re.findall(r"(\d+)(?:-(\d+))?", words):
            found |= set(range(int(first), int(last or first) + 1))
    return found


@pytest.mark.parametrize("paper", ["000", "001"])
def test_each_file_that_runs_an_equation_names_it(paper):
    text = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    rows = re.findall(rf"^\| {paper}, (\d+) \| .*? \| `[\w.]+` \| (.*) \|$", text, re.MULTILINE)
    assert len(rows) > 5
    for number, where in rows:
        files = re.findall(r"`([\w/]+\.py)`", where)
        assert files, f"{paper}, {number}"
        for file in files:
            path = ROOT / file if file.startswith("src/") else CORE / file
            assert int(number) in equations_named(path.read_text(encoding="utf-8")), f"{file} does not name {number}"


EXAMPLES = [
    example
    for page in ("description", "freeform")
    for example in re.findall(
        r"```yaml\n(.*?)```", (ROOT / "docs" / "robots" / f"{page}.md").read_text(encoding="utf-8"), re.DOTALL
    )
]


@pytest.mark.parametrize(
    ("example", "body", "degrees_of_freedom", "actuators"),
    [
        (EXAMPLES[0], "membrane", 6, 6),
        (EXAMPLES[1], "membrane", 6, 9),
        (EXAMPLES[2], "rod", 6, 6),
        (EXAMPLES[3], "freeform", 3, 3),
    ],
    ids=["2x3", "symmetric", "two_sections", "tapered_arm"],
)
def test_examples_of_descriptions_are_robots(example, body, degrees_of_freedom, actuators):
    robot = read_robot(yaml.safe_load(example), "docs/robots/description.md")
    assert (robot.body.kind, robot.degrees_of_freedom, len(robot.actuators)) == (body, degrees_of_freedom, actuators)
    assert sum(len(device.channels) for device in robot.devices) == actuators
    places = list(robot.base_markers.values())
    distances = sorted(math.dist(a, b) for a, b in itertools.combinations(places, 2))
    assert all(b - a > 1e-3 for a, b in itertools.pairwise(distances))  # each marker is recognised
    if body == "freeform":
        pytest.importorskip("gmsh", reason="gmsh, which meshes it, is not installed")
    for name in known_realities(body):
        load_reality(name, robot)


def test_the_example_of_an_imported_robot_takes_a_table(tmp_path):
    page = (ROOT / "docs" / "steps" / "import.md").read_text(encoding="utf-8")
    body = (ROOT / "docs" / "robots" / "imported.md").read_text(encoding="utf-8")
    (tmp_path / "mine.yaml").write_text(re.findall(r"```yaml\n(.*?)```", body, re.DOTALL)[0], encoding="utf-8")
    pressures = list(itertools.product([0, 30, 60], repeat=3))
    rows = [f"{a},{b},{c},{(b - c) / 2},{(a - b) / 2},{110 + a + b + c}" for a, b, c in pressures]
    (tmp_path / "fem.csv").write_text("p1,p2,p3,x,y,z\n" + "\n".join(rows), encoding="utf-8")
    line = re.search(r"^    \./softform (import tips .*)$", page, re.MULTILINE).group(1)
    words = [str(tmp_path / word) if word in ("fem.csv", "mine.yaml") else word for word in shlex.split(line)]
    result = CliRunner().invoke(main, [*words, "--output", str(tmp_path / "mine.zarr")])
    assert result.exit_code == 0, result.output
    assert "27 tips" in result.output


def test_the_example_of_a_reality_fits_any_membrane(tmp_path):
    page = (ROOT / "docs" / "steps" / "write-a-reality.md").read_text(encoding="utf-8")
    path = tmp_path / "mine.yaml"
    path.write_text(re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)[0], encoding="utf-8")
    for example in EXAMPLES[:2]:
        load_reality(path, read_robot(yaml.safe_load(example), "docs/robots/description.md"))


def test_the_loop_of_the_readme_is_commands_that_parse():
    lines = re.findall(r"^\./softform (.*?)(?: +#.*)?$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(lines) >= 9
    for line in lines:
        words = shlex.split(line)
        if words[0] not in {"test", "build"}:
            _, command, arguments = main.resolve_command(click.Context(main), words)
            while isinstance(command, click.Group):
                _, command, arguments = command.resolve_command(click.Context(command), arguments)
            command.make_context(words[0], arguments)  # raises a UsageError on what the command does not take


@pytest.mark.parametrize("command", main.list_commands(None))
def test_every_command_teaches_itself(command):
    result = CliRunner().invoke(main, [command, "--help"])
    assert result.exit_code == 0, result.output
    assert len(result.output) > 200


@pytest.mark.parametrize("path", sorted((ROOT / "launch").glob("*.launch.xml")), ids=lambda path: path.stem)
def test_launch_files_name_executables_that_are_installed(path):
    for process in load_launch_file(path, {}):
        assert os.access(process.command[0], os.X_OK), process.command[0]


def test_the_pages_make_a_site_without_a_warning():
    if not (ROOT / ".venv" / "docs").is_dir():
        pytest.skip("requirements-docs.txt is not installed")
    result = CliRunner().invoke(main, ["docs", "--no-serve"])
    assert result.exit_code == 0, result.output
    site = ROOT / "build" / "docs"
    assert (site / "searchindex.js").is_file()
    assert "is_served" in (site / "reference" / "modules" / "softform_client.client.html").read_text(encoding="utf-8")


def test_the_entry_point_is_valid_bash():
    for script in ("softform", ".ci/run"):
        subprocess.run(["bash", "-n", ROOT / script], check=True)


def test_the_commands_list_loads_nothing_heavy():
    code = "import sys; from softform_core.cli.main import main; main(['--help'], standalone_mode=False); "
    code += "sys.exit(bool({'torch', 'numba', 'rclpy', 'skfem'} & set(sys.modules)))"
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
