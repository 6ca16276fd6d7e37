"""Command `softform identify-plant`."""

from pathlib import Path
from typing import Any

import click
import yaml

from softform_core.cli.shared import report_figures
from softform_core.errors import SoftformError
from softform_core.files import write_atomically
from softform_rig.plant_log import ROW_PERIOD, read_plant_log


@click.command()
@click.argument("logs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="LOG.csv...")
@click.option(
    "--row-period",
    "row_periods",
    multiple=True,
    type=float,
    metavar="S",
    help=f"Time between rows, s; once for all logs, or once for each.  [default: as the log says, else {ROW_PERIOD}]",
)
@click.option("--output", type=click.Path(path_type=Path), metavar="FILE", help="Write the plant as YAML.")
@click.option("--json", "json_path", metavar="FILE", help="Write all figures as one JSON object; - is standard output.")
@click.option("--seed", default=0, show_default=True, help="Of the search.")
def identify_plant(
    logs: tuple[Path, ...], row_periods: tuple[float, ...], output: Path | None, json_path: str | None, seed: int
) -> None:
    """Identify the pneumatics of a board's channel from recordings of it, and say how well they are reproduced.

    A LOG has columns named measured, target (kPa, or with a unit in the name: target_psi), inflation (0 … 4090),
    deflation (0 … -4090) and, perhaps, time (s), in any order; without a header they are the first four. Rows that are
    not numbers and a last line that was cut off do no harm. Identified are rate, stall pressure, dead band and lag of
    both pumps, the valve and the leaks; nothing where the commands do not fit the pressures.

    What the logs do not tell is printed as not identified: a coefficient that ends on its bound, or that changes
    nothing, as those of a pump that never ran.

    Printed are the root mean square errors of the freely simulated pressure: of each step, of each log, of the part of
    each log that a fit has not seen, and, of several logs, of the fit to each on every other.

    Beside each log stands the volume of its chamber with its tube, relative to that of the plant that ships: with a log
    of each channel these are the driver's `chamber_volumes`.

    \b
    Examples:
      ./softform identify-plant steps.csv
      ./softform identify-plant steps_5s.csv steps_1s.csv --row-period 0.0427 --row-period 0.0417
      ./softform identify-plant mine.csv --output config/plant.yaml      the emulated board becomes yours
    """  # noqa: D301
    from softform_rig.plant_report import report_plant

    if len(row_periods) not in (0, 1, len(logs)):
        raise SoftformError(f"{len(row_periods)} row periods for {len(logs)} logs.", "Give one, or one for each log.")
    periods = row_periods * (len(logs) // max(1, len(row_periods))) or (None,) * len(logs)
    read = [read_plant_log(path, period) for path, period in zip(logs, periods, strict=True)]
    plant, report = report_plant(read, seed, lambda line: click.echo(line, err=True))
    if json_path != "-":
        _print(report)
    if json_path is not None:
        report_figures(report, json_path)
    if output is not None:
        names = ", ".join(log.name for log in read)
        head = f"# Pneumatics of one channel, identified from {names}: RMSE {report['rmse_kpa']} kPa.\n"
        head += "".join(f"# Not identified: {name}; {why}.\n" for name, why in report["not_identified"].items())
        write_atomically(output, (head + yaml.safe_dump({"plant": plant.model_dump()}, sort_keys=False)).encode())


def _print(report: dict[str, Any]) -> None:
    for log in report["logs"]:
        click.echo(f"\n{log['name']}\n{'row':>6} {'rows':>5} {'from':>7} {'to':>7} {'RMSE':>7} {'largest':>8}  kPa")
        for step in log["steps"]:
            figures = "  no reading" if step["rmse"] is None else f"{step['rmse']:7.3f} {step['largest']:8.3f}"
            click.echo(f"{step['first_row']:6} {step['rows']:5} {step['before']:7.2f} {step['target']:7.2f} {figures}")
        click.echo(f"overall RMSE {log['rmse_kpa']} kPa; rows without reading: {log['rows_without_reading']}")
        if log["held_out_rmse_kpa"] is not None:
            click.echo(f"fitted on a part, over the rest: RMSE {log['held_out_rmse_kpa']} kPa")
        click.echo(f"with the plant that ships: RMSE {log['shipped_plant_rmse_kpa']} kPa")
        click.echo(
            f"chamber and tube, in those of the plant that ships: volume {log['chamber_volume']} "
            f"(RMSE {log['chamber_volume_rmse_kpa']} kPa)"
        )
    for fitted, checked in report["cross_check_rmse_kpa"].items():
        click.echo(
            f"fitted to {fitted} alone: " + ", ".join(f"{value} kPa on {name}" for name, value in checked.items())
        )
    click.echo(f"\nsimulated from {report['driven_by']}")
    unidentified = report["not_identified"]

    def shown(name: str, value: object) -> str:
        return f"not identified ({unidentified[name]})" if name in unidentified else str(value)

    for name, value in report["plant"].items():
        if isinstance(value, dict):
            click.echo(f"{name}: " + ", ".join(f"{part} {shown(f'{name}.{part}', one)}" for part, one in value.items()))
        else:
            click.echo(f"{name}: {shown(name, value)}")
    click.echo(f"RMSE {report['rmse_kpa']} kPa")
