"""Training of N_fk, N_J and N_s2r of a tip (paper 001, Sec. III-D), and of models from stores: `softform train`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.networks.card import KinematicsReference
from softform_core.networks.mlp_weights import extract_mlp
from softform_core.networks.saved_network import export
from softform_core.networks.store import TIP_KINEMATICS, TIP_SIM_TO_REAL
from softform_core.networks.tip import ACTIVATION, TipKinematics, TipNetwork
from softform_core.networks.tip_card import NetworkEntry, RealData, SimulatedData, TipKinematicsCard, TipSimToRealCard
from softform_core.paths import models_of
from softform_core.robots import Robot
from softform_core.simulation.store import open_simulation
from softform_core.training.cards import card_identity, card_split
from softform_core.training.least_squares import fit
from softform_core.training.split import Split, split_rows
from softform_core.training.tip_samples import read_tip_samples
from softform_core.units import MM_PER_M

FORWARD_KINEMATICS_STEPS = 4000
JACOBIAN_STEPS = 1500
SIM_TO_REAL_STEPS = 2000
NEURONS_PER_SAMPLE = 0.25
"""eta of N_s2r (Sec. III-D)."""

_PATIENCE = 500


@dataclass(frozen=True)
class TrainedKinematics:
    """N_fk and N_J with what a card says about them."""

    network: TipKinematics
    split: Split
    forward_kinematics: NetworkEntry
    jacobian: NetworkEntry
    workspace_width_mm: float


@dataclass(frozen=True)
class TrainedTipTransfer:
    """N_s2r with what a card says about it; errors in percent of the workspace's width."""

    network: TipNetwork
    split: Split
    entry: NetworkEntry
    before_mean_percent: float
    before_max_percent: float


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
    forward_kinematics_steps: int = FORWARD_KINEMATICS_STEPS,
    jacobian_steps: int = JACOBIAN_STEPS,
    progress: bool = True,
) -> TrainedKinematics:
    """Fit N_fk to the tips and N_J to the exact Jacobians of the simulator.

    Args:
        robot: Gives the layers.
        actuations: (s, m).
        tips: (s, n) m.
        jacobians: (s, n, m) m/Pa, or None: those of N_fk then.
        seed: Seed of the split and the first weights.
        forward_kinematics_steps: Most steps of L-BFGS for N_fk.
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
        "N_fk", actuations, millimetres, layers.forward_kinematics, split, seed, forward_kinematics_steps,
        True, width, progress,
    )  # fmt: skip
    flattened = (_derivatives(fk, actuations) if jacobians is None else MM_PER_M * jacobians).reshape(len(tips), -1)
    norm = float(np.sqrt((flattened**2).sum(axis=1).mean()))
    jacobian, jacobian_entry = _fitted(
        "N_J", actuations, flattened, layers.jacobian, split, seed, jacobian_steps, False, norm, progress
    )
    return TrainedKinematics(TipKinematics(fk, jacobian), split, fk_entry, jacobian_entry, width)


def train_tip_transfer(
    simulated: Array,
    actuations: Array,
    tips: Array,
    workspace_width_mm: float,
    seed: int,
    *,
    by_tip_alone: bool = False,
    progress: bool = True,
) -> TrainedTipTransfer:
    """Fit N_s2r: to the captured tips, one hidden layer of samples / 4 neurons.

    The paper's takes the tip that N_fk predicts. A redundant robot brings its simulated tip to one place in many ways,
    which in reality lead to different places, so ours takes the actuation beside it.

    Args:
        simulated: (s, n) mm, of N_fk.
        actuations: (s, m), commanded.
        tips: (s, n) m, captured.
        workspace_width_mm: Width of the simulated workspace, mm.
        seed: Seed of the split and the first weights.
        by_tip_alone: Whether N_s2r takes the simulated tip alone, as in the paper.
        progress: Whether to show a progress bar on stderr.

    Raises:
        SoftformError: If there are too few samples or the loss becomes NaN.
    """
    split = split_rows(len(actuations), seed)
    real = MM_PER_M * tips
    inputs = simulated if by_tip_alone else np.concatenate([simulated, actuations], axis=1)
    network, entry = _fitted(
        "N_s2r", inputs, real, [max(1, round(NEURONS_PER_SAMPLE * len(actuations)))], split, seed, SIM_TO_REAL_STEPS,
        True, workspace_width_mm, progress,
    )  # fmt: skip
    before = 100.0 * np.linalg.norm(simulated - real, axis=1)[split.test] / workspace_width_mm
    return TrainedTipTransfer(network, split, entry, float(before.mean()), float(before.max()))


def _fitted(
    label: str,
    inputs: Array,
    outputs: Array,
    hidden: Sequence[int],
    split: Split,
    seed: int,
    steps: int,
    one_scale: bool,
    norm: float,
    progress: bool,
) -> tuple[TipNetwork, NetworkEntry]:
    """Return a network and its card entry; errors over `norm`."""
    x, y = torch.from_numpy(inputs), torch.from_numpy(outputs)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = TipNetwork(x, y, hidden, one_scale=one_scale)
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
        raise SoftformError(f"The tip simulation {store} is not finished.", f"Go on with: {tips.attributes['command']}")
    actuations, places, *given = tips.converged()
    jacobians = given[0] if given else None
    trained = train_kinematics(robot, actuations, places, jacobians, seed)
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
    )
    TIP_KINEMATICS.save(folder, weights, card)
    return card


def learn_tip_sim_to_real(robot: Robot, store: Path, folder: Path, seed: int) -> TipSimToRealCard:
    """Train N_s2r on captured tips, beside the robot's own N_fk in `models`, and write it to a folder.

    Raises:
        SoftformError: If the store is not this robot's, or a model cannot be read or written.
    """
    actuations, tips, origin = read_tip_samples(store, robot)
    kinematics, simulated = TIP_KINEMATICS.load(models_of(robot.name), robot)
    model = extract_mlp(kinematics.forward_kinematics)
    trained = train_tip_transfer(model.forward(actuations), actuations, tips, simulated.workspace_width_mm, seed)
    weights = export(trained.network)
    card = TipSimToRealCard(
        **card_identity(robot, weights),
        weights_file=TIP_SIM_TO_REAL.weights_file,
        command=f"softform train s2r --robot {robot.given_as} --frames {store.name} --seed {seed}",
        forward_kinematics=KinematicsReference(weights_sha256=simulated.weights_sha256),
        data=RealData(store=store.name, samples=len(tips), source=origin["source"], created=origin["created"]),
        split=card_split(trained.split),
        seed=seed,
        network=trained.entry,
        before_mean_percent=trained.before_mean_percent,
        before_max_percent=trained.before_max_percent,
    )
    TIP_SIM_TO_REAL.save(folder, weights, card)
    return card
