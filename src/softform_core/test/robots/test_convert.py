"""Files of earlier versions: rejected with the command that converts them, and read once converted."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml
import zarr
from click.testing import CliRunner

from softform_core.cli.convert import convert
from softform_core.errors import SoftformError
from softform_core.frames.marker_store import create_marker_frames, open_marker_frames
from softform_core.frames.store import create_frames, open_frames
from softform_core.networks.store import load_forward_kinematics
from softform_core.paths import models_dir
from softform_core.robots import load_robot
from softform_core.robots.earlier_form import earlier_fingerprint
from softform_core.simulation.generate import generate
from softform_core.simulation.sampling import inflations
from softform_core.simulation.store import open_simulation

PROVENANCE = {"seed": 0, "source": "test", "git_revision": "none", "created": "now"}
EARLIER = """
name: little
title: A coarse membrane over four chambers
source: test
membrane: {width: 0.2, length: 0.2, thickness: 0.002, rows: 2, columns: 2, cells: 8, density: 1080.0,
           material: {law: yeoh, coefficients: [160000.0, 1000.0, 4000.0]}, wall_stiffness: 2000.0}
actuation: {pressure_min: 0.0, pressure_max: 5000.0, slew_rate: 4000.0}
surface: {rows: 6, columns: 6, degree: 3}
board: {channels: [3, 2, 1, 0]}
"""


def run(*arguments: str | Path) -> str:
    done = CliRunner().invoke(convert, [str(argument) for argument in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_an_earlier_robot_names_the_command_that_converts_it(tmp_path: Path) -> None:
    path = tmp_path / "little.yaml"
    path.write_text(EARLIER)
    with pytest.raises(SoftformError, match=r"softform convert .*little\.yaml"):
        load_robot(path)
    assert "robot converted" in run(path)
    robot = load_robot(path, "surface")
    assert (robot.devices[0].channels, robot.actuators, robot.surfaces[0].rows) == (
        [3, 2, 1, 0],
        ["c1", "c2", "c3", "c4"],
        6,
    )
    assert "nothing to convert" in run(path)
    assert (tmp_path / "little.yaml.old").read_text() == EARLIER


@pytest.mark.parametrize(("name", "before"), [("membrane", "f42d0a245cdeac6a"), ("three_chamber", "41c009194216a59d")])
def test_the_fingerprint_of_the_earlier_form_is_that_of_files_then_written(name: str, before: str) -> None:
    assert earlier_fingerprint(load_robot(name)) == before


def test_earlier_models_and_stores_are_read_once_converted(tmp_path: Path) -> None:
    robot = load_robot("membrane")
    before = earlier_fingerprint(robot)
    folder, card = tmp_path / "membrane", tmp_path / "membrane" / "forward_kinematics.json"
    shutil.copytree(models_dir() / "membrane", folder)
    card.write_text(json.dumps(json.loads(card.read_text()) | {"robot_fingerprint": before}))
    with pytest.raises(SoftformError, match="softform convert"):
        load_forward_kinematics(robot, folder)
    assert "model card converted" in run(folder, "--robot", "membrane")
    load_forward_kinematics(robot, folder)

    path = tmp_path / "little.yaml"
    path.write_text(EARLIER)
    run(path)
    little, store = load_robot(path), tmp_path / "little.zarr"
    generate(little, inflations(little, 2), store, jobs=1, progress=False)
    zarr.open_group(store, mode="r+").attrs["robot_fingerprint"] = earlier_fingerprint(little)
    with pytest.raises(SoftformError, match="softform convert"):
        open_simulation(store, little)
    with pytest.raises(SoftformError, match="was made for robot 'little'"):
        run(store, "--robot", "membrane")
    assert "store converted" in run(store, "--robot", path)
    assert len(open_simulation(store, little)) == 2


def test_earlier_frames_of_scans_and_markers_are_read_once_converted(tmp_path: Path) -> None:
    robot = load_robot("membrane")
    scans, markers, actuations = tmp_path / "frames.zarr", tmp_path / "markers.zarr", np.full((3, 9), 2000.0)
    create_frames(scans, robot, actuations, PROVENANCE | {"via": "scanner"})
    create_marker_frames(markers, robot, actuations, ["a", "b"], np.zeros((2, 3)), PROVENANCE | {"via": "mocap"})
    for store, opened in ((scans, open_frames), (markers, open_marker_frames)):
        zarr.open_group(store, mode="r+").attrs["robot_fingerprint"] = earlier_fingerprint(robot)
        with pytest.raises(SoftformError, match=f"softform convert {store} --robot membrane"):
            opened(store, robot)
        assert "store converted" in run(store, "--robot", "membrane")
        np.testing.assert_array_equal(opened(store, robot).actuation, actuations)
        assert "nothing to convert" in run(store, "--robot", "membrane")


def test_an_earlier_reality_becomes_one_with_a_body(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("{name: mine, title: Mine, rod: {elements: 5}, hysteresis: 10.0}")
    assert "reality converted" in run(path)
    assert yaml.safe_load(path.read_text())["body"] == {"kind": "rod", "elements": 5}


def test_what_cannot_be_converted_says_why(tmp_path: Path) -> None:
    path = tmp_path / "other.yaml"
    path.write_text("{colour: red}")
    with pytest.raises(SoftformError, match="neither a robot nor a reality"):
        run(path)
    with pytest.raises(SoftformError, match="--robot NAME"):
        run(models_dir() / "membrane")
