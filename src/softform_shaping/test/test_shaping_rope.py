"""A rope is so slender that it buckles before it is compressed, and shows two pixels across."""

import numpy as np
import pytest

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
    shape_object(CONTROLLERS["ours"](task, 0), scene, 12, watch=lambda one: seen.append(one.true_rms))
    assert seen[0] > 40.0 and min(seen) < 2.0 and seen[-1] < 2.0
