"""`softform bench foreign`: what was measured on robots of others, foretold.

The tentacle: each model learns from some poses and is judged by the tip in others, in three splits: every pose left out
in turn, those under two tensions foretold from those under one, and the two that the authors' network had not seen
foretold from the other 20. Whatever a model chooses, it chooses by the poses that it learns from.
"""

from collections.abc import Callable
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from softform_core.arrays import Array
from softform_core.units import MM_PER_M
from softform_studies.foreign.identification import CANDIDATES, RIGID, identify
from softform_studies.foreign.tentacle_poses import Poses, read_poses
from softform_studies.foreign.tentacle_rod import PRIORS

Predictor = Callable[[Poses, Poses], Array]
"""Tips (m, 3) m of the second poses, whose markers it does not look at, learned from the first ones."""

PRINTED = {"identified_22_poses": 28.4, "network_2_poses_not_seen": 10.0}
"""Mean tip errors of the authors' models, mm, see `tentacle/README.md`."""

SPARED = ("m1_u015.csv", "m12_u001002.csv")
"""Poses that the authors' network had not seen."""

_TWO = ("log_modulus", "log_tension")


def foreign(report: Callable[[str], None]) -> dict[str, Any]:
    """Judge all models on the tentacle.

    Args:
        report: Called with a line when a model was judged.

    Returns:
        JSON-ready figures; lengths in mm.

    Raises:
        SoftformError: If the rod of a model finds no equilibrium.
    """
    poses = read_poses()
    rows = {}
    for name, predict in MODELS.items():
        rows[name] = judged(poses, predict)
        report(f"tentacle, {name}: " + ", ".join(f"{key} {value:.1f}" for key, value in rows[name].items()))
    best = rows["rod_and_process"]
    return {"tentacle": {**best, "poses": len(poses), "models": rows, "printed": PRINTED}}


def judged(poses: Poses, predict: Predictor) -> dict[str, float]:
    """Return the tip errors of a model, mm: means of all splits, and medians and largest ones of the first."""
    each = np.arange(len(poses))
    alone = np.concatenate([_tip_errors(predict, poses.part(each != one), poses.part(each == one)) for one in each])
    both = _tip_errors(predict, poses.part(~poses.pulls_both), poses.part(poses.pulls_both))
    spared = np.isin(poses.names, SPARED)
    two = _tip_errors(predict, poses.part(~spared), poses.part(spared))
    return {
        "leave_one_out_tip_mm": round(float(alone.mean()), 2),
        "leave_one_out_tip_median_mm": round(float(np.median(alone)), 2),
        "leave_one_out_tip_max_mm": round(float(alone.max()), 2),
        "two_tendon_tip_mm": round(float(both.mean()), 2),
        "authors_split_tip_mm": round(float(two.mean()), 2),
    }


def _tip_errors(predict: Predictor, known: Poses, asked: Poses) -> Array:
    return MM_PER_M * np.asarray(np.linalg.norm(predict(known, asked) - asked.markers[:, -1], axis=1))


def _mean_pose(known: Poses, asked: Poses) -> Array:
    return np.tile(known.markers[:, -1].mean(axis=0), (len(asked), 1))


def _nearest(known: Poses, asked: Poses) -> Array:
    apart = np.linalg.norm(asked.tensions[:, None] - known.tensions, axis=2)
    return np.asarray(known.markers[apart.argmin(axis=1), -1])


def _polynomial(degree: int) -> Predictor:
    """Return least squares in monomials of both tensions; of those that the poses do not tell apart, the least."""
    exponents = [chosen for order in range(degree + 1) for chosen in combinations_with_replacement(range(2), order)]

    def monomials(poses: Poses) -> Array:
        return np.stack([np.prod(poses.tensions[:, list(chosen)], axis=1) for chosen in exponents], axis=1)

    def predict(known: Poses, asked: Poses) -> Array:
        weights = np.linalg.lstsq(monomials(known), known.markers[:, -1], rcond=None)[0]
        return np.asarray(monomials(asked) @ weights)

    return predict


MODELS: dict[str, Predictor] = {
    "mean_pose": _mean_pose,
    "nearest_tension": _nearest,
    **{name: _polynomial(degree) for degree, name in enumerate(("linear", "quadratic", "cubic"), 1)},
    "rod_two_parameters": lambda known, asked: identify(known, _TWO, [RIGID]).predict(asked)[:, -1],
    "rod": lambda known, asked: identify(known, list(PRIORS), [RIGID]).predict(asked)[:, -1],
    "rod_and_process": lambda known, asked: identify(known, list(PRIORS), CANDIDATES).predict(asked)[:, -1],
}
"""Every model that is judged; the last one is ours."""
