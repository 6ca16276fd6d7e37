"""Command `softform bench`: ours, the paper's algorithm and the ratio, side by side in one run."""

import json

import click

from softform_core.files import write_atomically


def _report(figures: dict[str, object], json_path: str | None) -> None:
    text = json.dumps(figures, indent=2)
    if json_path is None or json_path == "-":
        click.echo(text)
    else:
        write_atomically(json_path, (text + "\n").encode())
        click.echo(f"written to {json_path}")


_json_option = click.option(
    "--json", "json_path", metavar="FILE", help="Write the figures to FILE; - is standard output."
)


@click.group()
def bench() -> None:
    """Measure speed, side by side with the paper's algorithm, in one run.

    Every benchmark prints one JSON object. Absolute times depend on the machine; the ratios say more.
    """


@bench.command()
@click.option("--shapes", default=20, show_default=True, help="Number of random actuations to solve.")
@_json_option
def simulate(shapes: int, json_path: str | None) -> None:
    """Equilibrium shapes of the membrane: seconds a shape on one core, and the share that converged."""
    from softform_core.bench.simulate import run

    _report(run(shapes=shapes), json_path)


@bench.command()
@click.option("--points", default=1000, show_default=True, help="Sample points on the surface.")
@_json_option
def ik(points: int, json_path: str | None) -> None:
    """Inverse kinematics: ours and Algorithm 2 of paper 000 by automatic differentiation, on the same target."""
    from softform_core.bench.ik import run

    _report(run(points=points), json_path)
