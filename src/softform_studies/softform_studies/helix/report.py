"""The picture of the demo of an arm with cables: its tip's way, how far off model and reality are, and its poses."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from softform_core.evaluation.drawing import PALETTE
from softform_core.units import MM_PER_M
from softform_studies.helix.arms import RATE
from softform_studies.helix.experiments import Tracked
from softform_studies.helix.poses import Posed

__all__ = ["draw_report"]


_SEEN = np.array([[1.0, 1.0, 1.0], [0.12, 0.47, 0.71], [0.85, 0.37, 0.0], [0.35, 0.35, 0.35]])
"""Colours of background, model alone, reality alone, and both."""


def draw_report(path: Path, runs: Mapping[str, Tracked], poses: Sequence[Posed], length: float) -> None:
    """Draw the report.

    Args:
        path: Of the picture.
        runs: Runs by what they are called, each against a reality.
        poses: Poses of model and reality.
        length: Of the arm, m.
    """
    figure = Figure(figsize=(15.0, 9.4), dpi=110, layout="constrained")
    above, below = figure.subfigures(2, 1, squeeze=False, height_ratios=[1.25, 1.0])[:, 0]
    panels = above.add_gridspec(1, 3, width_ratios=[1.2, 1.1, 1.1])
    space = above.add_subplot(panels[0], projection="3d")
    errors, times = above.add_subplot(panels[1]), above.add_subplot(panels[2])
    for (name, run), colour in zip(runs.items(), PALETTE, strict=False):
        space.plot(*(MM_PER_M * run.targets[run.seen].T), color=colour, linestyle=":", linewidth=1.0)
        space.plot(*(MM_PER_M * run.real.T), "o-", markersize=2.5, linewidth=1.0, color=colour, label=name)
        share = 0.1 * run.real_mm / length
        errors.plot(run.seen / RATE, share, color=colour, label=f"{name}: {share.mean():.2f} % of the length")
        errors.plot(run.seen / RATE, 0.1 * run.model_mm / length, color=colour, linestyle=":", linewidth=1.0)
        milliseconds = np.sort([1e3 * tick.seconds for tick in run.ticks])
        times.plot(milliseconds, np.linspace(0.0, 1.0, len(milliseconds)), color=colour, label=name)
    space.invert_zaxis()  # it hangs
    space.set_aspect("equal")
    space.locator_params(nbins=4)
    space.set(xlabel="x (mm)", ylabel="y (mm)")
    space.set_title("Tip, mm, z downwards: wanted (dotted) and seen")
    space.legend(loc="upper left", fontsize="small")
    errors.axhline(1.8, color="black", linestyle="--", linewidth=0.8, label="paper 002, circle: 1.8 %")
    errors.set(xlabel="time (s)", ylabel="error of the tip (% of the length)", ylim=(0.0, None))
    errors.set_title("Against the reality; against the model (dotted)")
    errors.legend(loc="upper right")
    times.axvline(1e3 / RATE, color="black", linestyle="--", linewidth=0.8, label=f"{RATE:.0f} ticks a second")
    times.set(xlabel="processor time of a tick (ms)", ylabel="share of the ticks", ylim=(0.0, 1.0))
    times.set_title("Inverse kinematics on the finite-element model")
    times.legend()
    for number, pose in enumerate(poses):
        seen = below.add_subplot(1, len(poses), number + 1)
        seen.imshow(_SEEN[pose.model + 2 * pose.real])
        seen.set_axis_off()
        seen.set_title(
            f"{pose.pose.name}\noverlap {pose.iou:.2f}, nodes {pose.node_mm.mean():.0f} mm apart", size="medium"
        )
    below.suptitle("Poses from one side, by physics alone: model (blue), reality (orange), both (grey)")
    figure.savefig(path)
