"""Where an installed wheel finds what ships, and where it writes."""

from pathlib import Path

import pytest

from softform_core import paths
from softform_core.errors import SoftformError


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    """The package as a wheel installs it, without a checkout around it, and a working folder elsewhere."""
    package = tmp_path / "site-packages" / "softform_core"
    robots = package / "shipped" / "config" / "robots"
    robots.mkdir(parents=True)
    (robots / "membrane.yaml").write_text("name: membrane")
    monkeypatch.setattr(paths, "__file__", str(package / "paths.py"))
    monkeypatch.setattr(paths, "_SHIPPED", package / "shipped")
    for name in ("SOFTFORM_HOME", "SOFTFORM_CONFIG_PATH", "SOFTFORM_DATA", "SOFTFORM_RUNS", "AMENT_PREFIX_PATH"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "lab").mkdir()
    monkeypatch.chdir(tmp_path / "lab")
    return package


def test_a_wheel_reads_what_ships_and_writes_beside_its_user(wheel, tmp_path):
    assert paths.robot_file("membrane").is_relative_to(wheel)
    written = [paths.models_of("membrane"), paths.models_of("other"), paths.data_dir(), paths.runs_dir()]
    lab = Path.cwd()
    assert written == [lab / "models/membrane", lab / "models/other", lab / "data", lab / "runs"]
    assert paths.models_dir() == lab / "models"


def test_a_folder_of_ones_own_and_a_checkout_come_before_the_wheel(wheel, tmp_path, monkeypatch):
    for place in ("own", "checkout"):
        (tmp_path / place / "config" / "robots").mkdir(parents=True)
    (tmp_path / "own/config/robots/mine.yaml").write_text("name: mine")
    monkeypatch.setenv("SOFTFORM_CONFIG_PATH", str(tmp_path / "own"))
    assert paths.models_of("mine") == tmp_path / "own/models/mine"
    assert paths.models_of("membrane") == tmp_path / "lab/models/membrane"
    monkeypatch.setenv("SOFTFORM_HOME", str(tmp_path / "checkout"))
    assert paths.data_dir() == tmp_path / "checkout/data"
    assert paths.models_of("mine") == tmp_path / "own/models/mine"


@pytest.mark.parametrize("name", ["a" * 300, "a" * 300 + ".yaml"])
def test_a_name_that_no_disk_takes_is_not_there(name):
    with pytest.raises(SoftformError, match="There is no|does not exist"):
        paths.robot_file(name)
