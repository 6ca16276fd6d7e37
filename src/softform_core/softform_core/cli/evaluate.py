"""Command `softform evaluate`: how far a model is from what was captured, in figures and one report."""

from pathlib import Path

import click

from softform_core.cli.shared import PATH, device_option, report_figures, robot_option
from softform_core.paths import data_dir, runs_dir
from softform_core.robots import load_robot


@click.command()
@robot_option
@click.option("--frames", type=PATH, help="Captured scans or markers.  [default: data/ROBOT/frames.zarr]")
@click.option(
    "--sim-to-real",
    default="auto",
    show_default=True,
    metavar="FOLDER|auto|none",
    help="Model to judge. auto: the robot's own in models/, if there is one. none: the simulation alone.",
)
@click.option("--output", type=PATH, help="Folder of the report.  [default: runs/evaluate/ROBOT]")
@click.option(
    "--held-out-only/--all",
    "held_out_only",
    default=True,
    show_default=True,
    help="Judge only frames that the model was not trained on, or show the others beside them.",
)
@device_option
@click.option("--json", "json_path", metavar="FILE", help="Also write metrics.json to FILE; - is standard output.")
def evaluate(
    robot_name: str,
    frames: Path | None,
    sim_to_real: str,
    output: Path | None,
    held_out_only: bool,
    device: str | None,
    json_path: str | None,
) -> None:
    """Judge the model on captured frames, before and after sim-to-real, and write a report.

    Distances of captured points to the predicted surface and back, Chamfer and Hausdorff distance, normal errors, how
    often the predicted uncertainty holds, colour maps of the worst, the median and the best frame: report.html (one
    file, for any browser), report.pdf and metrics.json. A report in the same folder is replaced.

    \b
    Examples:
      ./softform evaluate                            the robot's own model on data/membrane/frames.zarr
      ./softform evaluate --frames worn.zarr --sim-to-real models/membrane/rig_default --output /tmp/worn
      ./softform evaluate --sim-to-real none --json - | jq .overall.before.mean_mm
    """  # noqa: D301 - click reads the escape as "keep these lines"
    from tqdm import tqdm

    from softform_core.evaluation.evaluate import CPU
    from softform_core.evaluation.evaluate import evaluate as run
    from softform_core.evaluation.report import HTML_FILE, PDF_FILE, headline, metrics, write_report
    from softform_core.provenance import command_line

    robot = load_robot(robot_name, "surface")
    folder = runs_dir() / "evaluate" / robot.name if output is None else output
    evaluation = run(
        robot,
        data_dir() / robot.name / "frames.zarr" if frames is None else frames,
        sim_to_real,
        held_out_only,
        lambda captures: tqdm(list(captures), unit="frame", desc="evaluate", disable=None),
        device or CPU,
    )
    figures = metrics(evaluation, command_line())
    write_report(folder, evaluation, figures)
    if json_path is not None:
        report_figures(figures, json_path)
    if json_path == "-":
        return
    click.echo(f"{len(evaluation.judged)} frames of {evaluation.captures.path}")
    for name, value in headline(evaluation.judged).items():
        click.echo(f"  {name:<20}{value}")
    for finding in evaluation.findings:
        click.echo(f"  {finding}")
    click.echo(f"{folder / HTML_FILE}, {PDF_FILE} beside it")
