"""Training of N_fk, N_J and N_s2r of a tip (paper 001, Sec. III-D), and of models from stores: `softform train`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.memory import play_of
from softform_core.networks.card import KinematicsReference
from softform_core.networks.mlp_weights import MlpWeights, extract_mlp
from softform_core.networks.saved_network import export
from softform_core.networks.store import TIP_KINEMATICS, TIP_SIM_TO_REAL
from softform_core.networks.tip import ACTIVATION, TipKinematics, TipNetwork, TipTransfer
from softform_core.networks.tip_card import NetworkEntry, RealData, SimulatedData, TipKinematicsCard, TipSimToRealCard
from softform_core.paths import models_of
from softform_core.provenance import to_go_on
from softform_core.robots import Robot
from softform_core.simulation.store import open_simulation
from softform_core.surface.curve import curve_basis, fit_curve
from softform_core.training.cards import card_identity, card_split
from softform_core.training.least_squares import fit
from softform_core.training.split import Split, split_rows
from softform_core.training.tip_memory import fit_play
from softform_core.training.tip_samples import TipSamples, read_tip_samples
from softform_core.units import MM_PER_M

FORWARD_KINEMATICS_STEPS = 4000
JACOBIAN_STEPS = 1500
SIM_TO_REAL_STEPS = 2000
NEURONS_PER_SAMPLE = 0.25
"""eta of N_s2r (Sec. III-D)."""

_PATIENCE = 500


@dataclass(frozen=True)
class TrainedKinematics:
    """N_fk and N_J with what a card says about them, and about the centre line if that is learned."""

    network: TipKinematics
    split: Split
    forward_kinematics: NetworkEntry
    jacobian: NetworkEntry
    workspace_width_mm: float
    centre_line: NetworkEntry | None = None


@dataclass(frozen=True)
class TrainedTipTransfer:
    """N_s2r with what a card says about it; errors in percent of the workspace's width."""

    network: TipTransfer
    split: Split
    entry: NetworkEntry
    before_mean_percent: float
    before_max_percent: float
    line: NetworkEntry | None = None


def workspace_width(tips: Array) -> float:
    """Return the smaller of the extents along x and y of the tips (s, n) that a robot reaches; in their unit.

    The paper does not define it, and its numbers do not agree on one; this is the strictest reading.
    """
    return float(np.ptp(tips[:, :2], axis=0).min())


def train_kinematics(
    robot: Robot,
    actuations: Array,
    tips: Array,
    jacobians: Array | None,
    seed: int,
    *,
    line: tuple[Array, Array] | None = None,
    forward_kinematics_steps: int = FORWARD_KINEMATICS_STEPS,
    jacobian_steps: int = JACOBIAN_STEPS,
    progress: bool = True,
) -> TrainedKinematics:
    """Fit N_fk to the tips, N_J to the exact Jacobians of the simulator, and a network to the centre line.

    Args:
        robot: Gives the layers.
        actuations: (s, m).
        tips: (s, n) m.
        jacobians: (s, n, m) m/Pa, or None: those of N_fk then.
        seed: Seed of the split and the first weights.
        line: Nodes (s, N, 3) m of the centre line, and where they are along it, (N,); None if it is not learned.
        forward_kinematics_steps: Most steps of L-BFGS for N_fk, and for the centre line.
        jacobian_steps: Most steps of L-BFGS for N_J.
        progress: Whether to show progress bars on stderr.

    Raises:
        SoftformError: If there are too few samples or a loss becomes NaN.
    """
    split = split_rows(len(actuations), seed)
    millimetres = MM_PER_M * tips
    width = workspace_width(millimetres)
    layers = robot.tip
    fk, fk_entry = _fitted(
        "N_fk", lambda x, y: TipNetwork(x, y, layers.forward_kinematics, one_scale=True), actuations, millimetres,
        layers.forward_kinematics, split, seed, forward_kinematics_steps, width, progress,
    )  # fmt: skip
    flattened = (_derivatives(fk, actuations) if jacobians is None else MM_PER_M * jacobians).reshape(len(tips), -1)
    norm = float(np.sqrt((flattened**2).sum(axis=1).mean()))
    jacobian, jacobian_entry = _fitted(
        "N_J", lambda x, y: TipNetwork(x, y, layers.jacobian, one_scale=False), actuations, flattened,
        layers.jacobian, split, seed, jacobian_steps, norm, progress,
    )  # fmt: skip
    if line is None:
        return TrainedKinematics(TipKinematics(fk, jacobian), split, fk_entry, jacobian_entry, width)
    hidden, count = robot.line_learning.forward_kinematics, robot.line_learning.control_points
    of_line, line_entry = _fitted_line(
        hidden, count, actuations, *line, split, seed, forward_kinematics_steps, width, progress
    )
    return TrainedKinematics(TipKinematics(fk, jacobian, of_line), split, fk_entry, jacobian_entry, width, line_entry)


def _fitted_line(
    hidden: Sequence[int],
    count: int,
    inputs: Array,
    nodes: Array,
    along: Array,
    split: Split,
    seed: int,
    steps: int,
    width: float,
    progress: bool,
) -> tuple[TipNetwork, NetworkEntry]:
    """Return a network of a line's control points, and its card entry: misses of nodes (s, N, 3) m over `width`."""
    control = fit_curve(MM_PER_M * nodes, along, count).reshape(len(nodes), -1)
    network, entry = _fitted(
        "centre line", lambda x, y: TipNetwork(x, y, hidden, one_scale=True), inputs, control, hidden, split, seed,
        steps, width, progress,
    )  # fmt: skip
    predicted = extract_mlp(network).forward(inputs[split.test]).reshape(-1, count, 3)
    points = np.stack([curve_basis(along, count) @ one for one in predicted])
    missed = 100.0 * np.linalg.norm(points - MM_PER_M * nodes[split.test], axis=2) / width
    errors = {"test_mean_percent": float(missed.mean()), "test_max_percent": float(missed.max())}
    return network, entry.model_copy(update=errors)


def train_tip_transfer(
    robot: Robot,
    kinematics: MlpWeights,
    samples: TipSamples,
    workspace_width_mm: float,
    seed: int,
    *,
    line: MlpWeights | None = None,
    by_tip_alone: bool = False,
    with_memory: bool = True,
    progress: bool = True,
) -> TrainedTipTransfer:
    """Fit N_s2r: to the captured tips, one hidden layer of samples / 4 neurons.

    The paper's takes the tip that N_fk predicts. A redundant robot brings its simulated tip to one place in many ways,
    which in reality lead to different places, so ours takes the actuation beside it. Where it is known what was
    commanded before, a play is fitted first, and both are those of the effective actuation.

    Args:
        robot: The robot.
        kinematics: N_fk, (s, m) -> (s, n) mm.
        samples: Captured tips.
        workspace_width_mm: Width of the simulated workspace, mm.
        seed: Seed of the split and the first weights.
        line: The network of the centre line, (s, m) -> (s, 3 C) mm, whose transfer is fitted beside it where centre
            lines were captured.
        by_tip_alone: Whether N_s2r takes the simulated tip alone, as in the paper.
        with_memory: Whether a play is fitted where the past is known.
        progress: Whether to show a progress bar on stderr.

    Raises:
        SoftformError: If there are too few samples or the loss becomes NaN.
    """
    split = split_rows(len(samples.tips), seed)
    real, effective, width = MM_PER_M * samples.tips, samples.actuation, np.empty(0)
    if with_memory and samples.past is not None:
        known = np.sort(np.concatenate([split.train, split.validation]))  # the test part must not choose anything
        width = fit_play(robot, kinematics.forward, effective[known], samples.past[known], real[known])
        effective = play_of(robot, width).effective_after(samples.past, effective)
    simulated = kinematics.forward(effective)
    inputs = simulated if by_tip_alone else np.concatenate([simulated, effective], axis=1)
    hidden = [max(1, round(NEURONS_PER_SAMPLE * len(real)))]

    def network_of(x: Tensor, y: Tensor) -> TipTransfer:
        return TipTransfer(x, y, hidden, torch.from_numpy(width))

    network, entry = _fitted(
        "N_s2r", network_of, inputs, real, hidden, split, seed, SIM_TO_REAL_STEPS, workspace_width_mm, progress
    )
    missed = np.linalg.norm(kinematics.forward(samples.actuation) - real, axis=1)
    before = 100.0 * missed[split.test] / workspace_width_mm
    trained = TrainedTipTransfer(network, split, entry, float(before.mean()), float(before.max()))
    if line is None or samples.lines is None:
        return trained
    nodes, along = samples.lines
    count = robot.line_learning.control_points
    inputs = np.concatenate([line.forward(effective), effective], axis=1)
    of_line, of_entry = _fitted_line(
        hidden, count, inputs, nodes, along, split, seed, SIM_TO_REAL_STEPS, workspace_width_mm, progress
    )
    return replace(trained, network=network.with_line(of_line), line=of_entry)


Network = TypeVar("Network", bound=TipNetwork)


def _fitted(
    label: str,
    network_of: Callable[[Tensor, Tensor], Network],
    inputs: Array,
    outputs: Array,
    hidden: Sequence[int],
    split: Split,
    seed: int,
    steps: int,
    norm: float,
    progress: bool,
) -> tuple[Network, NetworkEntry]:
    """Return a network made of inputs and outputs, fitted, and its card entry; errors over `norm`."""
    x, y = torch.from_numpy(inputs), torch.from_numpy(outputs)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = network_of(x, y)
    done = fit(network, x, y, split, steps, patience=_PATIENCE, label=label, progress=progress)
    predicted = extract_mlp(network).forward(inputs[split.test])
    errors = 100.0 * np.linalg.norm(predicted - outputs[split.test], axis=1) / norm
    return network.eval(), NetworkEntry(
        inputs=inputs.shape[1],
        hidden=list(hidden),
        outputs=outputs.shape[1],
        activation=ACTIVATION,
        parameters=sum(parameter.numel() for parameter in network.parameters()),
        steps=done.steps,
        best_step=done.best_step,
        seconds=round(done.seconds, 1),
        test_mean_percent=float(errors.mean()),
        test_max_percent=float(errors.max()),
    )


def _derivatives(network: TipNetwork, inputs: Array) -> Array:
    """Return exact derivatives (s, n, m) of a network's outputs by its inputs (s, m)."""
    x = torch.from_numpy(inputs).requires_grad_()
    outputs = network(x).sum(dim=0)
    return torch.stack([torch.autograd.grad(one, x, retain_graph=True)[0] for one in outputs], dim=1).numpy()


def learn_tip_kinematics(robot: Robot, store: Path, folder: Path, seed: int) -> TipKinematicsCard:
    """Train N_fk and N_J on a store of simulated tips and write them to a folder.

    Raises:
        SoftformError: If the store is not this robot's or not finished, or the model cannot be written.
    """
    tips = open_simulation(store, robot)
    if len(tips.pending):
        raise SoftformError(f"The tip simulation {store} is not finished.", f"Go on with: {to_go_on(tips.attributes)}")
    actuations, places = tips.converged("tip")
    jacobians = tips.converged("jacobian")[1] if "jacobian" in tips.outputs else None
    line = None
    if robot.learns_line:
        if "centre_line" not in tips.outputs:
            raise SoftformError(
                f"{store} holds no centre line, which '{robot.name}' learns.",
                f"Make another one: {robot.first_command} --output NEW; or leave centre_line out of its description.",
            )
        line = tips.converged("centre_line")[1], tips.along
    trained = train_kinematics(robot, actuations, places, jacobians, seed, line=line)
    weights, origin = export(trained.network), tips.attributes
    card = TipKinematicsCard(
        **card_identity(robot, weights),
        weights_file=TIP_KINEMATICS.weights_file,
        command=f"softform train fk --robot {robot.given_as} --seed {seed}",
        workspace_width_mm=trained.workspace_width_mm,
        data=SimulatedData(
            store=store.name,
            samples=sum(map(len, (trained.split.train, trained.split.validation, trained.split.test))),
            segments=origin.get("segments"),
            simulation_command=origin["command"],
            simulation_git_revision=origin["git_revision"],
            simulation_created=origin["created"],
        ),
        split=card_split(trained.split),
        seed=seed,
        forward_kinematics=trained.forward_kinematics,
        jacobian=trained.jacobian,
        centre_line=trained.centre_line,
    )
    TIP_KINEMATICS.save(folder, weights, card)
    return card


def play_shares(robot: Robot, width: Array) -> dict[str, float]:
    """Return the widths of a play as parts of the ranges, by the names of degrees of freedom or actuators."""
    names, low, high = robot.actuation_names, robot.actuation_min, robot.actuation_max
    if len(width) > len(names):
        names, low, high = robot.actuators, robot.actuator_min, robot.actuator_max
    return {name: float(share) for name, share in zip(names, width / (high - low), strict=True)} if len(width) else {}


def learn_tip_sim_to_real(robot: Robot, store: Path, folder: Path, seed: int) -> TipSimToRealCard:
    """Train N_s2r on captured tips, beside the robot's own N_fk in `models`, and write it to a folder.

    Raises:
        SoftformError: If the store is not this robot's, or a model cannot be read or written.
    """
    samples, origin = read_tip_samples(store, robot)
    kinematics, simulated = TIP_KINEMATICS.load(models_of(robot.name), robot)
    model = extract_mlp(kinematics.forward_kinematics)
    of_line = getattr(kinematics, "centre_line", None)
    line = None if of_line is None or not robot.learns_line else extract_mlp(of_line)
    trained = train_tip_transfer(robot, model, samples, simulated.workspace_width_mm, seed, line=line)
    weights = export(trained.network)
    card = TipSimToRealCard(
        **card_identity(robot, weights),
        weights_file=TIP_SIM_TO_REAL.weights_file,
        command=f"softform train s2r --robot {robot.given_as} --frames {store.name} --seed {seed}",
        forward_kinematics=KinematicsReference(weights_sha256=simulated.weights_sha256),
        data=RealData(store=store.name, samples=len(samples.tips), source=origin["source"], created=origin["created"]),
        split=card_split(trained.split),
        seed=seed,
        network=trained.entry,
        centre_line=trained.line,
        play=play_shares(robot, trained.network.play_width.numpy()),
        before_mean_percent=trained.before_mean_percent,
        before_max_percent=trained.before_max_percent,
    )
    TIP_SIM_TO_REAL.save(folder, weights, card)
    return card
