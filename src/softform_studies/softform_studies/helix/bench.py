"""`softform bench helix`: how fast and how well physics alone leads an arm of nine cables, and how far off it is."""

from collections.abc import Callable

import numpy as np

from softform_core.robots import load_robot
from softform_rig.reality import load_reality
from softform_studies.helix.arms import RATE, LedArm, RealArm
from softform_studies.helix.experiments import (
    BALLOON,
    CIRCLES,
    Tracked,
    circle,
    converged,
    dragged_by_two_hands,
    drags,
    jumps,
    out_of_reach,
    pop,
    tracked,
    two_hands,
)
from softform_studies.helix.poses import posed

_FAST = 0.5
"""Of the fast circle, m/s."""
_LOOKS, _BALLOONS = 48, 8
_BEYOND = np.array(
    [
        [1.44, 0.0, 0.0],
        [0.0, 0.0, 1.44],
        [1.0, 0.55, 1.0],
        [0.5, 0.33, 0.94],
        [-1.0, 0.22, 0.44],
        [0.0, -1.33, 0.67],
        [2.2, -2.2, 1.1],
        [-0.89, -0.56, -0.22],
        [0.0, 0.67, -0.33],
        [0.1, 0.1, -0.5],
    ]
)
"""Out of reach, over the arm's length: to its sides, below it, and the last three above its base."""


def helix(
    name: str, reality_name: str, turns: float, actuations: int, seed: int, say: Callable[[str], None]
) -> dict[str, object]:
    """Figures of all experiments; processor time, one thread.

    Raises:
        SoftformError: If the robot has no tracker, or its reality no equilibrium.
    """
    robot = load_robot(name)
    reality = load_reality(reality_name, robot)
    arm, length = LedArm(robot), robot.body.size
    say(f"{robot.title}: {len(arm.robot.actuators)} cables")

    def real() -> RealArm:
        return RealArm(robot, reality, seed)

    round_trip = circle(length, turns=turns)
    every = max(1, len(round_trip) // _LOOKS)
    free = tracked(arm, round_trip, every, real())
    milliseconds = 1e3 * np.array([tick.seconds for tick in free.ticks])
    say(f"circle: {np.percentile(milliseconds, 50):.1f} ms a tick, {free.model_mm.mean():.3f} mm off in the model")
    arm.begin()
    closed = tracked(arm, round_trip, every, real(), closed=True)
    say(f"  against the reality {free.real_mm.mean():.1f} mm, by its marker {closed.real_mm.mean():.1f} mm")
    others = {}
    for radius, depth in CIRCLES[1:]:
        arm.begin()
        other = tracked(arm, circle(length, turns=turns, radius=radius, depth=depth), every, real(), closed=True)
        others[f"r{radius:g}_d{depth:g}"] = told(other, length)
        say(f"  of {radius:g} of the length, {depth:g} below the base, by its marker: {other.real_mm.mean():.1f} mm")
    arm.begin()
    fast = tracked(arm, circle(length, speed=_FAST / (length / 6.0)), 4)
    say(f"fast circle: {fast.model_mm.mean():.2f} mm")
    arm.begin()
    pulled = drags(length, 8, seed)
    dragged = tracked(arm, pulled, 5, real(), closed=True)
    say(f"drags: {dragged.model_mm.mean():.1f} mm in the model, {dragged.real_mm.mean():.1f} mm against the reality")
    arm.begin()
    held = dragged_by_two_hands(arm, two_hands(length, 8, seed), 15, real())
    say(f"two hands: {held.model_mm:.1f} mm in the model, all of the reality {held.node_mm:.1f} mm from it")
    poses = posed(arm, real)
    for pose in poses:
        say(pose.told())
    places, popped = drags(length, _BALLOONS, seed + 2, move=1.0 / RATE, hold=0.0), []
    for place in places:
        arm.begin()
        popped.append(pop(arm, real(), place, 5))
    hit = [balloon for balloon in popped if not np.isnan(balloon.seconds)]
    say(f"balloons of {1e3 * BALLOON:.0f} mm: {len(hit)} of {len(popped)} popped")
    arm.begin()
    after = jumps(arm, 8, seed)
    say(f"jumps: {after.max():.4f} mm after 1 s")
    beyond = []
    for place in _BEYOND * length:
        arm.begin()
        beyond.append(out_of_reach(arm, place))
        say(f"out of reach at {place.round(2).tolist()}: {beyond[-1]}")
    share = converged(robot, actuations, seed)
    every_tick = [tick for run in (free, closed, fast, dragged) for tick in run.ticks]
    all_ms = 1e3 * np.array([tick.seconds for tick in every_tick])
    return {
        "robot": robot.name,
        "reality": reality.name,
        "tick_ms_p50": float(np.percentile(all_ms, 50)),
        "tick_ms_p95": float(np.percentile(all_ms, 95)),
        "factors_per_tick": float(np.mean([tick.factors for tick in every_tick])),
        "circle_model_mm": float(free.model_mm.max()),
        "circle_gap_mm": max(tick.gap_mm for tick in free.ticks),
        "fast_circle_model_mm": float(fast.model_mm.mean()),
        "circle_reality_open_share": float(free.real_mm.mean()) / (1e3 * length),
        "circle_reality_share": float(closed.real_mm.mean()) / (1e3 * length),
        "drag_model_share": float(dragged.model_mm.mean()) / (1e3 * length),
        "drag_reality_share": float(dragged.real_mm.mean()) / (1e3 * length),
        "parts": {"circle": told(free, length), "circle_closed": told(closed, length), "drags": told(dragged, length)},
        "other_circles": others,
        "two_hands": {"model_mm": held.model_mm, "nodes_share": held.node_mm / (1e3 * length)},
        "poses": {
            one.pose.name: {
                "iou": one.iou,
                "missed_mm": one.missed_mm,
                "nodes_mean_mm": float(one.node_mm.mean()),
                "nodes_max_mm": float(one.node_mm.max()),
            }
            for one in poses
        },
        "iou_least": min(one.iou for one in poses),
        "nodes_share": float(np.mean([one.node_mm.mean() for one in poses])) / (1e3 * length),
        "balloons": len(popped),
        "balloon_mm": 1e3 * BALLOON,
        "balloons_popped": len(hit),
        "balloon_s": float(np.median([one.seconds for one in hit])) if hit else None,
        "balloon_missed_mm": float(np.mean([one.missed_mm for one in popped])),
        "jump_mm_after_1_s": float(after.max()),
        "unreachable_settled": all(one.settled for one in beyond),
        "unreachable_settled_share": float(np.mean([one.settled for one in beyond])),
        "unreachable_over_best": max(one.over_best for one in beyond),
        "unreachable_gap_mm": max(one.gap_mm for one in beyond),
        "converged_share": share,
        "actuations": actuations,
        "seed": seed,
    }


def told(run: Tracked, length: float) -> dict[str, float]:
    """Means of a run over the length of the arm: of the whole error, and of its parts apart."""
    parts = {"whole": run.real_mm, "ik": run.model_mm, "lag": run.lag_mm, "sim_to_real": run.sim_to_real_mm}
    return {name: float(values.mean()) / (1e3 * length) for name, values in parts.items()}
