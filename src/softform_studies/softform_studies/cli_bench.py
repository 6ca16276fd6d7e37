"""Command `softform bench`: ours, the paper's algorithm and the ratio, side by side in one run.

Packages add benchmarks of their own as entry points of the group `softform.bench`.

A section of `bench ik` is an entry point of the group `softform.bench.ik`: a function that returns what JSON can hold.
The first line of its docstring is what `--help` says of it. If it has parameters, they are options of the command
(`points`, `targets`, `robot_name`), and have defaults; most have none. What takes no `robot_name` has its own robots.
"""

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import click

from softform_core.cli.registered import RegisteredCommands
from softform_core.cli.shared import json_option, report_figures, robot_option
from softform_core.errors import SoftformError
from softform_core.paths import DEFAULT_ROBOT
from softform_core.plugins import load_plugin, plugin_kinds

IK_GROUP = "softform.bench.ik"

_ROBOT = "robot_name"

_ORDER = ("prediction", "solver", "algorithm2", "scaling", "bounds", "streaming", "waypoints")

Section = Callable[..., dict[str, object]]


class _Benchmarks(RegisteredCommands):
    entry_point_group = "softform.bench"


@click.group(cls=_Benchmarks)
def bench() -> None:
    """Measure speed and accuracy, side by side with the paper's algorithms, in one run.

    Every benchmark prints JSON. Absolute times depend on the machine; the ratios say more.
    """


@click.command()
@click.option("--shapes", type=click.IntRange(min=1), help="Random actuations.  [default: 20; on a device 1000]")
@click.option("--device", help="Membranes alone, many at once on it, beside the single solver: cuda:0 …, or cpu.")
@json_option
def simulate(shapes: int | None, device: str | None, json_path: str | None) -> None:
    """Equilibrium shapes: seconds a shape on one core, and the share that converged.

    The costs are those of the membrane, under `others` of bodies that are quick to solve, and under `manipulator` of
    the soft manipulator: with SuperLU, and with MKL PARDISO if it is installed. All stand beside the paper's.
    """
    from softform_studies.simulate import run, run_on_device

    report_figures(run(shapes or 20) if device is None else run_on_device(device, shapes or 1000), json_path)


def section_names() -> list[str]:
    """Return the names of the registered sections in the order in which they run."""
    last = len(_ORDER)
    return sorted(plugin_kinds(IK_GROUP), key=lambda name: (_ORDER.index(name) if name in _ORDER else last, name))


def load_section(name: str) -> Section:
    """Return the section of this name.

    Raises:
        SoftformError: If there is none.
    """
    section: Section = load_plugin(IK_GROUP, name, "section")[0]
    return section


def run_sections(
    names: Sequence[str], options: Mapping[str, object], report: Callable[[str], None]
) -> dict[str, dict[str, object]]:
    """Run sections one after another.

    Args:
        names: Names of the sections that are run.
        options: Arguments of the sections, by parameter name.
        report: Called with a line when a section begins or fails.

    Returns:
        Figures by section; a section that failed has its `error`, so that what the others showed is not lost.

    Raises:
        SoftformError: If there is no section of one of the names, or one takes no other robot; nothing has run then.
    """
    sections = {name: load_section(name) for name in names}
    takes = {name: inspect.signature(section).parameters for name, section in sections.items()}
    fixed = [name for name in names if _ROBOT not in takes[name]]
    if fixed and options.get(_ROBOT, DEFAULT_ROBOT) != DEFAULT_ROBOT:
        raise SoftformError(
            f"These sections take no robot: {', '.join(fixed)}.",
            "Add --only with each section that takes one (solver, algorithm2), or leave --robot out.",
        )
    figures: dict[str, dict[str, object]] = {}
    for name, section in sections.items():
        wanted = {option: options[option] for option in takes[name] if option in options}
        report(f"bench ik: {name}")
        try:
            figures[name] = section(**wanted)
        except SoftformError as error:
            report(f"  failed: {error}")
            figures[name] = {"error": str(error)}
    return figures


class _IkBenchmark(click.Command):
    """Lists the registered sections in `--help`; their modules are loaded only then, or to run."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
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
    options = {"points": points, "targets": targets, "seconds": seconds, "robot_name": robot_name}
    figures = run_sections(
        only or section_names(),
        {name: value for name, value in options.items() if value is not None},
        lambda line: click.echo(line, err=True),
    )
    report_figures(figures, json_path)
    if any("error" in each for each in figures.values()):
        sys.exit(1)


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
    from softform_studies.targets.bench import reliefs, run

    robot, found = load_robot(DEFAULT_ROBOT, "surface"), reliefs()
    if unknown := [name for name in only if name not in found]:
        raise click.BadParameter(f"'{unknown[0]}' is none of: {'; '.join(found)}.", param_hint="--only")
    chosen = {name: found[name] for name in only or found}
    reality = load_reality("default", robot)
    report_figures(run(robot, reality, chosen, lambda line: click.echo(line, err=True), make_executor()), json_path)


@click.command()
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Of the people drawn.")
@click.option(
    "--starts", default=32, show_default=True, type=click.IntRange(min=1), help="Of the search for best fits."
)
@click.option("--output", type=click.Path(path_type=Path, file_okay=False), help="[default: runs/torsos]")
@json_option
def torsos(seed: int, starts: int, output: Path | None, json_path: str | None) -> None:
    """Table III of paper 000: inverse kinematics of the mannequin to ten torsos at 1:2, beside Algorithm 2.

    People are drawn with the package anny (pip install anny; its first use takes minutes): seven of the mannequin's
    size, three of another. The torsos are written as B1.ply, B2.ply … (m); table3.png shows them, and how far the shape
    found is from each.

    \b
    Examples:
      ./softform bench torsos --json torsos.json
      ./softform bench torsos --seed 7 --output runs/others
    """  # noqa: D301
    from softform_core.paths import runs_dir
    from softform_core.robots import load_robot
    from softform_core.shapes.write import write_ply
    from softform_studies.torsos.bench import compare, deformation_mm, figures_of, torso_pipeline
    from softform_studies.torsos.picture import draw_torsos
    from softform_studies.torsos.targets import BODIES, draw_bodies, torso_targets

    robot = load_robot("mannequin", "surface")
    folder = runs_dir() / "torsos" if output is None else output
    pipeline = torso_pipeline(robot)
    targets = torso_targets(robot, pipeline, draw_bodies(BODIES, seed))
    folder.mkdir(parents=True, exist_ok=True)
    for target in targets:
        write_ply(folder / f"{target.name}.ply", target.shape)
    cases = compare(robot, pipeline, targets, lambda line: click.echo(line, err=True), starts)
    draw_torsos(folder / "table3.png", robot, cases)
    figures = figures_of(cases, deformation_mm(robot, pipeline), pipeline.sim_to_real is not None)
    report_figures({**figures, "picture": str(folder / "table3.png")}, json_path)
