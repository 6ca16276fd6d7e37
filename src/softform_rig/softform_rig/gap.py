"""How far a reality lies from the simulator: `python -m softform_rig.gap REALITY` prints it as JSON.

Both are solved at the same commanded actuation, uniformly random in the working range. The gap is the distance of each
simulated vertex to the reality's true surface.
"""

import json

import click
import numpy as np
import open3d
from open3d.core import Tensor

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.paths import DEFAULT_ROBOT
from softform_core.robots import Robot, load_robot
from softform_core.simulation.simulated_body import equilibrium_points
from softform_core.units import MM_PER_M
from softform_rig.live_body import LiveBody
from softform_rig.reality import Reality, load_reality


def random_actuations(robot: Robot, count: int, seed: int) -> Array:
    """Uniformly random actuations in the working range, (count, k)."""
    generator = np.random.default_rng(seed)
    return generator.uniform(robot.actuation_min, robot.actuation_max, (count, robot.degrees_of_freedom))


def measure_gap(robot: Robot, reality: Reality, count: int, seed: int = 0) -> Array:
    """Distances (count, V) m from the simulated vertices to the reality's surface at `count` random actuations.

    Raises:
        SoftformError: If an actuation has no equilibrium in the simulator or in the reality.
    """
    simulator = robot.body.simulator()
    live = LiveBody(robot, reality)
    distances = []
    for commanded in random_actuations(robot, count, seed):
        simulated = equilibrium_points(simulator, robot.actuators_of(commanded)[None])[0]
        real = live.commanded_shape(commanded)
        surface = open3d.t.geometry.RaycastingScene()
        surface.add_triangles(
            Tensor.from_numpy(real.astype(np.float32)), Tensor.from_numpy(live.faces.astype(np.uint32))
        )
        distances.append(surface.compute_distance(Tensor.from_numpy(simulated.astype(np.float32))).numpy())
    return np.array(distances)


@click.command()
@click.argument("reality")
@click.option("--robot", default=DEFAULT_ROBOT, show_default=True, help="Robot, by name or path.")
@click.option("--samples", default=20, show_default=True, help="Random actuations.")
@click.option("--seed", default=0, show_default=True, help="Seed of the actuations.")
def main(reality: str, robot: str, samples: int, seed: int) -> None:
    """Print mean and largest gap of REALITY (a name in config/realities or a file), mm, as JSON."""
    try:
        body = load_robot(robot, "surface")
        described = load_reality(reality, body)
        distances = MM_PER_M * measure_gap(body, described, samples, seed)
    except SoftformError as error:
        raise click.ClickException(str(error)) from error
    report = {
        "reality": described.name,
        "samples": samples,
        "seed": seed,
        "gap_mean_mm": round(float(distances.mean()), 3),
        "gap_max_mm": round(float(distances.max()), 3),
        "gap_mean_of_each_mm": [round(float(d), 2) for d in distances.mean(axis=1)],
    }
    click.echo(json.dumps(report))


if __name__ == "__main__":
    main()
