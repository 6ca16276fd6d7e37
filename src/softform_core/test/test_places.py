"""A user's own robots, realities and models outside the checkout, by SOFTFORM_CONFIG_PATH."""

import shutil

import pytest
import yaml

from softform_core.errors import SoftformError
from softform_core.networks.store import load_forward_kinematics
from softform_core.paths import check_reality, described_names, home, models_dir, models_of
from softform_core.robots import load_robot


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Two folders of a user's; the first one describes robot `mine` and a reality."""
    folders = [tmp_path / "lab", tmp_path / "desk"]
    for folder in folders:
        (folder / "config" / "robots").mkdir(parents=True)
    content = yaml.safe_load((home() / "config" / "robots" / "membrane.yaml").read_text())
    (folders[0] / "config" / "robots" / "mine.yaml").write_text(yaml.safe_dump(content | {"name": "mine"}))
    realities = folders[0] / "config" / "realities" / "membrane"
    realities.mkdir(parents=True)
    (realities / "bench_2.yaml").write_text("name: bench_2\ntitle: ''\n")
    monkeypatch.setenv("SOFTFORM_CONFIG_PATH", ":".join(map(str, folders)))
    return folders


def test_robots_and_realities_are_known_by_name_beside_those_that_ship(own):
    assert load_robot("mine").given_as == "mine"
    assert {"mine", "membrane"} <= set(described_names("robots"))
    check_reality("bench_2", "membrane")
    check_reality("default", "membrane")
    with pytest.raises(SoftformError, match="no description 'yours'.*mine"):
        load_robot("yours")


def test_models_lie_beside_the_description_or_where_they_are(own):
    assert models_of("mine") == own[0] / "models" / "mine"
    assert models_of("membrane") == models_dir() / "membrane"
    assert models_of("nobody") == own[0] / "models" / "nobody"
    shutil.copytree(models_dir() / "membrane", own[1] / "models" / "membrane")
    assert models_of("membrane") == own[1] / "models" / "membrane"
    for file in (own[1] / "models" / "membrane").glob("forward_kinematics.*"):
        file.unlink()
    with pytest.raises(SoftformError, match="desk/models/membrane"):
        load_forward_kinematics(load_robot("membrane"))


def test_a_folder_that_is_not_there_is_named_with_what_makes_it(own, monkeypatch):
    monkeypatch.setenv("SOFTFORM_CONFIG_PATH", f"{own[0]}/typo")
    with pytest.raises(SoftformError, match="typo, which is no folder.*mkdir -p .*typo/config/robots"):
        load_robot("membrane")
