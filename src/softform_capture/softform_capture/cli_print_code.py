"""Command `softform print-code`: the sheet of codes by which cameras know where they look."""

from pathlib import Path

import click


@click.command("print-code")
@click.option("--sheet", type=click.Choice(["A4", "A3"]), default="A4", show_default=True, help="Size of the paper.")
@click.option(
    "--output", type=click.Path(path_type=Path), help="A .pdf or .png file.  [default: code_sheet_SHEET.pdf here]"
)
def print_code(sheet: str, output: Path | None) -> None:
    """Write the sheet of codes for printing.

    Cameras find the robot's plane by it: the camera tracker of a planar robot, and depth cameras that are calibrated.
    Print it at 100 %, without "fit to page", and measure the ruler at its foot: if it is not 200 mm long, give its
    length to what reads the sheet (ruler_length).

    \b
    Examples:
      ./softform print-code
      ./softform print-code --sheet A3 --output sheet.png
    """  # noqa: D301 - click reads the escape as "keep these lines"
    from softform_capture.camera_tracker.code_sheet import print_sheet

    path = output or Path(f"code_sheet_{sheet}.pdf")
    print_sheet(sheet, path)
    click.echo(f"{path}: print it at 100 % and measure the ruler")
