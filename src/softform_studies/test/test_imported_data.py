"""`softform bench import`: files of another program are imported, learned from and judged."""

import json
from dataclasses import replace
from functools import partial

from click.testing import CliRunner

from softform_core.cli.main import main
from softform_core.training import tips as learning
from softform_core.training.forward_kinematics import RECIPES


def test_imported_tips_and_shapes_are_judged_by_what_was_not_learned(monkeypatch) -> None:
    monkeypatch.setitem(RECIPES, "default", replace(RECIPES["default"], epochs=100))
    short = partial(learning.train_kinematics, forward_kinematics_steps=200, jacobian_steps=20)
    monkeypatch.setattr(learning, "train_kinematics", short)
    result = CliRunner().invoke(main, ["bench", "import", "--rows", "250", "--learned", "200", "--json", "-"])
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    tips, shapes = figures["tips"], figures["shapes"]
    assert tips["learned_from"] == 200 and tips["inverse_kinematics_targets"] == 50
    assert 0.0 < tips["forward_kinematics_mean_percent"] < tips["forward_kinematics_max_percent"] < 10.0
    # Inverse kinematics reaches a tip as exactly as N_fk knows the robot there.
    assert tips["inverse_kinematics_mean_percent"] < 3.0 * tips["forward_kinematics_mean_percent"]
    assert shapes["shapes"] == 18
    assert 0.0 < shapes["forward_kinematics_mean_mm"] < 0.2 * shapes["largest_displacement_mm"]


def test_a_table_that_is_all_learned_from_is_rejected() -> None:
    result = CliRunner().invoke(main, ["bench", "import", "--rows", "200", "--learned", "200"])
    assert result.exit_code == 2 and "leave none to judge by" in result.output
