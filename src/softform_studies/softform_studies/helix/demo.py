"""The demo of an arm with cables: circle, abrupt drags and poses, led by physics, against a reality.

It leads the reality itself, without the stack: what it shows is how far physics alone comes, and what a marker at the
tip adds.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from softform_core.robots import load_robot
from softform_core.run_folder import new_run_folder
from softform_core.units import MM_PER_M
from softform_rig.reality import load_reality
from softform_studies.helix.arms import RATE, LedArm, RealArm
from softform_studies.helix.experiments import Tracked, circle, drags, tracked
from softform_studies.helix.poses import Posed, posed
from softform_studies.helix.report import draw_report

__all__ = ["Shown", "show"]

_TURNS, _SAMPLES, _DRAGS = 0.25, 24, 4
"""Of the circle, places at which a marker is looked at, and drags: some minutes."""


@dataclass(frozen=True, eq=False)
class Shown:
    """What the demo found.

    Attributes:
        report: Picture.
        runs: Runs by name.
        poses: Poses by physics alone.
        length: Of the arm, m.
    """

    report: Path
    runs: dict[str, Tracked]
    poses: list[Posed]
    length: float

    def figures(self) -> dict[str, object]:
        """Means as what JSON can hold."""
        milliseconds = [1e3 * tick.seconds for run in self.runs.values() for tick in run.ticks]
        size = MM_PER_M * self.length
        return {
            "tick_ms_p50": float(np.percentile(milliseconds, 50)),
            "tick_ms_p95": float(np.percentile(milliseconds, 95)),
            "model_mm": {name: float(run.model_mm.mean()) for name, run in self.runs.items()},
            "reality_share": {name: float(run.real_mm.mean()) / size for name, run in self.runs.items()},
            "poses_iou": {one.pose.name: one.iou for one in self.poses},
            "poses_nodes_mm": {one.pose.name: float(one.node_mm.mean()) for one in self.poses},
            "report": str(self.report),
        }


def show(robot_name: str, reality_name: str, seed: int, say: Callable[[str], None]) -> Iterator[Shown]:
    """Yield what the demo found, once its report is written; `say` takes progress.

    Raises:
        SoftformError: If the robot's simulator cannot be tracked, or its reality finds no equilibrium.
    """
    robot = load_robot(robot_name)
    reality = load_reality(reality_name, robot)
    say(f"robot '{robot.name}', reality '{reality.name}', by its finite-element model; without the ROS stack")
    arm, length = LedArm(robot), robot.body.size
    round_trip = circle(length, turns=_TURNS)
    every = max(1, len(round_trip) // _SAMPLES)
    plan = {
        "circle, by physics alone": (round_trip, every, False),
        "circle, by its marker": (round_trip, every, True),
        "drags, by its marker": (drags(length, _DRAGS, seed), round(RATE / 6.0), True),
    }
    runs: dict[str, Tracked] = {}
    for name, (targets, often, closed) in plan.items():
        arm.begin()
        runs[name] = tracked(arm, targets, often, RealArm(robot, reality, seed), closed)
        milliseconds = 1e3 * float(np.median([tick.seconds for tick in runs[name].ticks]))
        say(f"{name}: {runs[name].real_mm.mean():.1f} mm off in the mean, {milliseconds:.0f} ms a tick")
    poses = posed(arm, lambda: RealArm(robot, reality, seed))
    for pose in poses:
        say(pose.told())
    report = new_run_folder("demo") / "report.png"
    draw_report(report, runs, poses, length)
    say(f"report: {report}")
    yield Shown(report, runs, poses, length)
