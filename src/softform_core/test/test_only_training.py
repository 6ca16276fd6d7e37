"""One training of a robot at a time: the second one says which one runs."""

import os

import pytest
from click.testing import CliRunner

from softform_core.cli.refresh import refresh
from softform_core.cli.train import train
from softform_core.errors import SoftformError
from softform_core.robots import load_robot
from softform_core.training.only_training import only_training

ROBOT = load_robot("membrane")


@pytest.mark.parametrize("command", [(train, "fk"), (train, "s2r"), (refresh,)])
@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_second_training_of_a_robot_names_the_one_that_runs(tmp_path, monkeypatch, command, elsewhere):
    monkeypatch.setenv("SOFTFORM_RUNS", str(tmp_path / "runs"))
    mine = tmp_path / "mine"
    theirs = tmp_path / "theirs" if elsewhere else mine
    with only_training(ROBOT, theirs):
        result = CliRunner().invoke(command[0], [*command[1:], "--robot", "membrane", "--output", str(mine)])
    assert isinstance(result.exception, SoftformError)
    assert f"Another process ({os.getpid()}: " in str(result.exception) and "training 'membrane'" in str(
        result.exception
    )
    assert "where it stopped" in result.exception.next_step and not (mine / "sim_to_real.json").exists()


def test_two_robots_do_not_train_into_one_folder_and_another_one_is_free(tmp_path, monkeypatch):
    monkeypatch.setenv("SOFTFORM_RUNS", str(tmp_path / "runs"))
    other = load_robot("compressible")
    with only_training(ROBOT, tmp_path / "one"):
        with pytest.raises(SoftformError, match="into .*one"), only_training(other, tmp_path / "x" / ".." / "one"):
            pass
        with only_training(other, tmp_path / "other"):
            pass
    with only_training(other, tmp_path / "one"):
        pass
