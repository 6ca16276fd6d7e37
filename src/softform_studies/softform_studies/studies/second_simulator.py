"""N_fk of a second simulator of a robot, independent of its own (Fig. 15): simulated and trained once for a study."""

from dataclasses import asdict, replace

from softform_core.networks.saved_network import SavedNetwork
from softform_core.networks.store import FORWARD_KINEMATICS, load_forward_kinematics
from softform_core.networks.surface_card import SurfaceKinematicsCard
from softform_core.robots.body import Body
from softform_core.simulation.generate import generate
from softform_core.simulation.sampling import inflations
from softform_core.training.learn_forward_kinematics import learn_forward_kinematics, recipe_for
from softform_core.training.shapes import load_training_shapes
from softform_studies.sim_to_real.ledger import digest_of
from softform_studies.studies.catalogue import Setting

_SHAPES = 400
"""As many as the soft manipulator's own N_fk was given."""


def learned_from(setting: Setting, model: Body) -> tuple[SavedNetwork, SurfaceKinematicsCard]:
    """N_fk, by the robot's recipe, of the robot with another model of its body, and its card.

    Raises:
        SoftformError: If shapes cannot be simulated, or training fails.
    """
    scale, robot = setting.scale, setting.robot.model_copy(update={"body": model})
    recipe, shapes = recipe_for(robot), scale.pick(_SHAPES, 32)
    recipe = replace(recipe, epochs=scale.pick(recipe.epochs, 2))
    settings = {"robot": robot.fingerprint(), "recipe": asdict(recipe), "shapes": shapes, "seed": setting.seed}
    folder = setting.folder / model.kind / digest_of(settings)
    if not (folder / FORWARD_KINEMATICS.card_file).is_file():
        store, sampling = folder / "simulation.zarr", inflations(robot, shapes, setting.seed)
        generate(robot, sampling, store, jobs=1, progress=setting.progress)
        simulated, checkpoints = load_training_shapes(robot, store), folder / "checkpoints"
        learn_forward_kinematics(robot, simulated, recipe, setting.seed, checkpoints, folder, progress=setting.progress)
    return load_forward_kinematics(robot, folder)
