"""The SROS2 policy names what the code uses, and keeps from each enclave what is not for it."""

import ast
from fnmatch import fnmatchcase
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[1]
POLICY = ROOT / "config" / "security" / "policies" / "softform.policy.xml"
NAMESPACE = "/softform"
ROLES = {"create_publisher": "publish", "create_subscription": "subscribe"}
ROLES |= {"create_service": "reply", "create_client": "request"}
ROLES |= {"CheckedAction": "execute", "ActionCaller": "call"}

ENCLAVES = {
    "softform_actuation": ["driver"],
    "softform_rig": ["driver"],
    "softform_client": ["planner"],
    **dict.fromkeys(("softform_bringup", "softform_capture", "softform_ik", "softform_inference"), ["stack"]),
    "softform_collect/client.py": ["planner"],
    "softform_console": ["planner"],
    "softform_collect": ["stack"],
    "softform_shaping": ["stack"],
    "softform_shaping/object_rig_node.py": ["driver"],
    "softform_ros/command_lease.py": ["stack", "planner"],
    "softform_ros/asked.py": ["stack", "planner"],
    "softform_ros/diagnostics.py": ["driver", "stack"],
    "softform_ros/stack_state.py": ["planner", "observer"],
    "softform_ros/frames.py": ["stack", "planner"],
    "softform_ros/service_calls.py": ["planner", "observer"],
    "softform_tools/status": ["planner", "observer"],
    "softform_tools/ros_checks.py": ["planner", "observer"],
}
"""Which enclaves use the names in a package or file; the most exact line counts."""

NOT_LITERAL = {
    "softform_capture": {"/camera/points", "/image", "mocap/markers"},  # parameters
    "softform_client": {"target_shape", "target_mesh", "target_points", "target_tip", "softform_ik:actions"},
    "softform_collect": {"actuator_state", "driver_state", "captured_cloud", "captured_markers"},
    "softform_console": {"actuator_state", "servo_state", "predicted_mesh", "captured_cloud", "target_mesh"},
    "softform_ik": {"target_shape", "target_tip"},
    "softform_bringup": {"scanner/get_state", "actuation/change_state", "collector/get_parameters"},
    "softform_ros": {"actuation/get_parameters", "stop"},
    "softform_tools": {"actuator_state", "driver_state", "scanner/get_state"},
}
"""Samples of what stands in variables."""


def allowed():
    """By enclave and role: patterns of full names."""
    found = {}
    for enclave in ElementTree.parse(POLICY).getroot().iter("enclave"):
        name = enclave.get("path").removeprefix(f"{NAMESPACE}/")
        for group in enclave.iterfind("profiles/profile/*"):
            for role, word in group.attrib.items():
                assert word == "ALLOW"
                found.setdefault((name, role), set()).update(full(each.text) for each in group)
    return found


def full(name):
    return name if name.startswith("/") else f"{NAMESPACE}/{name}"


ALLOWED = allowed()


def may(enclave, role, name):
    return any(fnmatchcase(full(name), pattern) for pattern in ALLOWED.get((enclave, role), ()))


def uses():
    """File, role and name (None in a variable) of each topic, service and action in the code of nodes and commands."""
    for path in sorted((ROOT / "src").glob("softform_*/softform_*/**/*.py")):
        place = f"{path.relative_to(ROOT / 'src' / path.parts[len(ROOT.parts) + 1])}"
        lines = [key for key in ENCLAVES if place == key or place.startswith(f"{key}/")]
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (lines and isinstance(call, ast.Call)):
                continue
            function = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            if function in ROLES:
                at = 2 if function == "CheckedAction" else 1
                name = call.args[at].value if isinstance(call.args[at], ast.Constant) else None
                yield max(lines, key=len), place, ROLES[function], name


def test_all_that_the_code_uses_is_allowed_to_those_who_use_it():
    seen, in_variables = set(), set()
    for line, place, role, name in uses():
        package = line.split("/")[0]
        if name is None:
            in_variables.add(package)
        else:
            seen.add(name)
            for enclave in ENCLAVES[line]:
                assert may(enclave, role, name), f"{place}: {enclave} may not {role} {name}"
    assert {"driver_state", "actuator_command", "lease", "stop", "reset", "collect_dataset", "/tf"} <= seen
    assert in_variables <= NOT_LITERAL.keys()


@pytest.mark.parametrize(
    ("enclave", "role", "names"),
    [
        ("stack", "subscribe", NOT_LITERAL["softform_capture"] | NOT_LITERAL["softform_collect"]),
        ("stack", "subscribe", {"target_shape", "target_mesh", "target_points", "target_tip"}),
        ("stack", "request", NOT_LITERAL["softform_bringup"]),
        ("stack", "execute", {"reach_shape", "follow_waypoints", "capture_shape", "plan_to_shape"}),
        ("driver", "subscribe", {"actuator_state", "actuation_history", "driver_state"}),
        ("planner", "publish", {"target_shape", "target_mesh", "target_points", "target_tip"}),
        ("planner", "call", {"reach_shape", "follow_waypoints", "capture_shape", "plan_to_shape", "collect_dataset"}),
        ("planner", "request", NOT_LITERAL["softform_ros"] | {"reset", "calibrate", "release", "shutdown"}),
        ("observer", "request", NOT_LITERAL["softform_ros"] | {"scanner/get_state"}),
        ("observer", "subscribe", {"actuator_state", "driver_state", "/diagnostics", "reach_shape/_action/feedback"}),
    ],
)
def test_what_stands_in_variables_is_allowed(enclave, role, names):
    for name in names:
        assert may(enclave, role, name), f"{enclave} may not {role} {name}"


def test_what_is_dangerous_is_for_one_enclave_alone():
    def who(role, name):
        return {enclave for enclave, _ in ALLOWED if may(enclave, role, name)}

    assert who("publish", "driver_state") == who("publish", "actuator_state") == {"driver"}
    assert who("reply", "stop") == who("reply", "reset") == who("reply", "lease") == {"driver"}
    assert who("request", "reset") == who("request", "calibrate") == {"planner"}
    assert who("request", "actuation/change_state") == {"stack"}
    assert who("request", "stop") == {"stack", "planner", "observer"}
    assert who("call", "shape_object") == {"planner"}
    assert who("publish", "camera/color/image_raw") == who("publish", "rig/true_object") == {"driver"}
    assert who("publish", "actuator_command") == who("request", "lease") == {"stack", "planner"}
    assert who("request", "rig/inject_fault") == who("request", "actuation/set_parameters") == set()
    assert who("call", "reach_shape") == {"planner"}
    assert ALLOWED["observer", "publish"] == {"/rosout", "/parameter_events"}
