"""Command `softform bench meshes`."""

from pathlib import Path

import click

from softform_core.cli.shared import json_option, report_figures
from softform_core.units import PER_METRE


@click.command()
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--unit", type=click.Choice(list(PER_METRE)), default="mm", show_default=True, help="Of files.")
@json_option
def meshes(files: tuple[Path, ...], unit: str, json_path: str | None) -> None:
    """Meshes as bodies of `kind: mesh`: how many work, and what is told of the others.

    Without FILES twenty of our own: fingers, bellows, grippers, a starfish, a ring and a tentacle as STEP, STL, OBJ,
    PLY, .msh and .vtk in millimetres, metres and inches; of six something is wrong. FILES are held by two grips at the
    ends of their longest axis, and bent. Needs gmsh; minutes on one core.

    \b
    Examples:
      ./softform bench meshes --json -
      ./softform bench meshes --unit m my_parts/*.stl
    """  # noqa: D301
    from softform_core.threads import one_thread
    from softform_studies.meshes import bench

    def say(line: str) -> None:
        click.echo(line, err=True)

    with one_thread():
        figures = bench.files(files, unit, say) if files else bench.meshes(say)  # type: ignore[arg-type]  # of Choice
    report_figures(figures, json_path)
