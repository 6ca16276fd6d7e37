"""Command `softform rig`: the virtual rig alone, with faults."""

import json
import math
import os
import sys
from pathlib import Path
from typing import get_args

import click

from softform_core.cli.shared import robot_names
from softform_core.paths import DEFAULT_ROBOT, runs_dir
from softform_rig.fault_kinds import Quantity
from softform_rig.faults import kinds, parse_faults
from softform_rig.rig_settings import BoardName


@click.command()
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="KIND[=VALUE][@START][+DURATION]",
    help="What goes wrong: START s after the rig is up, for DURATION s; again for more faults.",
)
@click.option("--check", is_flag=True, help="Check robot, reality, board and faults, and start nothing.")
@click.option("--list-faults", is_flag=True, help="List all kinds of faults, and start nothing.")
@click.option(
    "--robot",
    default=DEFAULT_ROBOT,
    show_default=True,
    shell_complete=robot_names,
    help="A robot of config/robots, or a .yaml.",
)
@click.option(
    "--board",
    type=click.Choice(get_args(BoardName)),
    default="openpneu_a",
    show_default=True,
    help="What the board speaks; docs/boards.md.",
)
@click.option(
    "--reality", default="default", show_default=True, help="A reality of config/realities, a .yaml, or drawn:SEED."
)
@click.option(
    "--port-link", type=click.Path(path_type=Path), help="Where the board's port appears.  [default: runs/openpneu]"
)
@click.option(
    "--scan-folder", type=click.Path(path_type=Path), help="Where scans are exported to.  [default: runs/scans]"
)
@click.option("--mocap-rate", default=20.0, show_default=True, help="Frames of motion capture a second; 0 for none.")
@click.option("--seed", default=0, show_default=True, help="Of sensor, scanner and line noise.")
@click.option("--namespace", default="softform", show_default=True, help="ROS namespace of its topics.")
def rig(
    faults: tuple[str, ...],
    check: bool,
    list_faults: bool,
    robot: str,
    board: BoardName,
    reality: str,
    port_link: Path | None,
    scan_folder: Path | None,
    mocap_rate: float,
    seed: int,
    namespace: str,
) -> None:
    """Start the virtual rig alone: an emulated board on a port, the robot that it drives, a scanner, motion capture.

    Whatever speaks to a board can be tried on it: open the port that it prints. It says when a host comes and goes,
    when it receives a request to vent, and when each fault starts, first shows, and ends. Ctrl-C stops it.

    A fault is KIND[=VALUE][@START][+DURATION], times in seconds. Without START it is there from the beginning, without
    DURATION it stays. More can be injected while it runs, by the service rig/inject_fault; docs/steps/inject-faults.md
    says what each does on the wire and what a driver should make of it.

    \b
    Examples:
      ./softform rig --list-faults
      ./softform rig --check --reality mine.yaml         what is wrong with a reality
      ./softform rig --fault stall@10+2                  the board hangs for two seconds
      ./softform rig --fault slow_boot=4 --fault disconnect@12+3
      ./softform rig --board binary --fault drop_bytes=0.01@10
      ./softform rig --fault corrupt=0.01 --fault leak=3:0.5@20
      ./softform launch driver port:=runs/openpneu       the driver on it, in another terminal
      ./softform launch softform faults:=stall@20+2,mocap_swap@30+5     the whole stack on a faulty rig
    """  # noqa: D301
    if list_faults:
        _list_faults()
        return
    planned = parse_faults(faults)
    if check:
        _check(robot, reality, board)
        return
    port, scans = (
        path.absolute() for path in (port_link or runs_dir() / "openpneu", scan_folder or runs_dir() / "scans")
    )
    click.echo(f"port {port}\nscans {scans}")
    for fault in sorted(planned, key=lambda fault: fault.start):
        lasting = "" if fault.kind.is_moment else f" for {fault.duration:g} s"
        lasting = " to the end" if fault.duration == math.inf else lasting
        click.echo(f"fault {fault}: at {fault.start:g} s{lasting}, {fault.kind.does}")
    parameters = {
        "autostart": True,
        "robot": robot,
        "reality": reality,
        "board": board,
        "seed": seed,
        "port_link": str(port),
        "scan_folder": str(scans),
        "mocap_rate": mocap_rate,
        "faults": [str(fault) for fault in planned] or [""],
    }
    # JSON is YAML, which is what ROS reads its parameters as.
    given = [part for name, value in parameters.items() for part in ("-p", f"{name}:={json.dumps(value)}")]
    sys.stdout.flush()
    command = [
        sys.executable,
        "-m",
        "softform_rig.rig_node",
        "--ros-args",
        "-r",
        f"__ns:=/{namespace.strip('/')}",
        *given,
    ]
    os.execv(command[0], command)


def _check(robot: str, reality: str, board: BoardName) -> None:
    from softform_core.robots import load_robot
    from softform_rig.emulation import emulation_of
    from softform_rig.reality import load_reality
    from softform_rig.rig_settings import RigSettings

    described = load_robot(robot)
    found = load_reality(reality, described)
    settings = RigSettings(Path(), Path(), [], board=board)
    for device in described.devices:
        emulation = emulation_of(described, device)
        emulation.make(described, device, found.errors_of(emulation), settings)


def _list_faults() -> None:
    for kind in kinds().values():
        click.echo(f"{kind.form}\n    {kind.device}: {kind.does}{_values_in_words(kind.values)}")


def _values_in_words(values: tuple[Quantity, ...]) -> str:
    words = []
    for quantity in values:
        if quantity.default is None:
            words.append(f"{quantity.name} {quantity.low:g} … {quantity.high:g}")
        else:
            words.append(f"{quantity.name}, by default {quantity.default or 'one of the first'}")
    return f" ({'; '.join(words)})" if words else ""
