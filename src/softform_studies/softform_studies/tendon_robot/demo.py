"""The demo of a robot that remembers: targets for its tip, approached in several ways, and a report with its clouds.

It leads the rig's reality itself, many robots at once, without the stack: what it shows is what the way does to the
shape, and which way of approaching lets a closed loop converge.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from softform_core.arrays import Array
from softform_core.robots import load_robot
from softform_core.run_folder import new_run_folder
from softform_core.units import MM_PER_M
from softform_rig.reality import load_reality
from softform_studies.tendon_robot.approaches import APPROACHES, Approach, Robots, closed_loop, planned_tips
from softform_studies.tendon_robot.cameras import Cameras
from softform_studies.tendon_robot.configurations import check_tendons, nominal_configurations
from softform_studies.tendon_robot.execution import path_body
from softform_studies.tendon_robot.report import Pair, draw_report

TARGETS, ROUNDS = 24, 3
_BEST_ROUNDS = 8
"""Of the closed loop whose smallest error counts as the best that the tendons can do."""
_USUAL, _REMEMBERING = "default", "printed"
"""Reality that commands take if none is named, and the one that stands for it here: its shape depends on its path."""

Say = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Shown:
    """What the demo found.

    Attributes:
        report: Picture.
        errors: (rounds + 1, n) mm by approach: of the plan, and after each correction.
        best: (n,) mm, the least error that was found for each target.
        way: (n,) mm between the tips at one configuration by way of home and of another one.
    """

    report: Path
    errors: dict[Approach, Array]
    best: Array
    way: Array

    def figures(self) -> dict[str, object]:
        """Means as what JSON can hold."""
        return {
            "targets": len(self.best),
            "tip_by_way_mm": [float(self.way.mean()), float(self.way.std())],
            "mean_error_mm": {how: errors.mean(axis=1).tolist() for how, errors in self.errors.items()},
            "worse_than_begun": {how: int((errors[-1] > errors[0]).sum()) for how, errors in self.errors.items()},
            "best_fit_mm": float(self.best.mean()),
            "report": str(self.report),
        }


def show(robot_name: str, reality_name: str, seed: int, say: Say) -> Iterator[Shown]:
    """Yield what the demo found, once its report is written; `say` takes progress.

    Raises:
        SoftformError: If the robot has other tendons, its reality does not depend on its path, or nothing is found.
    """
    robot = load_robot(robot_name)
    check_tendons(robot)
    reality = load_reality(_REMEMBERING if reality_name == _USUAL else reality_name, robot)
    body, skin = path_body(robot, reality), robot.body.skin()
    say(f"robot '{robot.name}', reality '{reality.name}', whose shape depends on its path; without the ROS stack")
    random = np.random.default_rng(seed)
    nominal = nominal_configurations(robot)
    pairs = nominal[(nominal > 0.0).sum(axis=1) == 2]
    plans, priors = pairs[random.integers(len(pairs), size=(2, TARGETS))] * [[[0.8]], [[1.0]]]
    targets = planned_tips(robot.body.simulator(), robot, plans)[0]

    def see(tips: Array) -> Array:
        return tips + reality.motion_capture.noise * random.standard_normal(tips.shape)

    by_way, seen = {}, {}
    for way in ("home", "another"):
        robots = Robots(body, robot, reality, TARGETS)
        if way == "another":
            robots.go(priors)
        by_way[way] = robots.go(plans)
        seen[way] = body.stations(robots.unknowns)
    way = MM_PER_M * np.linalg.norm(by_way["home"] - by_way["another"], axis=1)
    say(f"by way of another configuration the tip ends {way.mean():.1f} +- {way.std():.1f} mm from where home leads it")
    errors: dict[Approach, Array] = {}
    best = np.full(TARGETS, np.inf)
    for how in APPROACHES:
        robots = Robots(body, robot, reality, TARGETS)
        robots.go(priors)
        rounds = _BEST_ROUNDS if how == "by_home" else ROUNDS
        found, _ = closed_loop(robots, plans, targets, how, rounds, see)
        best = np.minimum(best, found.min(axis=0))
        errors[how] = found[: ROUNDS + 1]
        means = ", then ".join(f"{one.mean():.1f}" for one in errors[how])
        say(f"closing the loop {how.replace('_', ' ')}: {means} mm")
    cameras, widest = Cameras(robot, skin.faces, seed, seed), int(way.argmax())
    clouds = {
        name: Pair(line[widest], cameras.cloud(skin.vertices(line[widest], directors[widest])))
        for name, (line, directors) in seen.items()
    }
    report = new_run_folder("demo") / "report.png"
    draw_report(report, clouds, float(way[widest]), errors, best, way)
    say(f"report: {report}")
    yield Shown(report, errors, best, way)
