"""What can be read of the images where no container engine runs: targets, launch files, arguments, pins."""

import re
import shlex
from pathlib import Path

import pytest
import yaml

from softform_actuation.state_files import OVERRIDE, SHARED
from softform_launch.launch_file import list_arguments

ROOT = Path(__file__).parents[1]
DOCKERFILE = (ROOT / "docker" / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
SERVICES = yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text(encoding="utf-8"))["services"]
LINES = {line.split("==")[0].lower() for line in (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()}


def drivers_packages():
    return re.search(r"--packages-select\s+([^\n\"]+)", stage("driver"))[1].split()


def stage(name):
    return re.split(r"^FROM ", DOCKERFILE.split(f" AS {name}\n")[1], flags=re.MULTILINE)[0]


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_starts_a_launch_file_with_arguments_that_it_has(name):
    service = SERVICES[name]
    assert f" AS {service['build']['target']}\n" in DOCKERFILE
    words = shlex.split(re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", service["command"]))
    file = next(word for word in words if word in ("softform", "driver.launch.xml")).removesuffix(".launch.xml")
    known = {argument.name for argument in list_arguments(ROOT / "launch" / f"{file}.launch.xml")}
    assert {word.split(":=")[0] for word in words if ":=" in word} <= known
    assert service["ulimits"]["rtprio"] >= 80 and "SYS_NICE" in service["cap_add"]


def test_the_driver_gets_the_serial_device_and_the_machines_place_of_the_latch():
    driver, place = SERVICES["driver"], str(SHARED)
    assert driver["devices"] and f"{place}:{place}" in driver["volumes"]
    assert driver["environment"][OVERRIDE] == place, "a home inside the container is never the latch's place"
    assert driver["environment"].items() > SERVICES["stack"]["environment"].items()
    assert re.search(rf"install -d -o softform [^&]*{place}\b", stage("ros")), "not writable without the mount"


def test_the_driver_has_every_family_of_devices():
    families = {path.parent.name for path in ROOT.glob("src/*/setup.py") if '"softform.devices"' in path.read_text()}
    assert len(families) >= 2 and families <= set(drivers_packages())


def test_no_image_runs_as_root_or_unpinned():
    for name in ("driver", "stack"):
        users = re.findall(r"^USER (\w+)", stage("ros") + stage(name), flags=re.MULTILINE)
        assert users[-1] == "softform"
    assert re.search(r"^ARG ROS_IMAGE=ros:jazzy-ros-base-noble$", DOCKERFILE, flags=re.MULTILINE)


def test_the_drivers_packages_are_pinned_and_light():
    installed = re.search(r"--constraint requirements.txt ([^\n&]+)", stage("driver"))[1].split()
    loose = [name for name in installed if "==" not in name]
    assert {name.lower() for name in loose} <= LINES
    assert not {"torch", "open3d-cpu", "scipy"} & set(loose)
    assert all((ROOT / "src" / package / "package.xml").is_file() for package in drivers_packages())


def test_what_the_stages_copy_is_there():
    for sources in re.findall(r"^COPY --chown=softform (.+)$", DOCKERFILE, flags=re.MULTILINE):
        assert all((ROOT / source).exists() for source in sources.split()[:-1])
