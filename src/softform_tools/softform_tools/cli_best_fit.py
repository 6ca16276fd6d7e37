"""`softform bench best-fit`: how close to a target the rig's true body can come, found without model or loop."""

from typing import Any

import click

from softform_core.cli.shared import json_option, report_figures
from softform_tools.target_options import target_options


@click.command("best-fit")
@target_options
@click.option("--starts", type=click.IntRange(min=1), help="Random starts of the search.  [default: 4]")
@json_option
def best_fit(starts: int | None, json_path: str | None, **of_target: Any) -> None:
    """The closest shape to a target that a virtual rig's true physics allows.

    Least squares from random starts on the equilibria of the reality; the best is led on to the least mean distance, as
    a scan without noise and holes measures it. A demo's `best fit` is this figure; it keeps its target, where it lay,
    as target.ply (m) in the folder of its run.

    \b
    Examples:
      ./softform bench best-fit --target dem
      ./softform bench best-fit --target runs/demo/target.ply --unit m --reality drawn:7
    """  # noqa: D301
    from softform_core.executors import make_executor
    from softform_core.robots import load_robot
    from softform_rig.best_fit import STARTS, find_best_fit
    from softform_rig.reality import load_reality
    from softform_tools.demo import DemoRequest, choose_target, target_name

    request = DemoRequest(**of_target)
    robot = load_robot(request.robot, "surface")

    def tell(number: int, mean_mm: float) -> None:
        click.echo(f"start {number}: {mean_mm:.3f} mm", err=True)

    found = find_best_fit(
        robot,
        load_reality(request.reality, robot),
        choose_target(request, robot),
        starts or STARTS,
        on_start=tell,
        executor=make_executor(),
    )
    report_figures({"target": target_name(request, robot), "reality": request.reality, **found.figures()}, json_path)
