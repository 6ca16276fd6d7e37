"""Named points of surfaces: their places, derivatives and axes, against the surface, differences and the simulation."""

import numpy as np
from scipy.spatial.transform import Rotation

from softform_core.bodies.bellows.skin import outline_of
from softform_core.forward.one_point import MeanPoint, frame_of_points
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.forward.robot_pipeline import load_pipeline
from softform_core.geometry.rigid import kabsch
from softform_core.robots import load_robot
from softform_core.simulation.newton import find_equilibria
from softform_core.units import MM_PER_M

ARM = load_robot("compressible", "surface")
BENT = np.array([-30e3, 5e3, 0.0, -20e3, 1e3, 0.0, -35e3, 0.0, 1e3])


def test_a_frame_is_the_mean_of_the_rim_and_moves_as_differences_say(random_forward_kinematics, random_sim_to_real):
    """With sim-to-real the points are warped before they are averaged."""
    rim = np.stack([(np.arange(24) + 0.5) / 24, np.ones(24)], axis=1)
    pipeline = ForwardPipeline(random_forward_kinematics(0), rim, random_sim_to_real(1), precision=np.float64)
    mean, actuation = MeanPoint(pipeline), np.random.default_rng(2).uniform(0.0, 5000.0, 9)
    state = mean.forward(actuation[None])
    np.testing.assert_allclose(state.points[0, 0], pipeline.points(actuation).mean(axis=0), atol=1e-9)
    step = 0.01 * np.eye(9)
    slope = mean.forward(actuation + step).points - mean.forward(actuation - step).points
    jacobian = mean.jacobian(state)
    np.testing.assert_allclose(jacobian[0, 0], slope[:, 0].T / 0.02, atol=1e-6 * np.abs(jacobian).max())
    assert mean.inputs == pipeline.inputs and mean.at(np.zeros((1, 2))) is mean


def test_the_tip_of_an_arm_stands_and_turns_as_its_end_plate_is_simulated():
    """The model has learned the surface; its tip is told without any training of its own."""
    actuations = np.stack([ARM.rest_actuation, BENT])
    tip = frame_of_points(*load_pipeline(ARM).at(ARM.point_parameters("tip")).points(actuations))
    body = ARM.body.simulator()
    rim = len(outline_of(ARM.body.section))
    plates = MM_PER_M * body.points(find_equilibria(body, actuations).unknowns)[:, -rim:]
    plate = kabsch(*plates)
    assert np.linalg.norm(tip.translation - plates[1].mean(axis=0)) < 0.01 * MM_PER_M * ARM.body.size
    astray = Rotation.from_matrix(tip.rotation @ plate.rotation.T).magnitude()
    assert astray < 0.05 * Rotation.from_matrix(plate.rotation).magnitude()


def test_the_tip_of_the_soft_manipulator_rests_at_its_end():
    robot = load_robot("manipulator")
    tip = load_pipeline(robot).at(robot.point_parameters("tip")).points(robot.rest_actuation).mean(axis=0)
    np.testing.assert_allclose(tip, [0.0, 0.0, 261.0], atol=2.0)  # its weight stretches it by 1 mm


def test_points_on_a_line_keep_the_axes_and_still_tell_the_place():
    line = np.linspace(0.0, 1.0, 24)[:, None] * [30.0, 0.0, 0.0] + [0.0, 5.0, 0.0]
    for points in (line, line[:1]):
        moved = points @ Rotation.from_rotvec([0.3, 0.2, 0.4]).as_matrix().T + 7.0
        frame = frame_of_points(points, moved)
        assert (frame.rotation == np.eye(3)).all()
        np.testing.assert_allclose(frame.translation, moved.mean(axis=0))
