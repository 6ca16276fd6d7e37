"""Figs. 21 and 22 of paper 003: a bar of PLA is bent under three limits of the stress guard."""

from collections.abc import Callable
from typing import Any

import numpy as np

from softform_shaping.controllers import Task
from softform_shaping.ours import Ours, OursController
from softform_shaping.plastic_object import PlasticObject
from softform_shaping.preparation import prepared
from softform_shaping.scene import make_scene
from softform_shaping.session import Iteration, shape_object

__all__ = ["stress"]

_OBJECT, _MOST = "pla_bar", 30
_BENT = np.array([0.0, 0.006, 0.0085, -0.85, 0.0, 0.0, 0.0, 0.006, -0.0085, 0.85, 0.0, 0.0])
"""Poses of the target, beyond what the bar bears."""
_CASES = {"elastic": 0.9, "plastic": 2.0, "none": np.inf}
"""Limits of the guard over the yield stress: as the paper has them, within elasticity, beyond it, and none."""
_YIELDED = 1e-6


def stress(seeds: range, say: Callable[[str], None]) -> dict[str, Any]:
    """Bend the bar towards the same target under each limit, and let go; JSON-ready figures."""
    described, model, visual = prepared(_OBJECT)
    assert described.yield_stress is not None
    found: dict[str, Any] = {}
    for name, share in _CASES.items():
        limit = share * described.yield_stress
        scene = make_scene(described, model, seeds[0])
        truth = scene.truth
        assert isinstance(truth, PlasticObject)
        seen: list[float] = []

        def watch(one: Iteration, truth: PlasticObject = truth, seen: list[float] = seen) -> None:
            seen.append(truth.stress)

        task = Task(model, visual, model.shape(_BENT).nodes)
        shaped = shape_object(OursController(task, Ours()), scene, _MOST, limit, watch)
        figures: dict[str, Any] = {
            "limit_mpa": _mega(limit) if np.isfinite(limit) else None,
            "most_model_mpa": _mega(max((one.stress for one in shaped.iterations), default=0.0)),
            "most_true_mpa": _mega(max(seen, default=0.0)),
            "plastic_strain": round(truth.plastic_strain, 5),
            "broke": truth.is_broken,
            "iterations": len(shaped.iterations),
            "ended": shaped.ended,
        }
        if not truth.is_broken:
            figures["left_over_mm"], figures["left_over_rad"] = (round(one, 4) for one in truth.left_over())
        figures["became"] = _word(truth)
        figures["above_limit"] = bool(max((one.stress for one in shaped.iterations), default=0.0) > limit)
        found[name] = figures
        say(f"limit {name}: {figures}")
    return {
        "object": _OBJECT,
        "yield_mpa": _mega(described.yield_stress),
        "cases": found,
        "paper": {"elastic": "springs back", "plastic": "stays bent", "none": "breaks"},
    }


def _mega(pascal: float) -> float:
    return round(1e-6 * pascal, 2)


def _word(truth: PlasticObject) -> str:
    if truth.is_broken:
        return "broken"
    return "plastic" if truth.plastic_strain > _YIELDED else "elastic"
