"""The picture of a registered scanner names chambers only where a description says where they lie."""

from types import SimpleNamespace

import numpy as np
import pytest

from softform_core.evaluation import pictures
from softform_core.evaluation.pictures import draw_registration
from softform_core.geometry.rigid import RigidTransform
from softform_core.robots import load_robot

IMPORTED = """
name: pad
title: A pad
source: elsewhere
body: {kind: imported, inputs_count: 2, width: 0.1, length: 0.1, surface: sheet}
actuators: {minimum: 0.0, maximum: 5000.0, slew_rate: 4000.0}
devices: [{name: board, channels: [0, 1]}]
surfaces: [{patch: sheet, rows: 6, columns: 6, degree: 3}]
"""
POINTS = np.random.default_rng(0).uniform(-0.05, 0.05, (300, 3))


@pytest.mark.parametrize(("name", "named"), [("membrane", 9), ("pad", 0)])
def test_chambers_are_named_where_a_description_says_where_they_lie(tmp_path, monkeypatch, name, named):
    (tmp_path / "pad.yaml").write_text(IMPORTED, encoding="utf-8")
    robot, drawn = load_robot(str(tmp_path / "pad.yaml") if name == "pad" else name), []
    monkeypatch.setattr(pictures, "rest_surface", lambda _: SimpleNamespace(points=POINTS))
    monkeypatch.setattr(pictures, "write_figure", lambda _, figure: drawn.append(figure))
    draw_registration(tmp_path / "one.png", robot, POINTS, [RigidTransform(np.eye(3), np.zeros(3))])
    names = {text.get_text() for text in drawn[0].axes[0].texts}
    assert {"x", "y", "z", *robot.base_markers} <= names
    assert len(names & set(robot.body.inputs)) == named
