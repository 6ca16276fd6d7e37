"""What every benchmark does with its figures: JSON on standard output or in a file, and nothing else there."""

import json

import click

from softform_core.files import write_atomically

json_option = click.option(
    "--json", "json_path", metavar="FILE", help="Write the figures to FILE; - is standard output, the default."
)


def report_figures(figures: object, json_path: str | None) -> None:
    """Print figures as JSON, or write them to a file and say so.

    Raises:
        SoftformError: If the file cannot be written.
    """
    text = json.dumps(figures, indent=2)
    if json_path is None or json_path == "-":
        click.echo(text)
    else:
        write_atomically(json_path, (text + "\n").encode())
        click.echo(f"written to {json_path}")
