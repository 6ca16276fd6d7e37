"""Command `softform bench rig`."""

import sys
from pathlib import Path

import click

from softform_core.cli.shared import json_option, report_figures

_BUSY = 2.0
_LATEST_MS = 250.0


@click.command()
@click.option("--count", type=click.IntRange(min=1), help="Faults to inject.  [default: about 355]")
@click.option("--only", metavar="CLASS", help="Inject this class alone: serial, mocap, scan, 'kill -9', SIGTERM, ...")
@click.option("--resume", metavar="FOLDER", type=click.Path(path_type=Path), help="Go on with a run that was cut off.")
@json_option
def rig(count: int | None, only: str | None, resume: Path | None, json_path: str | None) -> None:
    """Inject faults into the running stack on the virtual rig, and judge what it makes of them.

    Serial line, valves, sensors, motion capture, scanner, every process killed and terminated, driver and guardian
    gone together, wrong and hostile messages, what was queued before a stop, two commanders, two drivers, a shape that
    is held, a stale bag, frozen processes, a computer that sleeps, a driver that is stopped while it starts, a full
    disk, a clock that jumps, tendon motors, two arms that shape an object. Prints how many were safe, how long it took
    to vent after a fault could be observed (on the emulated board's wire, and in its chambers), to slacken, and until
    arms stood still; whether the driver ever said that all is safe while it was not; stored frames that were lost, and
    what hung. The whole script takes about 45 minutes, and is kept in docs/safety.md; cut off, `--resume` goes on.
    docs/notes/bench-rig.md says what is right for each.

    \b
    Examples:
      ./softform bench rig --json -
      ./softform bench rig --only serial --count 12
    """  # noqa: D301
    from softform_core.paths import home
    from softform_core.provenance import git_revision
    from softform_core.run_folder import new_run_folder
    from softform_system_tests.fault_injection import safety_page
    from softform_system_tests.fault_injection.campaign import DEFAULT_COUNT, run, script, unreadable_bags
    from softform_system_tests.fault_injection.outcome import Ledger, figures, table

    folder = resume.absolute() if resume else new_run_folder("bench-rig")
    order = script(count or DEFAULT_COUNT, only)
    ledger = Ledger(folder / "outcomes.jsonl", git_revision())
    outcomes = run(order, ledger, folder, lambda line: click.echo(line, err=True))
    result = figures(outcomes)
    click.echo(table(result), err=True)
    load = result["load_per_core"]
    if isinstance(load, float) and load > _BUSY:
        click.echo(
            f"The machine was busy ({load} processes a core): a starved stack vents, and is judged for it.", err=True
        )
    unreadable = unreadable_bags(folder)
    report_figures({**result, "unreadable_bags": unreadable, "folder": str(folder)}, json_path)
    if count is None and only is None and safety_page.page_of(home()).is_file():
        safety_page.keep(home(), result)
    late = [result[key] for key in ("vented_within_ms_p99", "chamber_falls_within_ms_p99")]
    if any(isinstance(one, float) and one > _LATEST_MS for one in late):
        click.echo(f"Venting took {late} ms at the 99th percentile; {_LATEST_MS:g} ms is the bar.", err=True)
        sys.exit(1)
    if unreadable or not all(one.safe and not one.hung and not one.lost_frames for one in outcomes):
        sys.exit(1)
