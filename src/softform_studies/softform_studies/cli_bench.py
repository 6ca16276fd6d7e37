"""Command `softform bench`: ours, the paper's algorithm and the ratio, side by side in one run.

Packages add benchmarks of their own as entry points of the group `softform.bench`.
"""

import sys

import click

from softform_core.cli.registered import RegisteredCommands
from softform_core.cli.shared import json_option, report_figures, robot_option


class _Benchmarks(RegisteredCommands):
    entry_point_group = "softform.bench"


@click.group(cls=_Benchmarks)
def bench() -> None:
    """Measure speed and accuracy, side by side with the paper's algorithms, in one run.

    Every benchmark prints JSON. Absolute times depend on the machine; the ratios say more.
    """


@click.command()
@click.option("--shapes", type=click.IntRange(min=1), help="Random actuations.  [default: 20; on a device 1000]")
@click.option(
    "--device", help="Membranes and rods alone, many at once on it, beside the single solver: cuda:0 …, or cpu."
)
@json_option
def simulate(shapes: int | None, device: str | None, json_path: str | None) -> None:
    """Equilibrium shapes: seconds a shape on one core, and the share that converged.

    Of the membrane, beside a first-order method, under `others` of bodies that are quick to solve, and under
    `manipulator` of the soft manipulator: with SuperLU and with MKL PARDISO if it is installed, one shape by FElupe,
    too. All stand beside the paper's.
    """
    from softform_studies import simulate_manipulator, simulate_on_device
    from softform_studies.simulate import run

    if device is not None:
        report_figures(simulate_on_device.run(device, shapes or 1000), json_path)
        return
    shapes = shapes or 20
    report_figures({**run(shapes), "manipulator": simulate_manipulator.run(shapes)}, json_path)


class _IkBenchmark(click.Command):
    """Lists the registered sections in `--help`; their modules are loaded only then, or to run."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from softform_studies.ik.ik_sections import load_section, section_names

        super().format_options(ctx, formatter)
        with formatter.section("Sections"):
            formatter.write_dl(
                [(name, (load_section(name).__doc__ or "").strip().partition("\n")[0]) for name in section_names()]
            )


@click.command(cls=_IkBenchmark)
@click.option("--only", multiple=True, metavar="SECTION", help="Run this section alone; may be given several times.")
@click.option("--points", type=click.IntRange(min=4), help="Sample points on the surface.  [default: 1000]")
@click.option(
    "--targets",
    type=click.IntRange(min=1),
    help="Random reachable targets.  [default: 200 of `solver`, 3 of `algorithm2`]",
)
@click.option("--seconds", type=click.FloatRange(min=1.0), help="How long `streaming` streams.  [default: 60]")
@robot_option
@json_option
def ik(
    only: tuple[str, ...],
    points: int | None,
    targets: int | None,
    seconds: float | None,
    robot_name: str,
    json_path: str | None,
) -> None:
    """Inverse kinematics on one core: speed and accuracy, and the paper's algorithms on the same targets.

    Prints one JSON object, in it each section's figures under its name; all of them take some minutes. A section that
    fails has its `error`, and the command exits with 1. `solver` and `algorithm2` take any robot with a shipped
    sim-to-real model; the others have robots of their own.

    \b
    Examples:
      ./softform bench ik --only prediction
      ./softform bench ik --only solver --robot manipulator
      ./softform bench ik --json ik.json
    """  # noqa: D301
    from softform_studies.ik.ik_sections import run_sections, section_names

    options = {"points": points, "targets": targets, "seconds": seconds, "robot_name": robot_name}
    figures = run_sections(
        only or section_names(),
        {name: value for name, value in options.items() if value is not None},
        lambda line: click.echo(line, err=True),
    )
    report_figures(figures, json_path)
    if any("error" in each for each in figures.values()):
        sys.exit(1)
