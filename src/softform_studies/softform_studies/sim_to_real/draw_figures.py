"""What the realities of `measure_draws` say together: by which shares errors fall, and by kind of difference."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from softform_core.errors import SoftformError

MUCH_MISSING = 0.3
"""Share of the surface that scans lack, beyond which confidence has something to tell."""

Draw = dict[str, Any]


def draw_figures(draws: Sequence[Draw]) -> dict[str, Any]:
    """Shares by which the mean error and each shape's largest error fall.

    Args:
        draws: From `measure_draws`; those that failed do not count.

    Returns:
        JSON-ready: `draws`, their number; `mean_reduction` and `max_reduction`, each as `median`, `p10` (10th
        percentile) and `worst`; `fixed_confidence`, all that with w_c = 1, of robots that are scanned;
        `without_prior`, all that without the robot's displacement prior, if it has one, and of how many realities the
        errors then are larger; `missing` and `memory_floor_mm`, medians; `left_out`, number of frames that were found
        unfit and not learned from; `before` and `after`, `mean_mm` and `max_mm`, and `floors`, by name, also the cuts
        that they would be, medians; `by_kind`, all medians over the realities that differ in a field.

    Raises:
        SoftformError: If no reality was measured.
    """
    measured = [draw for draw in draws if "error" not in draw]
    if not measured:
        raise SoftformError("No reality could be measured.", "Look at the reasons above.")
    kinds = {kind: [draw for draw in measured if kind in draw["kinds"]] for kind in _kinds(measured)}
    kinds[f"missing_above_{MUCH_MISSING:g}"] = [draw for draw in measured if draw["missing"] > MUCH_MISSING]
    kinds["no_memory"] = [draw for draw in measured if not draw["memory"]["mean_mm"]]
    without: dict[str, Any] = {}
    if all("without_prior" in draw for draw in measured):
        larger = {f"{error}_larger": _larger(measured, f"{error}_mm") for error in ("mean", "max")}
        without = {"without_prior": _cuts(measured, "without_prior", _spread) | larger}
    return {
        "draws": len(measured),
        **_cuts(measured, "after", _spread),
        **_fixed(measured, _spread),
        **without,
        "missing": _median([draw["missing"] for draw in measured]),
        "left_out": sum(draw["left_out"] for draw in measured),
        "memory_floor_mm": _median([draw["memory"]["mean_mm"] for draw in measured]),
        **{what: _errors(measured, what) for what in ("before", "after")},
        "floors": _floors(measured),
        "by_kind": {
            kind: {
                "draws": len(those),
                **_cuts(those, "after", _median),
                **_fixed(those, _median),
            }
            for kind, those in kinds.items()
            if those
        },
    }


def _fixed(draws: Sequence[Draw], say: Callable[[list[float]], Any]) -> dict[str, Any]:
    """Cuts with w_c = 1; markers have no other."""
    return {"fixed_confidence": _cuts(draws, "fixed", say)} if all("fixed" in draw for draw in draws) else {}


def _errors(draws: Sequence[Draw], what: str) -> dict[str, float]:
    return {error: _median([draw[what][error] for draw in draws]) for error in ("mean_mm", "max_mm")}


def _larger(draws: Sequence[Draw], error: str) -> int:
    """How many of the realities are learned worse without the prior."""
    return sum(draw["without_prior"][error] > draw["after"][error] for draw in draws)


def _floors(draws: Sequence[Draw]) -> dict[str, dict[str, float]]:
    """Medians of errors and of the cuts that they would be, of memory and of what `reality_floors` measures."""
    cuts = {
        f"{error}_reduction": _median(
            [1.0 - draw["memory"][f"{error}_mm"] / draw["before"][f"{error}_mm"] for draw in draws]
        )
        for error in ("mean", "max")
    }
    found = {"memory": _errors(draws, "memory") | cuts}
    for name in draws[0]["floors"]:
        each = [draw["floors"][name] for draw in draws]
        found[name] = {figure: _median([one[figure] for one in each]) for figure in each[0]}
    return found


def _kinds(draws: Sequence[Draw]) -> list[str]:
    return sorted({kind for draw in draws for kind in draw["kinds"]})


def _cuts(draws: Sequence[Draw], learner: str, say: Callable[[list[float]], Any]) -> dict[str, Any]:
    """What `say` makes of the cuts of a learner in each of the realities."""

    def cut(error: str) -> Any:
        pairs = [[draw[what][f"{error}_mm"] for what in ("before", learner)] for draw in draws]
        return say([(before - after) / before for before, after in pairs])

    return {"mean_reduction": cut("mean"), "max_reduction": cut("max")}


def _median(values: list[float]) -> float:
    return round(float(np.median(values)), 4)


def _spread(values: list[float]) -> dict[str, float]:
    worst_tenth = float(np.percentile(values, 10))
    return {"median": _median(values), "p10": round(worst_tenth, 4), "worst": round(min(values), 4)}
