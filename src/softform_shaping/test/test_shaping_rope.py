"""A rope is so slender that it buckles before it is compressed, and shows two pixels across."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from softform_shaping.alignment import swung
from softform_shaping.controllers import Task
from softform_shaping.fall import fallen
from softform_shaping.material_belief import MaterialBelief, Spreads
from softform_shaping.ours import Ours, OursController
from softform_shaping.preparation import CONTROLLERS, prepared, prepared_task
from softform_shaping.scene import make_scene
from softform_shaping.session import shape_object


@pytest.mark.parametrize(("nearer", "turn"), [(0.02, 0.2), (0.05, 0.5), (0.1, 1.0)])
def test_it_is_found_where_its_grippers_come_nearer(nearer, turn):
    _, model, _ = prepared("rope")
    shape = model.shape(np.array([0.0, 0.0, nearer, 0.0, turn, 0.0, 0.0, 0.0, -nearer, 0.0, -turn, 0.0]))
    slices = np.round(model.rest_nodes[:, 2] / 0.02).astype(int)
    at_rest, line = (
        np.array([nodes[slices == number].mean(axis=0) for number in range(slices.max() + 1)])
        for nodes in (model.rest_nodes, shape.nodes)
    )
    length, before = (np.linalg.norm(np.diff(one, axis=0), axis=1).sum() for one in (line, at_rest))
    assert length == pytest.approx(before, rel=0.01)
    assert np.ptp(line[:, 0]) > 0.09  # it bends aside
    assert np.ptp(line[:, 1]) < 1e-3
    gradient = model.body.gradient(shape.unknowns[None], shape.poses[None])[0]
    pivots = model.body.derivatives(shape.unknowns[None], shape.poses[None])[1].factorised().pivots
    assert np.linalg.norm(gradient) < 1e-3 and (pivots > 0.0).all()


def test_it_is_hung_as_it_is_wanted_though_patches_of_depth_are_missing():
    described, task = prepared_task("rope_1")
    scene = make_scene(described, task.model, 0)
    seen: list[float] = []
    shaped = shape_object(CONTROLLERS["ours"](task, 0), scene, 30, watch=lambda one: seen.append(one.true_rms))
    assert seen[0] > 40.0 and min(seen[:12]) < 2.0 and seen[-1] < 2.0
    assert shaped.ended == "done" and seen[-1] < min(seen) + 0.5, "it does not end where it was nearest"


UP = np.array([0.0, 0.0, 0.03, 0.0, 0.5, 0.0, 0.0, 0.0, -0.03, 0.0, -0.5, 0.0])


def middle(model, nodes):
    """Height of the middle of the rope over the line between the grippers, m."""
    return nodes[np.abs(model.rest_nodes[:, 2] - 0.2625) < 0.02, 0].mean()


def test_where_it_can_hang_no_longer_it_snaps_over():
    _, model, _ = prepared("rope")
    theta = np.zeros(13)
    theta[-3] = -0.002  # weight over modulus, 1/m
    heavy = model.of(MaterialBelief(model.body, Spreads()).body(theta))
    hanging = heavy.shape(0.2 * UP, heavy.shape(np.zeros(12)))
    assert middle(model, hanging.nodes) < -0.03
    over, _, _ = fallen(heavy.body, hanging.unknowns, 0.45 * UP)
    gradient, hessian = heavy.body.derivatives(over[None], 0.45 * UP[None])
    assert np.linalg.norm(gradient) <= heavy.body.tolerance(UP[None])[0]
    assert (hessian.factorised().pivots > 0.0).all()
    assert middle(model, heavy.body.nodes(over)) > 0.05


def test_what_swung_aside_is_found_by_the_line_between_the_grippers():
    _, model, visual = prepared("rope")
    arch = model.shape(UP).nodes
    left, right = (arch[held].mean(axis=0) for held in model.held)
    over = left + Rotation.from_rotvec(2.0 * (right - left) / np.linalg.norm(right - left)).apply(arch - left)
    found = swung([model.rest_nodes, arch], model.held, visual, visual.places(over)[::50])
    off = np.linalg.norm(found - over, axis=1)
    assert np.median(off) < 0.015 < 0.1 < np.linalg.norm(arch - over, axis=1).max()
    ends = np.concatenate(model.held)
    assert np.abs(found - arch)[ends].max() < 0.005, "what is held stays"


def test_it_is_followed_as_it_snaps_over_though_the_model_has_another_balance():
    described, model, visual = prepared("rope")
    task = Task(model, visual, model.shape(UP).nodes)
    scene = make_scene(described, model, 1)
    for share in (0.3, 0.6, 0.9):
        scene.move(share * UP)
    assert middle(model, scene.truth.nodes) < -0.06 < 0.06 < middle(model, model.shape(0.9 * UP).nodes)
    seen = []
    controller = OursController(task, Ours())
    shaped = shape_object(controller, scene, 3, watch=lambda one: seen.append((one.estimate.rms, one.true_rms)))
    reported, true = np.array(seen).T
    assert shaped.error is None and len(true) == 3
    assert true[0] > 95.0 and true.min() < 80.0, "it does not snap over"
    assert np.abs(reported - true).max() < 8.0


@pytest.mark.long
def test_it_cannot_be_held_up_as_the_weightless_one_is_and_that_is_told():
    described, model, visual = prepared("rope")
    task = Task(model, visual, model.shape(UP).nodes)
    scene = make_scene(described, model, 2, with_arms=True)
    shaped = shape_object(CONTROLLERS["ours"](task, 0), scene, 80)
    assert shaped.error is None and shaped.ended == "nearest"
    assert shaped.last.true_rms < 60.0 < 0.8 * shaped.iterations[0].true_rms
