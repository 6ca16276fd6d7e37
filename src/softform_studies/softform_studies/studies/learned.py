"""What the studies of other robots have in common: frames of a reality, and what is learned from them."""

from dataclasses import asdict, dataclass
from typing import Any

from softform_core.arrays import Array
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.forward.robot_pipeline import pipeline_of
from softform_core.networks.mlp_weights import extract_mlp
from softform_core.networks.store import load_forward_kinematics
from softform_core.robots import Robot
from softform_core.training.displacement_prior import load_displacement_prior
from softform_core.training.sim_to_real_recipes import DEFAULT
from softform_core.training.trained_sim_to_real import TrainedSimToReal
from softform_studies.sim_to_real.judge import Judge
from softform_studies.sim_to_real.kept_arrays import kept_true_surfaces
from softform_studies.sim_to_real.learners import Learners, recipe_for
from softform_studies.sim_to_real.make_frames import FRAMES_VERSION, make_captured
from softform_studies.studies.catalogue import Setting


@dataclass(frozen=True)
class Learned:
    """Held-out shapes as they are, and as they are predicted.

    Attributes:
        judge: The true shapes.
        before: (n, P, 3) mm, by N_fk alone.
        after: (n, P, 3) mm, with sim-to-real.
        trained: The sim-to-real model.
    """

    judge: Judge
    before: Array
    after: Array
    trained: TrainedSimToReal

    def pipeline(self, robot: Robot, points: int) -> ForwardPipeline:
        """The learned surface at about so many points."""
        network, _ = load_forward_kinematics(robot)
        return pipeline_of(robot, extract_mlp(network), robot.patches.samples(points), self.trained.sim_to_real)


def identity(setting: Setting, frames: int | None) -> dict[str, Any]:
    """Whatever decides what is predicted: by N_fk alone if `frames` is None, else with what is learned from so many."""
    robot, scale = setting.robot, setting.scale
    _, card = load_forward_kinematics(robot)
    found: dict[str, Any] = {
        "robot": robot.fingerprint(),
        "forward_kinematics": card.weights_sha256,
        "reality": setting.reality.model_dump(mode="json"),
    }
    if frames is not None:
        prior = load_displacement_prior(robot)
        found["learned"] = {
            "frames": frames,
            "points": scale.points,
            "frames_version": FRAMES_VERSION,
            "recipe": asdict(scale.shrunk(recipe_for(robot, DEFAULT))),
            "prior": None if prior is None else prior.sha256,
            "seed": setting.seed,
        }
    return found


def learn(setting: Setting, frames: int, held_out: int) -> Learned:
    """Capture frames as the robot is captured, learn from them as `train s2r` does, and predict other shapes.

    Raises:
        SoftformError: If a model is missing, the reality has no shape at an actuation, or training fails.
    """
    robot, seed = setting.robot, setting.seed
    network, _ = load_forward_kinematics(robot)
    shapes = kept_true_surfaces(robot, setting.reality, frames + held_out, seed, setting.folder / "shapes")
    captured, true, _ = make_captured(robot, setting.reality, frames, held_out, setting.scale.points, seed, shapes)
    judge = Judge(robot, extract_mlp(network), true)
    learners = Learners(
        extract_mlp(network),
        judge.patches,
        seed,
        setting.progress,
        setting.folder / "checkpoints",
        prior=load_displacement_prior(robot),
        alike=robot.alike_actuations,
    )
    recipe = setting.scale.shrunk(recipe_for(robot, DEFAULT))
    fit, _ = learners.fit_frames(captured, recipe)
    trained = learners.learn(fit, recipe)
    return Learned(judge, judge.predicted(None), judge.predicted(trained.sim_to_real), trained)
