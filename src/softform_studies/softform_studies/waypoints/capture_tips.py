"""Captures tips of a robot on a reality, without ROS.

Example: `python -m softform_studies.waypoints.capture_tips --robot three_chamber`.

The body goes from one actuation to the next, so its hysteresis counts; the marker at its tip is seen with the noise of
motion capture, in the robot's frame.
"""

from datetime import UTC, datetime
from pathlib import Path

import click
import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.halton import halton_actuations
from softform_core.paths import data_dir
from softform_core.robots import TIP, Robot, load_robot
from softform_core.simulation.simulated_body import LinedBody
from softform_core.stores.past import pasts
from softform_core.training.tip_samples import CapturedLines, TipSamples, write_tip_samples
from softform_rig.live_body import LiveBody
from softform_rig.reality import Reality, load_reality

PAPER_SAMPLES = {"three_chamber": 343, "planar_fingers": 620}
"""Numbers of samples in the paper (Sec. III-D)."""


def tips_of_paper(robot: Robot) -> int:
    """Return as many tips as the paper took of a robot; 500 of one that it has not."""
    return PAPER_SAMPLES.get(robot.name, 500)


def real_tips(robot: Robot, live: LiveBody, actuations: Array, noise: float = 0.0, seed: int = 0) -> Array:
    """Return tips (n, d) m in the robot's frame, one actuation (n, m) Pa after the other.

    Args:
        robot: The robot.
        live: Body of the robot on a reality, with its history and that of its sensors.
        actuations: Commanded.
        noise: Standard deviation of a marker's coordinates, m.
        seed: Seed of the noise.

    Raises:
        SoftformError: If an actuation has no equilibrium in this reality.
    """
    tips, _ = _places(robot, live, actuations)
    return tips + noise * np.random.default_rng(seed).standard_normal(tips.shape)


def _places(robot: Robot, live: LiveBody, actuations: Array) -> tuple[Array, CapturedLines | None]:
    """Return the true tips (n, d) m, and the centre lines of a robot that learns its own."""
    tips, lines, tip_point = np.empty((len(actuations), robot.tip_dimensions)), [], live.simulated.frames[TIP]
    for tip, actuation in zip(tips, actuations, strict=True):
        tip[:] = live.commanded_shape(actuation)[tip_point, : robot.tip_dimensions]
        lines.append(live.centre_line())
    if not robot.learns_line or not isinstance(live.simulated, LinedBody):
        return tips, None
    return tips, CapturedLines(np.array(lines), np.asarray(live.simulated.along))


def capture_tips(robot: Robot, reality: Reality, samples: int, seed: int = 0) -> TipSamples:
    """Return tips captured one after the other from rest, at actuations spread over the working range.

    Of a robot that learns its centre line its nodes are captured, too, each with the noise of motion capture.

    Raises:
        SoftformError: If an actuation has no equilibrium in this reality.
    """
    actuations = halton_actuations(robot.actuation_min, robot.actuation_max, samples, seed)
    tips, lines = _places(robot, LiveBody(robot, reality), actuations)
    draw, noise = np.random.default_rng(seed).standard_normal, reality.motion_capture.noise
    tips = tips + noise * draw(tips.shape)
    if lines is not None:
        lines = lines._replace(nodes=lines.nodes + noise * draw(lines.nodes.shape))
    return TipSamples(actuations, tips, pasts(actuations, robot.rest_actuation), lines)


@click.command()
@click.option("--robot", "robot_name", default="three_chamber", show_default=True, help="Robot, by name or path.")
@click.option("--reality", "reality_name", default="default", show_default=True, help="In config/realities.")
@click.option("--samples", type=click.IntRange(min=1), help="Tips.  [default: as many as the paper took]")
@click.option("--output", type=click.Path(path_type=Path), help="Zarr store.  [default: data/ROBOT/tips.zarr]")
@click.option("--seed", default=0, show_default=True, help="Of actuations and noise.")
def main(robot_name: str, reality_name: str, samples: int | None, output: Path | None, seed: int) -> None:
    """Capture tips on the virtual rig's reality, from which `./softform train s2r` learns."""
    try:
        robot = load_robot(robot_name, "tip")
        reality = load_reality(reality_name, robot)
        path = data_dir() / robot.name / "tips.zarr" if output is None else output
        count = tips_of_paper(robot) if samples is None else samples
        captured = capture_tips(robot, reality, count, seed)
        provenance = {
            "source": f"reality '{reality.name}' by softform_studies.waypoints.capture_tips, seed {seed}",
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        write_tip_samples(path, robot, captured, provenance)
    except SoftformError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"{path}: {len(captured.tips)} tips.")


if __name__ == "__main__":
    main()
