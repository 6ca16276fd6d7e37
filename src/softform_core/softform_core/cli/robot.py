"""`softform robot`: what a description says, and whether it is right."""

from contextlib import suppress
from typing import TYPE_CHECKING

import click

from softform_core.cli.shared import robot_names

if TYPE_CHECKING:
    from softform_core.robots import Robot

CHECKS = "softform.robot_checks"
"""Entry points `name = module:function`: functions that raise a `SoftformError` on a robot that is wrong for them."""


@click.command()
@click.argument("name_or_path", shell_complete=robot_names)
@click.option("--has", type=click.Choice(["surface", "tip"]), help="Print only true or false: whether it has this.")
def robot(name_or_path: str, has: str | None) -> None:
    """Check a robot's description, and show what it says.

    NAME_OR_PATH is a name in config/robots, or a .yaml file.

    Checked are each field and what fields say together (docs/robots/description.md), whether a device of each kind can
    serve its channels and ranges, and, without --has, whether the body's simulator can be built.

    \b
    Examples:
      ./softform robot membrane
      ./softform robot mine.yaml --has surface         as launch files ask
    """  # noqa: D301
    from softform_core.paths import models_of
    from softform_core.robots import TIP, load_robot

    described = load_robot(name_or_path)
    _check_by_others(described)
    if has is not None:
        found = bool(described.surfaces) if has == "surface" else TIP in described.frames
        click.echo("true" if found else "false", nl=False)
        return
    if described.body.is_simulated:
        with suppress(ModuleNotFoundError):  # a computer that only drives has no simulators
            described.body.simulator()
    click.echo(f"{described.name}: {described.title} ({described.source})")
    asked = [f"surface '{surface.patch}'" for surface in described.surfaces] + [
        f"frame '{f}'" for f in described.frames
    ]
    if described.centre_line is not None:
        asked.append("centre line")
    click.echo(f"body        {described.body.kind}, {described.body.size:g} m; asked for {', '.join(asked)}")
    limits = zip(
        described.actuators, described.actuator_min, described.actuator_max, described.actuator_units,
        described.slew_rate, described.safe, strict=True,
    )  # fmt: skip
    click.echo(f"actuators   {', '.join(dict.fromkeys(described.actuator_quantities))}")
    for name, low, high, unit, slew, safe in limits:
        click.echo(f"  {name:<9} {low:g} … {high:g} {unit}, {slew:g} a second, safe at {safe:g}")
    if described.actuation_names != described.actuators:
        ranges = zip(described.actuation_names, described.actuation_min, described.actuation_max, strict=True)
        click.echo("degrees of freedom")
        for name, low, high in ranges:
            click.echo(f"  {name:<9} {low:g} … {high:g}")
    for device in described.devices:
        served = zip(described.actuators_on(device), device.channels, strict=True)
        told = ", ".join(f"{name} on {channel}" for name, channel in served) or "serves none"
        click.echo(f"device      {device.name}: {told}")
    click.echo(f"fingerprint {described.fingerprint()}")
    models = models_of(described.name)
    if models.is_dir():
        click.echo(f"models      {models}")
    else:
        click.echo(f"models      none yet. Begin with: {described.first_command}")


def _check_by_others(robot: "Robot") -> None:
    """Ask the packages that are installed, such as that of the driver, whether a robot is right for them."""
    from softform_core.plugins import load_plugin, plugin_kinds

    for kind in plugin_kinds(CHECKS):
        check, _ = load_plugin(CHECKS, kind, "check")
        check(robot)
