"""Train a sim-to-real model from a store of captured frames, and judge it.

That is what `./softform train s2r` does, and `./softform refresh`.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from softform_core.errors import SoftformError
from softform_core.executors import Executor, InProcess
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.forward.rbf_warp import SimToReal
from softform_core.forward.sim_to_real_store import SIM_TO_REAL, SimToRealModel, load_sim_to_real
from softform_core.frames.frames import Frames, MarkerFrames
from softform_core.networks.card import ModelCard
from softform_core.networks.mlp_weights import MlpWeights, extract_mlp
from softform_core.networks.saved_network import export
from softform_core.networks.sim_to_real import ShapeInput
from softform_core.networks.sim_to_real_card import FramesUsed, HeldOutErrors, SurfaceSimToRealCard, Training
from softform_core.networks.store import load_forward_kinematics
from softform_core.robots import Robot
from softform_core.surface.patch_set import PatchSet
from softform_core.threads import one_thread
from softform_core.training.actuation_fit import AGED, fit_actuation
from softform_core.training.cards import make_sim_to_real_card, network_of
from softform_core.training.displacement_prior import load_displacement_prior
from softform_core.training.ensemble import TrainingRun
from softform_core.training.marker_learning import MARKER_RECIPES, train_sim_to_real_from_markers
from softform_core.training.recipe import DEFAULT, RECIPES, Recipe
from softform_core.training.recorded_frames import POINTS, RecordedFrames, held_out_errors, read_recorded_frames
from softform_core.training.sim_to_real import train_sim_to_real
from softform_core.training.split import hold_out
from softform_core.training.trained_sim_to_real import TrainedSimToReal

CANDIDATE = "candidate"
"""Folder beside a model that keeps a rejected new one."""

LEAST_USED = 4
"""Fewest frames to learn from."""

_ROUNDING = 1e-6
"""Relative difference between the errors of one model before and after it was written and read."""


@dataclass(frozen=True)
class LearnRequest:
    """Request for what is to be learned.

    Attributes:
        robot: Robot that was captured.
        store: Captured frames.
        recipe: Name; None for that of the earlier model, or the one that suits the frames.
        output: Folder of the model.
        seed: Seed of the drawn points, the folds and the first weights.
        goes_on: Whether to continue from the model in `output`.
        command: Command that repeats this training, for the card.
        refreshes: Instead: whether only gain and offset of the model in `output` are fitted to the frames.
        executor: Executor that trains the members of the ensemble.
        device: Device on which PyTorch computes in each of its workers; see `TrainingRun`.
    """

    robot: Robot
    store: Path
    recipe: str | None
    output: Path
    seed: int
    goes_on: bool
    command: str
    refreshes: bool = False
    executor: Executor = InProcess()
    device: str = "cpu"


@dataclass(frozen=True)
class Learned:
    """A model that has been judged and written.

    Attributes:
        card: Card of the model.
        folder: Folder of the model.
        rejection: Reason why it did not become the robot's model and lies aside; empty if it did.
        earlier_errors: Errors of the model that training started from, on the same held-out frames.
    """

    card: SurfaceSimToRealCard
    folder: Path
    rejection: str
    earlier_errors: HeldOutErrors | None


def learn_sim_to_real(request: LearnRequest, runs: Path, say: Callable[[str], None]) -> Learned:
    """Read the frames, hold some out, train on the others, judge, and write the model.

    `runs` holds checkpoints, from which the same call goes on after an interruption; `say` is called with each line of
    the progress report.

    Raises:
        SoftformError: If frames or models cannot be used, or there are too few frames.
    """
    robot = request.robot
    network, simulated_card = load_forward_kinematics(robot)
    weights = extract_mlp(network)
    earlier = _earlier(request, simulated_card, say)
    recorded = read_recorded_frames(request.store, robot, weights, request.seed)
    recipe = _recipe(request, recorded, None if earlier is None else earlier.card)
    used, held_out = _part(request, recorded, earlier)
    say(
        f"{len(recorded.captures)} frames of {request.store} ({recorded.origin['source']}, by "
        f"{recorded.origin['via']}): {len(used)} to learn from, {len(held_out)} held out "
        f"({', '.join(map(str, held_out))}), {len(recorded.left_out)} left out."
    )
    for number, reason in recorded.left_out.items():
        say(f"  frame {number} is left out: {reason}")
    if len(used) < LEAST_USED:
        raise SoftformError(
            f"{len(used)} frames are left to learn from, {LEAST_USED} are needed.",
            f"Collect more: ./softform collect --robot {robot.given_as} --frames {2 * (LEAST_USED + len(held_out))}",
        )
    recipe = replace(recipe, folds=min(recipe.folds, len(used)))
    with one_thread():
        trained = _train(request, weights, recorded, used, recipe, earlier, runs)
        flagged = {used[flag.frame]: flag.reason for flag in trained.flags}
        for number, reason in flagged.items():
            say(f"  look at frame {number}: {reason}")
        judged = [recorded.captures[place] for place in recorded.places(held_out)]
        errors = held_out_errors(robot, weights, trained, judged, recorded.uv)
        earlier_errors = None if earlier is None else held_out_errors(robot, weights, earlier, judged, recorded.uv)
    exported = export(network_of(robot, trained))
    card = make_sim_to_real_card(
        robot,
        simulated_card,
        trained,
        FramesUsed(
            store=recorded.store,
            **recorded.origin,
            used=used,
            held_out=held_out,
            left_out=recorded.left_out,
            flagged=flagged,
            points_per_frame=POINTS if recorded.uv is None else len(recorded.uv),
            coverage_mean=recorded.coverage,
        ),
        Training(
            recipe=recipe.name if earlier is None else earlier.card.training.recipe,
            seed=request.seed,
            best_epochs=trained.best_epochs,
            validation_mm=trained.validation_mm,
            seconds=round(trained.seconds, 1),
            threads=1,
            continues=None if earlier is None else earlier.card.weights_sha256,
        ),
        errors,
        exported,
        request.command,
    )
    rejection = _rejection(errors, earlier_errors)
    folder = request.output / CANDIDATE if rejection else request.output
    SIM_TO_REAL.save(folder, exported, card)
    return Learned(card, folder, rejection, earlier_errors)


def _earlier(request: LearnRequest, simulated: ModelCard, say: Callable[[str], None]) -> SimToRealModel | None:
    """Return the model to go on from, or to refresh; without either, what will be replaced is said."""
    if request.goes_on or request.refreshes:
        return load_sim_to_real(request.robot, request.output, simulated)
    if not (request.output / SIM_TO_REAL.card_file).exists():
        return None
    try:
        card = SIM_TO_REAL.read_card(request.output, request.robot)
    except SoftformError as error:
        say(f"The model in {request.output} will be replaced; it cannot be used: {error.message}")
        return None
    say(
        f"Model {card.weights_sha256[:12]} of {card.created} in {request.output} ({len(card.frames.used)} frames of "
        f"{card.frames.source}, {card.errors_mm.after_mean:.3f} mm) will be replaced. To go on from it: --continue"
    )
    return None


def _recipe(request: LearnRequest, recorded: RecordedFrames, earlier: SurfaceSimToRealCard | None) -> Recipe:
    recipes = RECIPES if recorded.uv is None else MARKER_RECIPES
    if request.refreshes:
        if recorded.uv is not None:
            raise SoftformError(
                f"{request.store} holds markers; a model is refreshed from scans.",
                f"Collect with --via scanner, or train anew: ./softform train s2r --robot {request.robot.given_as}",
            )
        return RECIPES["default"]  # its number of folds; nothing else is used
    name = request.recipe or (earlier.training.recipe if earlier is not None else next(iter(recipes)))
    if earlier is not None and name != earlier.training.recipe:
        raise SoftformError(
            f"The model was trained by recipe '{earlier.training.recipe}' and cannot go on by '{name}'.",
            "Leave --recipe out, or train without --continue.",
        )
    if name not in recipes:
        raise SoftformError(
            f"Recipe '{name}' cannot learn from frames by {recorded.origin['via']}.", f"Choose: {', '.join(recipes)}."
        )
    recipe = recipes[name]
    if (hidden := request.robot.networks.sim_to_real) is not None:
        recipe = replace(recipe, hidden=tuple(hidden))
    return recipe


def _part(
    request: LearnRequest, recorded: RecordedFrames, earlier: SimToRealModel | None
) -> tuple[list[int], list[int]]:
    """Return the numbers to train on and to judge by."""
    if earlier is None:
        return hold_out(recorded.numbers)
    card = earlier.card.frames
    if request.refreshes:
        if card.created == recorded.origin["created"]:
            raise SoftformError(
                f"The model was made from {request.store} itself.",
                f"Collect a new store: ./softform collect --robot {request.robot.given_as} --frames 5 --output NEW",
            )
        return hold_out(recorded.numbers)
    same = {name: str(getattr(card, name)) for name in ("via", "source", "seed", "created")}
    if same != {name: recorded.origin[name] for name in same}:
        raise SoftformError(
            f"The model was trained on other frames: '{card.store}', {card.source}, by {card.via}, seed {card.seed}, "
            f"begun {card.created}; {request.store} was begun {recorded.origin['created']}.",
            "Collect more frames into that store, or train on this one without --continue.",
        )
    if not set(recorded.numbers) - set(card.used) - set(card.held_out):
        raise SoftformError(
            f"{request.store} holds no frame that the model has not seen.",
            f"Collect more: ./softform collect --robot {request.robot.given_as} --frames {max(recorded.numbers) + 21}",
        )
    return hold_out(recorded.numbers, card.used, card.held_out)


def _train(
    request: LearnRequest,
    forward_kinematics: MlpWeights,
    recorded: RecordedFrames,
    used: Sequence[int],
    recipe: Recipe,
    earlier: SimToRealModel | None,
    runs: Path,
) -> TrainedSimToReal:
    start = None if earlier is None else earlier.members
    prior = load_displacement_prior(request.robot)
    robot = request.robot
    run = TrainingRun(
        request.seed, robot.patches, runs, True, start, prior, request.executor, robot.alike_actuations, request.device
    )
    frames = recorded.frames.part(recorded.places(used))
    if isinstance(frames, MarkerFrames):
        return train_sim_to_real_from_markers(forward_kinematics, frames, recipe, run)
    if request.refreshes:
        assert earlier is not None
        return refresh(forward_kinematics, earlier, frames, request.robot.patches)
    return train_sim_to_real(forward_kinematics, frames, recipe, run)


def refresh(
    forward_kinematics: MlpWeights, model: SimToRealModel, frames: Frames, patches: PatchSet
) -> TrainedSimToReal:
    """Correct a model from a handful of scans, four say enough, after sensors have drifted, or the body has softened.

    Ageing changes shapes nearly as other actuations do: gain and offset of every actuation are fitted anew, before
    what the model corrects; the learned warp stays. Not in paper 000.
    """
    begun = time.monotonic()
    uv = patches.samples(DEFAULT.surface_points)
    frames = frames.effective(model.sim_to_real.memory)
    predicted = ForwardPipeline(forward_kinematics, uv, model.sim_to_real, patches)
    change = fit_actuation(predicted, forward_kinematics, frames, AGED)

    def corrected(one: SimToReal) -> SimToReal:
        return replace(one, actuation=change if one.actuation is None else one.actuation.after(change))

    of, training = model.sim_to_real.coefficients, model.card.training
    return TrainedSimToReal(
        sim_to_real=corrected(model.sim_to_real),
        members=[corrected(member) for member in model.members],
        confidence=[],
        shape_input=ShapeInput(of.input_offset, None, of.input_scale),
        validation_mm=training.validation_mm,
        best_epochs=training.best_epochs,
        seconds=time.monotonic() - begun,
        spread_factor=model.spread_factor,
        spread_floor_mm=model.spread_floor_mm,
    )


def _rejection(errors: HeldOutErrors, earlier: HeldOutErrors | None) -> str:
    if earlier is not None and errors.after_mean > (1.0 + _ROUNDING) * earlier.after_mean:
        return (
            f"The new model is worse on the {errors.frames} held-out frames: {errors.after_mean:.3f} mm in the mean, "
            f"the earlier one {earlier.after_mean:.3f} mm."
        )
    if errors.after_mean > errors.before_mean:
        return (
            f"The model is worse than the simulation alone on the {errors.frames} held-out frames: "
            f"{errors.after_mean:.3f} mm in the mean instead of {errors.before_mean:.3f} mm."
        )
    return ""
