"""Command `softform bench targets`."""

import click

from softform_core.cli.shared import json_option, report_figures
from softform_core.paths import DEFAULT_ROBOT


@click.command()
@click.option("--only", multiple=True, metavar="NAME", help="This target alone; may be given several times.")
@json_option
def targets(only: tuple[str, ...], json_path: str | None) -> None:
    """Reliefs and scans as they come, reached in every way of a demo; learning should make none worse.

    A face, one with holes and one with debris, a figure, land as a coarse mesh and as a dense noisy cloud, two parts,
    and what is off-centre, larger or smaller than the membrane: mean distances at rest, by the simulation, with
    sim-to-real and in a closed loop on the virtual rig (without nodes); the best fit, and whether its starts agree.
    """
    from softform_core.executors import make_executor
    from softform_core.robots import load_robot
    from softform_rig.reality import load_reality
    from softform_studies.targets.bench import run
    from softform_studies.targets.reliefs import reliefs

    robot, found = load_robot(DEFAULT_ROBOT, "surface"), reliefs()
    if unknown := [name for name in only if name not in found]:
        raise click.BadParameter(f"'{unknown[0]}' is none of: {'; '.join(found)}.", param_hint="--only")
    chosen = {name: found[name] for name in only or found}
    reality = load_reality("default", robot)
    report_figures(run(robot, reality, chosen, lambda line: click.echo(line, err=True), make_executor()), json_path)
