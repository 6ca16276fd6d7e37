"""What the studies of other robots have in common: frames of a reality, and what is learned from them."""

from dataclasses import dataclass

from softform_core.arrays import Array
from softform_core.frames.frames import Frames
from softform_core.networks.mlp_weights import extract_mlp
from softform_core.networks.store import load_forward_kinematics
from softform_core.training.displacement_prior import load_displacement_prior
from softform_core.training.sim_to_real_recipes import DEFAULT
from softform_studies.sim_to_real.judge import Judge
from softform_studies.sim_to_real.learners import Learners, recipe_for
from softform_studies.sim_to_real.make_frames import make_captured
from softform_studies.studies.outcome import Setting


@dataclass(frozen=True)
class Learned:
    """Held-out shapes as they are, and as they are predicted.

    Attributes:
        judge: The true shapes.
        before: (n, P, 3) mm, by N_fk alone.
        after: (n, P, 3) mm, with sim-to-real.
    """

    judge: Judge
    before: Array
    after: Array


def learn(setting: Setting, frames: int, held_out: int) -> Learned:
    """Capture frames as the robot is captured, learn from them as `train s2r` does, and predict other shapes.

    Raises:
        SoftformError: If a model is missing, the reality has no shape at an actuation, or training fails.
    """
    robot, seed = setting.robot, setting.seed
    network, _ = load_forward_kinematics(robot)
    captured, true, _ = make_captured(robot, setting.reality, frames, held_out, setting.scale.points, seed)
    judge = Judge(robot, extract_mlp(network), true)
    learners = Learners(
        extract_mlp(network),
        judge.patches,
        seed,
        setting.progress,
        setting.folder / "checkpoints",
        load_displacement_prior(robot),
        robot.alike_actuations,
    )
    recipe = setting.scale.shrunk(recipe_for(robot, DEFAULT))
    if isinstance(captured, Frames):
        captured, _ = learners.fit_frames(captured, recipe)
    trained = learners.learn(captured, recipe)
    return Learned(judge, judge.predicted(None), judge.predicted(trained.sim_to_real))
