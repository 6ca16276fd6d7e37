"""What was written before robots had bodies: how such files are recognised and what converts them."""

import hashlib
import json
from pathlib import Path
from typing import Any

from softform_core.robots.robot import Robot


def earlier_fingerprint(robot: Robot) -> str | None:
    """Fingerprint that the same robot had in stores and models before descriptions had a body.

    None if its description could not be written in that form.
    """
    kind = robot.body.kind
    lowest, highest = robot.drive.minimum, robot.drive.maximum
    if kind not in ("membrane", "rod") or isinstance(lowest, list) or isinstance(highest, list):
        return None
    if len(robot.surfaces) > 1 or robot.actuation_map.kind not in ("identity", "antagonistic"):
        return None
    body = robot.body.model_dump(mode="json", exclude={"kind"})
    decisive: dict[str, Any] = {"name": robot.name, kind: body}
    decisive["actuation"] = {"pressure_min": lowest, "pressure_max": highest, "slew_rate": None}
    if kind == "rod":
        decisive["antagonistic"] = robot.actuation_map.kind == "antagonistic"
    else:
        decisive["surface"] = robot.surfaces[0].model_dump(mode="json", exclude={"patch"})
    return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:16]


def step_for_other_robot(fingerprint: object, robot: Robot, path: Path, otherwise: str) -> str:
    """What to do about a store or model at `path` whose fingerprint is not the robot's."""
    if fingerprint == earlier_fingerprint(robot):
        return f"It is of an earlier form. Convert it: {conversion(path, robot)}"
    return otherwise


def conversion(path: Path, robot: Robot) -> str:
    """The command that converts a store or model of a robot."""
    return f"softform convert {path} --robot {robot.given_as}"


def robot_in_new_form(content: dict[str, Any]) -> dict[str, Any]:
    """An earlier description of a robot, as parsed YAML, in the form with a body."""
    kind = "rod" if "rod" in content else "membrane"
    actuation = content["actuation"]
    new: dict[str, Any] = {key: content[key] for key in ("name", "title", "source")}
    new["body"] = {"kind": kind} | content[kind]
    new["actuators"] = {
        "quantity": "pressure",
        "minimum": actuation["pressure_min"],
        "maximum": actuation["pressure_max"],
        "slew_rate": actuation["slew_rate"],
        "safe": 0.0,
    }
    if content.get("antagonistic"):
        pairs = content["rod"]["sections"] * len(content["rod"]["section"]["chambers"]) // 2
        new["actuators"]["names"] = [f"s{pair + 1}{side}" for pair in range(pairs) for side in "+-"]
        new["actuation_map"] = {"kind": "antagonistic"}
    new["devices"] = [{"name": "openpneu", "channels": content["board"]["channels"]}]
    if kind == "membrane":
        new["surfaces"] = [{"patch": "sheet"} | content["surface"]]
    else:
        new["frames"] = {"tip": {"segments": content["segments"]} | content["networks"]}
        # The tolerances that the launch files gave to robots with a tip.
        new["tolerances"] = {
            "settle": 300.0, "arrive": 1000.0, "follow": 4000.0, "beyond_range": 5000.0, "vent_threshold": 1500.0,
        }  # fmt: skip
    if "base_markers" in content:
        new["base_markers"] = content["base_markers"]
    return new


def reality_in_new_form(content: dict[str, Any]) -> dict[str, Any]:
    """An earlier description of a reality, as parsed YAML, in the form with a body."""
    kind = "rod" if "rod" in content else "membrane"
    return {"body": {"kind": kind} | (content.get(kind) or {})} | {k: v for k, v in content.items() if k != kind}
