"""Targets as they come, in every way of a demo, without nodes."""

import numpy as np
import pytest

from softform_core.bodies.membrane.simulator import RealMembrane
from softform_core.executors import InProcess
from softform_core.robots import load_robot
from softform_core.shapes.validate import check_target
from softform_core.surface.mesh import parts_of
from softform_rig.reality import Reality
from softform_studies.targets.bench import reliefs, run

ROBOT = load_robot("membrane")


def test_the_reliefs_are_what_their_names_say():
    found = reliefs()
    assert len(found) == 10
    for target in found.values():
        check_target(target.points, ROBOT)
        assert target.faces is None or target.facing[2] > 0.3
    parts = {name: parts_of(target.faces)[0] for name, target in found.items() if target.faces is not None}
    assert parts["face and debris"] > 10 and parts["two parts"] == 2 and parts["face"] == 1
    assert found["larger"].extent[0] > 0.4 and found["smaller"].extent[1] < 0.21
    assert found["off-centre"].points.mean(axis=0)[0] > 0.07 and len(found["land, coarse"].points) < 200


@pytest.mark.long
def test_each_way_is_measured_and_none_is_better_than_the_best_fit():
    told = []
    reality = Reality(name="default", title="", body=RealMembrane(cells=12))
    target = reliefs()["smaller"]
    figures = run(ROBOT, reality, {"smaller": target}, told.append, InProcess())["smaller"]
    ways = [figures[name] for name in ("simulation_mm", "sim_to_real_mm", "closed_loop_mm")]
    assert figures["best_fit_mean_mm"] <= min(ways) + 1e-3 and max(ways) < 0.4 * figures["rest_mm"]
    assert figures["closed_loop_mm"] <= 1.02 * min(ways[:2]) and figures["closed_loop_mm"] == min(figures["rounds_mm"])
    assert figures["beside_robot_share"] == 0.0 and np.shape(figures["mean_mm_of_starts"]) == (4,)
    assert told[0].startswith("smaller")
