"""The page 'Your own robot in an hour', as a new user follows it: each command says what comes next."""

import re
import shlex

import click
import pytest
import yaml
from click.testing import CliRunner

from softform_core.cli.main import main
from softform_core.paths import home, models_of

PAGE = (home() / "docs" / "your-own-robot.md").read_text(encoding="utf-8")
LINES = [
    line.partition("#")[0].strip().removeprefix("./softform ")
    for block in re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)
    for line in block.splitlines()
    if line.startswith("./softform ")
]


@pytest.fixture(name="lab")
def folder_of_a_user(tmp_path, monkeypatch):
    """A folder of a user's own with the example of a description as robot `pillow`, of few cells."""
    (tmp_path / "config" / "robots").mkdir(parents=True)
    for name, place in (("CONFIG_PATH", ""), ("DATA", "data"), ("RUNS", "runs")):
        monkeypatch.setenv(f"SOFTFORM_{name}", str(tmp_path / place))
    examples = (home() / "docs" / "robots" / "description.md").read_text(encoding="utf-8")
    content = yaml.safe_load(re.findall(r"```yaml\n(.*?)```", examples, re.DOTALL)[0]) | {"name": "pillow"}
    content["body"]["cells"] = 12
    content["surfaces"][0] |= {"rows": 8, "columns": 8}
    (tmp_path / "config" / "robots" / "pillow.yaml").write_text(yaml.safe_dump(content))
    return tmp_path


def run(line):
    return CliRunner().invoke(main, shlex.split(line))


def test_the_commands_of_the_page_parse():
    assert len(LINES) >= 12
    for line in LINES:
        _, command, arguments = main.resolve_command(click.Context(main), shlex.split(line))
        while isinstance(command, click.Group):
            _, command, arguments = command.resolve_command(click.Context(command), arguments)
        command.make_context(line, arguments)  # raises a UsageError on what the command does not take


def test_each_step_leads_to_the_next_one_and_nothing_is_written_into_the_checkout(lab):
    steps = ["robot pillow", "simulate --robot pillow --samples 1000", "train fk --robot pillow"]
    assert [line for line in LINES if line in steps] == steps
    early = run("train fk --robot pillow")
    assert early.exit_code == 2 and "softform simulate --robot pillow" in early.output
    robot = run(steps[0])
    assert robot.exit_code == 0 and "Begin with: ./softform simulate --robot pillow" in robot.output
    simulated = run(steps[1].replace("1000", "24 --jobs 1"))
    assert simulated.exit_code == 0 and "Learn them: ./softform train fk --robot pillow\n" in simulated.output
    learned = run(steps[2] + " --epochs 20")
    assert learned.exit_code == 0 and "Try it: ./softform demo --robot pillow" in learned.output, learned.output
    assert models_of("pillow") == lab / "models" / "pillow"
    assert (lab / "models" / "pillow" / "forward_kinematics.pt").is_file()
    assert f"models      {lab}/models/pillow" in run(steps[0]).output
    assert not (home() / "models" / "pillow").exists() and not (home() / "data" / "pillow").exists()
