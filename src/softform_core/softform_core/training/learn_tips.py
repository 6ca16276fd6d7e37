"""Train the models of robots with a tip from stores, and write them: `softform train`."""

from pathlib import Path

from softform_core.errors import SoftformError
from softform_core.networks.card import KinematicsReference
from softform_core.networks.mlp_weights import extract_mlp
from softform_core.networks.saved_network import export
from softform_core.networks.store import TIP_KINEMATICS, TIP_SIM_TO_REAL
from softform_core.networks.tip_card import RealData, SimulatedData, TipKinematicsCard, TipSimToRealCard
from softform_core.paths import models_of
from softform_core.robots import Robot
from softform_core.simulation.store import open_simulation
from softform_core.training.cards import card_identity, card_split
from softform_core.training.tip_samples import read_tip_samples
from softform_core.training.tips import train_kinematics, train_tip_transfer


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
