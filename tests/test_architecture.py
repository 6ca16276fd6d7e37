"""Imports point one way: nodes -> softform_ros -> core; core knows no ROS; no node package knows another."""

import ast
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src"
NODE_PACKAGES = {
    "softform_pneumatics",
    "softform_rig",
    "softform_capture",
    "softform_inference",
    "softform_ik",
}
ROS = {"rclpy", "std_msgs", "sensor_msgs", "geometry_msgs", "diagnostic_msgs", "lifecycle_msgs", "std_srvs"}
PYTHON_PACKAGES = sorted(path.parent.name for path in SRC.glob("softform_*/setup.py"))


def imported_packages(package: str) -> dict[str, set[str]]:
    found = {}
    for path in (SRC / package / package).rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                names.add(node.module.split(".")[0])
        found[str(path.relative_to(SRC))] = names
    assert found, package
    return found


def allowed(package: str) -> set[str]:
    if package == "softform_core":
        return {"softform_core"}
    if package == "softform_ros":
        return {"softform_core", "softform_interfaces", "softform_ros"}
    ours = {"softform_core", "softform_interfaces", "softform_ros", package}
    # Bring-up stands above the nodes: its demo talks to them as any planner does, through the client.
    return ours | {"softform_ik"} if package == "softform_bringup" else ours


@pytest.mark.parametrize("package", PYTHON_PACKAGES)
def test_a_package_imports_only_what_lies_below_it(package):
    for path, names in imported_packages(package).items():
        beyond = {name for name in names if name.startswith("softform_")} - allowed(package)
        assert not beyond, f"{path} imports {beyond}"
        if package == "softform_core":
            assert not names & ROS, f"{path} imports ROS"


def test_the_packages_are_those_of_the_design():
    assert set(PYTHON_PACKAGES) == NODE_PACKAGES | {"softform_core", "softform_ros", "softform_bringup"}


def test_no_timer_follows_the_time_of_day():
    """rclpy's do, unless they are told otherwise: set back by an hour, they are not called for an hour."""
    for path in SRC.glob("softform_*/softform_*/**/*.py"):
        if path.name != "timers.py":
            assert ".create_timer(" not in path.read_text(encoding="utf-8"), path


def test_the_rig_and_the_driver_share_no_protocol_code():
    assert "softform_pneumatics" not in set().union(*imported_packages("softform_rig").values())
