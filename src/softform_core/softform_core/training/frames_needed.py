"""Estimate how many frames are worth capturing: held-out errors of models learned from parts of those at hand.

Errors fall as e(n) = a + b / n: b is what frames teach, a what they cannot (noise, memory of the material, the form of
the model). Frames are enough when twice as many would take off less than `PAYS` of the error.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.evaluation.captures import Capture
from softform_core.evaluation.comparison import PredictedSurface
from softform_core.evaluation.evaluate import SURFACE_POINTS, judge, mean_error
from softform_core.forward.robot_pipeline import pipeline_of
from softform_core.frames.frames import MarkerFrames
from softform_core.networks.mlp_weights import extract_mlp
from softform_core.networks.store import load_forward_kinematics
from softform_core.robots import Robot
from softform_core.threads import one_thread
from softform_core.training.displacement_prior import load_displacement_prior
from softform_core.training.ensemble import TrainingRun
from softform_core.training.marker_learning import MARKERS, train_sim_to_real_from_markers
from softform_core.training.recipe import DEFAULT
from softform_core.training.recorded_frames import read_recorded_frames
from softform_core.training.sim_to_real import train_sim_to_real
from softform_core.training.split import hold_out

PAYS = 0.05
"""Share of the error that a doubling of the frames must take off."""
_SMALLEST = 5
_PARTS = 3
"""Fewest models: from fewer, a curve of two numbers says nothing."""

Errors = Callable[[Sequence[int]], Array]
"""Maps numbers of frames to learn from to the mean error (h,) mm in each held-out frame."""


@dataclass(frozen=True)
class FramesNeeded:
    """Result of the estimate.

    Attributes:
        frames: Sizes of the parts that were learned from, rising.
        error_mm: Mean error on the held-out frames of the model of each.
        held_out: Number of the held-out frames.
        needed: Number of frames from which a doubling does not pay; None if no end is in sight.
        least: The same, the smallest of those found without one of the held-out frames each.
        most: And the largest; None as above.
    """

    frames: list[int]
    error_mm: list[float]
    held_out: int
    needed: int | None
    least: int | None
    most: int | None

    def as_dict(self) -> dict[str, Any]:
        """Return the result for programs."""
        return asdict(self) | {"enough": self.needed is not None and self.needed <= self.frames[-1]}

    @property
    def text(self) -> str:
        """Return the result for people."""
        measured = ", ".join(f"{n}: {error:.3f} mm" for n, error in zip(self.frames, self.error_mm, strict=True))
        said = f"Mean error on {self.held_out} held-out frames by frames learned from: {measured}."
        if self.needed is None:
            return f"{said} No end is in sight: capture twice as many, and ask again."
        spread = f" ({self.least} to {self.most or 'no end'} by which frames judge)"
        enough = "These are enough" if self.needed <= self.frames[-1] else "Capture more"
        return f"{said} From {self.needed} frames on{spread} a doubling takes off less than {PAYS:.0%}. {enough}."


def measure_frames_needed(robot: Robot, store: Path, seed: int, device: str = "cpu") -> FramesNeeded:
    """Learn from parts of a store by one member of the recipe each, judged by the frames that `train s2r` holds out.

    Raises:
        SoftformError: If the frames cannot be used, or are too few, or PyTorch cannot compute on the device.
    """
    weights = extract_mlp(load_forward_kinematics(robot)[0])
    recorded = read_recorded_frames(store, robot, weights, seed)
    used, held_out = hold_out(recorded.numbers)
    judging = [recorded.captures[place] for place in recorded.places(held_out)]
    grid = robot.patches.samples(SURFACE_POINTS)
    run = TrainingRun(
        seed, robot.patches, prior=load_displacement_prior(robot), alike=robot.alike_actuations, device=device
    )

    def errors(part: Sequence[int]) -> Array:
        frames = recorded.frames.part(recorded.places(part))
        if isinstance(frames, MarkerFrames):
            trained = train_sim_to_real_from_markers(weights, frames, replace(MARKERS, members=1), run)
        else:
            trained = train_sim_to_real(weights, frames, replace(DEFAULT, members=1), run)
        pipeline = pipeline_of(robot, weights, grid, trained.sim_to_real)

        def predict(capture: Capture) -> tuple[PredictedSurface, None]:
            return PredictedSurface.of(pipeline, capture.effective(trained.sim_to_real)), None

        return np.array([mean_error(judge(each, recorded.uv, predict)) for each in judging])

    with one_thread():
        return frames_needed(used, errors)


def frames_needed(used: Sequence[int], errors: Errors) -> FramesNeeded:
    """Learn from the first 5, 10, 20, … of the frames, in the order of their capture, and extrapolate.

    Raises:
        SoftformError: If there are too few frames.
    """
    sizes = _sizes(len(used))
    if len(sizes) < _PARTS:
        raise SoftformError(
            f"{len(used)} frames to learn from are too few to see where their errors go, {_SMALLEST * 4} are needed.",
            "Collect more into the same store: ./softform collect with --frames 24 goes on.",
        )
    found = np.array([errors(used[:size]) for size in sizes])
    judges = found.shape[1]
    whole = _enough(sizes, found.mean(axis=1))
    others = [_enough(sizes, np.delete(found, judge, axis=1).mean(axis=1)) for judge in range(judges)]
    known = [each for each in others if each is not None]
    return FramesNeeded(
        sizes,
        [round(float(error), 4) for error in found.mean(axis=1)],
        judges,
        whole,
        min(known, default=None),
        max(known, default=None) if len(known) == judges else None,
    )


def _sizes(frames: int) -> list[int]:
    """Return the sizes 5, 10, 20, … and all; none that is nearly all."""
    doubled = [_SMALLEST * 2**turn for turn in range(12)]
    return [size for size in doubled if 1.4 * size <= frames] + [frames]


def _enough(sizes: Sequence[int], error: Array) -> int | None:
    """Return the n at which e(n) - e(2n) = PAYS e(n), of a + b / n with both not below zero; None if a is zero."""
    design = np.column_stack([np.ones(len(sizes)), 1.0 / np.array(sizes, dtype=float)])
    a, b = np.linalg.lstsq(design, error, rcond=None)[0]
    if b <= 0.0:
        return sizes[0]
    if a <= 0.0:
        return None
    return max(sizes[0], math.ceil(b * (0.5 - PAYS) / (PAYS * a)))
