"""How much of what realities remember is learned: by one play, and by the memory of `training.memory_model`.

Realities are drawn; no learner is told by which law they remember, but two of three follow plays, the learner's own
family, so that figures are also told by law. Of each it is seen first what its body feels under a row of random
commands, which costs no solve of a body: commands are corrected so that they explain what was felt, with noise, at the
first of them, and judged at the others. With surfaces, sim-to-real learning is told the commands in their order, or not
(memory-free), or else what the body felt in their place, which is the most that a memory can be worth.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.executors import Executor
from softform_core.forward.memory import NO_MEMORY, Commands, Memory, PrandtlIshlinskii
from softform_core.kept import Ledger
from softform_core.robots import Robot
from softform_core.stores.past import pasts
from softform_core.threads import one_thread
from softform_core.training.actuation_fit import UNKNOWN
from softform_core.training.actuation_model import ActuationModel, PerceptronModel, QuadraticMisfit
from softform_core.training.memory_model import RememberingModel
from softform_core.training.recipe import DEFAULT
from softform_rig.draw_reality import draw_reality
from softform_rig.gap import random_actuations
from softform_rig.live_body import HELD_S
from softform_rig.reality import Reality, SettledDevices, memory_of
from softform_studies.sim_to_real.judge import Judge
from softform_studies.sim_to_real.learners import Learners, recipe_for
from softform_studies.sim_to_real.make_frames import make_captured

_NOISE = 0.01
"""Standard deviation of what is seen of each felt value, over half the range: what a frame of scans tells."""
_WIDTHS = np.linspace(0.0, 0.2, 41)
"""Widths of one play that are tried, over half the range."""
_JUDGED = 60
_VERSION = 2
"""Of what is measured: what was kept of another one does not count."""
_MOVES = 20
"""Moves to wanted actuations that are judged."""
_ROUNDS = 20
_INWARD = 0.8
"""Share of the range, about its middle, in which they lie: through the state a command goes beyond what is wanted."""

Found = dict[str, Any]


@dataclass(frozen=True)
class RememberedSettings:
    """Numbers of frames to learn from, of held-out actuations, of points of a scan; whether surfaces are learned."""

    frames: int
    held_out: int
    points: int
    surfaces: bool


def felt_actuations(robot: Robot, reality: Reality, commanded: Array) -> Array:
    """Return the actuations that a reality's body feels under commanded ones, one after the other from rest, (n, m)."""
    devices, memory = SettledDevices(reality, robot), memory_of(reality, robot)
    rows = [memory.feel(devices.settle(one, HELD_S), HELD_S) for one in robot.actuators_of(commanded)]
    return robot.actuation_of(np.array(rows))


def felt_errors(robot: Robot, reality: Reality, frames: int, seed: int) -> tuple[dict[str, float], dict[str, float]]:
    """Return root mean squares of what is left of what is felt, over half the range: by nothing, one play, and ours.

    And the same of what is wanted after one move, commanded memory-free and through the state, by ours.
    """
    commanded = random_actuations(robot, frames + _JUDGED, seed)
    middle, half = (0.5 * (robot.actuation_max + sign * robot.actuation_min) for sign in (1.0, -1.0))
    felt = felt_actuations(robot, reality, commanded) / half
    seen = felt[:frames] + _NOISE * np.random.default_rng([seed, 5]).standard_normal((frames, len(half)))
    past = pasts(commanded, robot.rest_actuation)
    k = len(half)
    affine = np.concatenate([np.full(k, UNKNOWN[1]), np.diag(np.full(k, UNKNOWN[0])).ravel()])

    def fitted(model_of: Callable[[Array, Array], ActuationModel], expected: Array) -> tuple[float, float, Array]:
        """What is left at the frames, as likelihood has it, and at the others; and the unknowns."""
        nothing, n = np.zeros(0), frames
        still = np.zeros((n, k)), nothing, np.broadcast_to(np.eye(k), (n, k, k)) / _NOISE**2, np.zeros((n, k))
        told = QuadraticMisfit(seen, *still[1:], np.zeros((n, k, 0)), np.zeros((0, 0)), nothing)
        model = model_of(commanded[:n], past[:n])
        unknowns, _, misfit = model.improved(np.zeros(len(expected)), nothing, told, expected, nothing)
        left = model_of(commanded[n:], past[n:]).effective(unknowns) - felt[n:]
        return misfit, float(np.sqrt(np.square(left).mean())), unknowns

    def played(width: float, at: Array, before: Array) -> PerceptronModel:
        play = PrandtlIshlinskii.play(width * half)
        return PerceptronModel(play.effective_after(before, at), middle, half)

    def remembering(at: Array, before: Array) -> RememberingModel:
        return RememberingModel.of(PerceptronModel(at, middle, half), before)

    plays = [fitted(partial(played, width), affine) for width in _WIDTHS]
    learned = fitted(remembering, remembering(commanded[:1], past[:1]).expected(affine))
    told = {"memory_free": plays[0][1], "one_play": min(plays)[1], "learned": learned[1]}
    model = remembering(commanded[:1], past[:1])
    of_behind, memory = model.parts(learned[2])[0], model.memory(learned[2]) or NO_MEMORY
    wanted = middle + _INWARD * (random_actuations(robot, _MOVES, seed + 1) - middle)
    moved = {
        name: _off_after_moves(robot, reality, commanded[:frames], wanted, correction, remembered)
        for name, correction, remembered in (
            ("memory_free", partial(_felt_behind, middle, half, plays[0][2]), NO_MEMORY),
            ("state", partial(_felt_behind, middle, half, of_behind), memory),
        )
    }
    return told, moved


def _felt_behind(middle: Array, half: Array, unknowns: Array, actuation: Array) -> Array:
    """Return what is felt (m,) of an actuation (m,) that the memory leaves."""
    return half * PerceptronModel(actuation[None], middle, half).effective(unknowns)[0]


def _off_after_moves(
    robot: Robot, reality: Reality, before: Array, wanted: Array, correction: Callable[[Array], Array], memory: Memory
) -> float:
    """Return the root mean square, over half the range, of what is felt beside what is wanted, move after move.

    Args:
        robot: The robot.
        reality: Its body.
        before: (n, m) what was commanded before.
        wanted: (w, m), one after the other, each in one move.
        correction: What is felt of what the memory leaves.
        memory: What the commands count with.
    """
    devices, body = SettledDevices(reality, robot), memory_of(reality, robot)
    low, high = robot.actuation_min, robot.actuation_max
    half = 0.5 * (high - low)

    def felt(commanded: Array) -> Array:
        return robot.actuation_of(body.feel(devices.settle(robot.actuators_of(commanded), HELD_S), HELD_S))

    rest = robot.rest_actuation
    state = rest if memory is NO_MEMORY else cast(PrandtlIshlinskii, memory).at_rest(rest)
    commands = Commands(memory, state, (low, high))
    for one in before:
        felt(one)
        commands.state = memory.advance(commands.state, one)
    off = []
    for one in wanted:
        left = one
        for _ in range(_ROUNDS):  # the inverse of a correction that is near the identity
            left = left + (one - correction(left))
        off.append((felt(commands.command(left)) - one) / half)
    return float(np.sqrt(np.square(off).mean()))


def measure_remembered(
    robot: Robot,
    seeds: Sequence[int],
    settings: RememberedSettings,
    folder: Path,
    executor: Executor,
    say: Callable[[str], None],
) -> list[Found]:
    """Measure drawn realities; those that `folder` holds with the same settings are not measured again.

    Raises:
        SoftformError: If N_fk is missing, the folder cannot be used, or a worker is lost.
    """
    learners, ledger = Learners.of(robot, 0), Ledger(folder / "remembered.jsonl")
    realities = {seed: draw_reality(robot, seed) for seed in seeds}
    common = {**learners.identity, **asdict(settings), "version": _VERSION}
    keys = {seed: {**common, "seed": seed, "reality": one.model_dump(mode="json")} for seed, one in realities.items()}
    found = {seed: kept for seed, key in keys.items() if (kept := ledger.find(key)) is not None}
    missing = [seed for seed in seeds if "error" in found.get(seed, {"error": ""})]
    for seed, one in executor.run(partial(_measurer, robot, learners, settings), missing):
        say(f"  {realities[seed].name}: {one}")
        ledger.keep(keys[seed], one)
        found[seed] = one
    return [{"seed": seed, **found[seed]} for seed in seeds]


def _measurer(robot: Robot, learners: Learners, settings: RememberedSettings) -> Callable[[int], tuple[int, Found]]:
    def measure(seed: int) -> tuple[int, Found]:
        reality = draw_reality(robot, seed)
        felt, moved = felt_errors(robot, reality, settings.frames, seed)
        found: Found = {"law": law_of(reality), "felt": felt, "one_move": moved}
        try:
            with one_thread():
                if settings.surfaces:
                    found |= _surfaces(robot, replace(learners, seed=seed), reality, settings)
        except SoftformError as error:
            found["error"] = str(error)
        return seed, found

    return measure


def law_of(reality: Reality) -> str:
    """Return how a reality's body and its sensors remember, in words."""
    law = reality.hysteresis
    hysteresis = "" if law == 0.0 else "play" if isinstance(law, float | list) else law.law
    creep = f"{len(reality.creep)} creep" + (" by Eyring" if any(one.overstress for one in reality.creep) else "")
    sensors = (reality.model_extra or {}).get("pressure_sensors")
    bent = "sensors" if sensors is not None and sensors.hysteresis else ""
    return ", ".join(filter(None, (hysteresis, creep if reality.creep else "", bent))) or "none"


def _surfaces(robot: Robot, learners: Learners, reality: Reality, settings: RememberedSettings) -> Found:
    """Return mean errors, mm: of N_fk alone, and learned without, with and as if told what is remembered."""
    sizes = settings.frames, settings.held_out, settings.points
    frames, held_out, _ = make_captured(robot, reality, *sizes, learners.seed)
    recipe = recipe_for(robot, DEFAULT)
    felt = felt_actuations(robot, reality, random_actuations(robot, settings.frames + settings.held_out, learners.seed))
    told = replace(frames, actuation=felt[: settings.frames], past=None)
    judge = Judge(robot, learners.forward_kinematics, held_out)
    knowing = replace(held_out, actuation=felt[settings.frames :])
    cases = {
        "memory_free": (replace(frames, past=None), judge),
        "learned": (frames, judge),
        "told": (told, Judge(robot, learners.forward_kinematics, knowing)),
    }
    found: Found = {"before_mm": round(judge.before.mean_mm, 4)}
    for name, (given, judged) in cases.items():
        fit, _ = learners.fit_frames(given, recipe)
        trained = learners.learn(fit, recipe)
        found[f"{name}_mm"] = round(judged.errors(judged.predicted(trained.sim_to_real)).mean_mm, 4)
    return found


def remembered_figures(draws: Sequence[Found]) -> dict[str, Any]:
    """Return medians over the draws, all of them and by law of hysteresis, and each draw; failed ones do not count.

    `closed` is the share of what lies between memory-free and told, over the draws in which a fifth or more of the
    memory-free error lies there.

    Raises:
        SoftformError: If no reality was measured.
    """
    measured = [draw for draw in draws if "error" not in draw]
    if not measured:
        raise SoftformError("No reality could be measured.", "Look at the reasons above.")
    by_law: dict[str, list[Found]] = {}
    for draw in measured:
        by_law.setdefault(hysteresis_of(draw["law"]), []).append(draw)
    figures: dict[str, Any] = {"draws": len(measured), "felt": _felt(measured), "one_move": _one_move(measured)}
    figures["felt_by_law"] = {law: {"draws": len(some), **_felt(some)} for law, some in sorted(by_law.items())}
    if all("before_mm" in draw for draw in measured):
        cuts = ("memory_free", "learned", "told")
        figures["mean_reduction"] = {
            name: _median([1.0 - draw[f"{name}_mm"] / draw["before_mm"] for draw in measured]) for name in cuts
        }
        gaps = [(draw["memory_free_mm"], draw["learned_mm"], draw["told_mm"]) for draw in measured]
        closed = [(free - ours) / (free - told) for free, ours, told in gaps if free - told >= 0.2 * free]
        figures["closed"] = {"draws": len(closed), "median": _median(closed) if closed else None}
    return {**figures, "each": list(draws)}


def hysteresis_of(law: str) -> str:
    """Return the law of hysteresis of what `law_of` says: `play`, `plays`, `bouc_wen`, or `none`."""
    return next((one for one in law.split(", ") if one in ("play", "plays", "bouc_wen")), "none")


def _felt(draws: Sequence[Found]) -> dict[str, float]:
    return {name: _median([draw["felt"][name] for draw in draws]) for name in ("memory_free", "one_play", "learned")}


def _one_move(draws: Sequence[Found]) -> dict[str, float]:
    """Medians after one move, and of the share by which the error falls, over draws that remember anything."""
    pairs = [draw["one_move"] for draw in draws if draw["law"] != "none"]
    falls = {"fall": _median([1.0 - one["state"] / one["memory_free"] for one in pairs])} if pairs else {}
    return {name: _median([one[name] for one in pairs]) for name in ("memory_free", "state") if pairs} | falls


def _median(values: list[float]) -> float:
    return round(float(np.median(values)), 5)
