"""Command `softform bench import`."""

import click

from softform_core.cli.shared import json_option, report_figures


@click.command("import")
@click.option("--rows", default=23_000, show_default=True, type=click.IntRange(min=200), help="Of the table of tips.")
@click.option("--learned", default=4096, show_default=True, type=click.IntRange(min=100), help="Rows that train N_fk.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Of rows and training.")
@json_option
def import_(rows: int, learned: int, seed: int, json_path: str | None) -> None:
    """Imported data on trial: a table "3 pressures -> tip", and 18 OBJ files with mixed winding.

    Both are written as another program would, imported, and learned from; N_fk is judged by what it has not seen, and
    inverse kinematics by the simulator that made the table.
    """
    from softform_core.threads import one_thread
    from softform_studies.imported_data import imported_shapes, imported_tips

    if learned >= rows:
        raise click.BadParameter(f"{learned} of {rows} rows leave none to judge by.", param_hint="--learned")

    def say(line: str) -> None:
        click.echo(line, err=True)

    with one_thread():
        figures = {"tips": imported_tips(rows, learned, seed, say), "shapes": imported_shapes(seed, say)}
    report_figures(figures, json_path)
