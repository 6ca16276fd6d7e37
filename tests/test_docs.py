"""What the pages promise is there: files behind links, commands behind names, launch files that can be evaluated."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from softform_core.cli.main import main
from softform_launch.launch_file import load_launch_file

ROOT = Path(__file__).parents[1]
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


@pytest.mark.parametrize("command", main.list_commands(None))
def test_every_command_teaches_itself(command):
    result = CliRunner().invoke(main, [command, "--help"])
    assert result.exit_code == 0, result.output
    assert len(result.output) > 200


@pytest.mark.parametrize("path", sorted((ROOT / "launch").glob("*.launch.xml")), ids=lambda path: path.stem)
def test_launch_files_name_executables_that_are_installed(path):
    for process in load_launch_file(path, {}):
        assert os.access(process.command[0], os.X_OK), process.command[0]


def test_the_entry_point_is_valid_bash():
    for script in ("softform", ".ci/run"):
        subprocess.run(["bash", "-n", ROOT / script], check=True)


def test_the_commands_list_loads_nothing_heavy():
    code = "import sys; from softform_core.cli.main import main; main(['--help'], standalone_mode=False); "
    code += "sys.exit(bool({'torch', 'numba', 'rclpy', 'skfem'} & set(sys.modules)))"
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
