"""`softform run`: a program to a running stack."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from softform_tools.commands import goals

if TYPE_CHECKING:  # commands are listed without ROS
    from softform_client.program_file import Row
    from softform_client.program_run import Ended, Step


@click.command()
@click.argument("program", type=click.Path(path_type=Path), metavar="FILE")
@click.option("--check", is_flag=True, help="See whether it can be run, and move nothing; needs no stack.")
@goals.stack_options
def run(program: Path, check: bool, namespace: str, frame: str, json_path: str | None) -> None:
    """Run a program on the robot of a running stack; the robot holds at its end.

    FILE is YAML: blocks that move, wait, verify, capture, repeat. Files that it names lie beside it. All is checked
    before anything moves. Ctrl-C ends it, and the robot stays where it is; a stop, fault or reset ends it, too. Exits
    with 1 if a block ends with an error, with 2 if it is no program for this robot, or no stack answers.

    \b
    Examples:
      ./softform run examples/programs/breathe.yaml --check
      ./softform run examples/programs/breathe.yaml
      ./softform run mine.yaml --json - | jq '.steps[].measured'
    """  # noqa: D301 - click reads the escape as "keep these lines"
    from softform_client.program_file import FolderFiles, read_program
    from softform_client.program_run import ProgramRun
    from softform_core.robots import load_robot

    text, files = read_program(program), FolderFiles(program.parent)
    if check:
        text.aims(load_robot(text.program.robot), files)
        click.echo(f"{program} can be run: {len(text.rows)} blocks for '{text.program.robot}'")
        return
    with goals.connected(namespace, frame) as client, goals.Progress() as bar:
        aims = text.aims(client.robot(), files)

        def begun(row: "Row", note: str) -> None:
            bar.note(f"{row.number} {row.block.title}{': ' if note else ''}{note}")

        def done(step: "Step") -> None:
            bar.say(f"{step.block} {step.title}{': ' if step.text else ''}{step.text} ({step.seconds:.1f} s)")

        runner = ProgramRun(text, aims, client, files, client.epoch, begun, done)
        ended = goals.carried_out(runner.run, runner.cancel)
    _tell(ended, json_path)


def _tell(ended: "Ended", json_path: str | None) -> None:
    """Tell how a program ended, and exit with its code."""
    row = ended.row
    result: dict[str, Any] = {
        "state": ended.state,
        "block": None if row is None else row.number,
        "line": None if row is None else row.line,
        "error_code": ended.code,
        "error_msg": "" if ended.state == "done" else ended.text,
        "steps": [asdict(step) for step in ended.steps],
    }
    is_done = ended.state == "done"
    click.echo(ended.text, err=json_path == "-" or not is_done)
    if json_path is not None:
        goals.report_figures(result, json_path)
    if not is_done:
        sys.exit(goals.EXIT_INTERRUPTED if ended.state == "stopped" else goals.EXIT_FAILED)
