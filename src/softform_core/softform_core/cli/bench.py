"""Command `softform bench`: ours, the paper's algorithm and the ratio, side by side in one run.

Packages add benchmarks of their own as entry points of the group `softform.bench`.
"""

import click

from softform_core.cli.figures import json_option, report_figures
from softform_core.cli.registered import RegisteredCommands


class _Benchmarks(RegisteredCommands):
    entry_point_group = "softform.bench"


@click.group(cls=_Benchmarks)
def bench() -> None:
    """Measure speed and accuracy, side by side with the paper's algorithms, in one run.

    Every benchmark prints JSON. Absolute times depend on the machine; the ratios say more.
    """


@click.command()
@click.option("--shapes", default=20, show_default=True, help="Number of random actuations to solve.")
@json_option
def simulate(shapes: int, json_path: str | None) -> None:
    """Equilibrium shapes of the membrane: seconds a shape on one core, and the share that converged."""
    from softform_core.bench.simulate import run

    report_figures(run(shapes=shapes), json_path)


@click.command()
@click.option("--points", default=1000, show_default=True, help="Sample points on the surface.")
@json_option
def ik(points: int, json_path: str | None) -> None:
    """Inverse kinematics: ours and Algorithm 2 of paper 000 by automatic differentiation, on the same target."""
    from softform_core.bench.ik import run

    report_figures(run(points=points), json_path)
