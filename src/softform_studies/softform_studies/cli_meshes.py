"""Command `softform bench meshes`."""

import click

from softform_core.cli.shared import json_option, report_figures


@click.command()
@json_option
def meshes(json_path: str | None) -> None:
    """Twenty meshes as bodies of `kind: mesh`: how many work, and what is told of the others.

    Fingers, bellows, grippers, a starfish, a ring and a tentacle as STEP, STL, OBJ, PLY, .msh and .vtk in millimetres,
    metres and inches; of six something is wrong. Needs gmsh; minutes on one core.

    \b
    Examples:
      ./softform bench meshes --json -
    """  # noqa: D301
    from softform_core.threads import one_thread
    from softform_studies.meshes.bench import meshes as run

    with one_thread():
        figures = run(lambda line: click.echo(line, err=True))
    report_figures(figures, json_path)
