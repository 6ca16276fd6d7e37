"""Where a goal of `collect_dataset`, which anybody can send, may have frames written."""

import pytest

from softform_collect.goal import OUTPUT_ROOT, goal_from_message
from softform_core.robots import load_robot
from softform_interfaces.action import CollectDataset
from softform_ros.goal_error import GoalCode, GoalError

ROBOT = load_robot("membrane")


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    for variable, name in (("SOFTFORM_DATA", "data"), ("SOFTFORM_RUNS", "runs"), (OUTPUT_ROOT, "more")):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(variable, str(tmp_path / name))
    (tmp_path / "data" / "out").symlink_to(tmp_path)
    (tmp_path / "data" / "loop").symlink_to(tmp_path / "data" / "loop")
    (tmp_path / "disk").symlink_to(tmp_path / "more")


def output_of(output):
    return goal_from_message(CollectDataset.Goal(via="scanner", frames=3, output=str(output)), ROBOT).output


@pytest.mark.parametrize("inside", ["data/a.zarr", "runs/today/a.zarr", "more/deep/er/a.zarr", "disk/a.zarr"])
def test_frames_are_kept_with_data_runs_and_where_the_operator_says(tmp_path, inside):
    assert output_of(tmp_path / inside) == tmp_path / inside


@pytest.mark.parametrize(
    "outside",
    ["a.zarr", "data", "data/../a.zarr", "data/x/../a.zarr", "data/out/a.zarr", "data/loop/a.zarr", "database/a.zarr"]
    + ["data/null\0/a.zarr"],
)
def test_nothing_is_written_anywhere_else(tmp_path, outside):
    with pytest.raises(GoalError, match=f"is not in .*{OUTPUT_ROOT}=FOLDER") as raised:
        output_of(tmp_path / outside)
    assert raised.value.code == GoalCode.INVALID_GOAL


@pytest.mark.parametrize("elsewhere", ["/etc/cron.d/x", "/", "~/a.zarr", "a.zarr", "../a.zarr", "\u202egpj.a"])
def test_the_rest_of_the_machine_is_not_for_others(elsewhere):
    with pytest.raises(GoalError) as raised:
        output_of(elsewhere)
    assert "\u202e" not in str(raised.value)


def test_without_a_word_it_is_the_robots_own(tmp_path):
    assert output_of("") == tmp_path / "data" / "membrane" / "frames.zarr"
