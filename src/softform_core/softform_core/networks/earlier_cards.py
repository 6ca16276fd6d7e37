"""Model cards as they were before all models had one: how they are recognised, and how they are converted."""

from typing import Any

from softform_core.networks.card import actuation_fields, surface_entries
from softform_core.robots import Robot

_MODELS = {
    "softform/forward-kinematics": "surface kinematics",
    "softform/sim-to-real": "surface sim-to-real",
    "softform/tip-kinematics": "tip kinematics",
    "softform/tip-sim-to-real": "tip sim-to-real",
}


def is_earlier_card(content: Any) -> bool:
    """Whether parsed JSON is a card of an earlier form."""
    return isinstance(content, dict) and content.get("schema_name") in _MODELS and content.get("schema_version") == 1


def card_in_new_form(content: dict[str, Any], robot: Robot) -> dict[str, Any]:
    """A card for which `is_earlier_card` holds, as a `ModelCard`; the robot's description gives what it left out."""
    gone = {"schema_name", "schema_version", "chambers", "actuators", "surface_degree"}
    gone |= {f"{quantity}_{end}_pa" for quantity in ("pressure", "actuation") for end in ("min", "max")}
    new: dict[str, Any] = {"schema_name": "softform/model", "schema_version": 2}
    new["model"] = _MODELS[content["schema_name"]]
    new |= actuation_fields(robot)
    new |= {name: value for name, value in content.items() if name not in gone}
    if new["model"].startswith("surface"):
        new["surfaces"] = surface_entries(robot)
    if new["model"] == "surface kinematics":
        new["architecture"] = {k: v for k, v in content["architecture"].items() if k not in ("inputs", "outputs")}
    elif new["model"] == "surface sim-to-real":
        new["forward_kinematics"] = {"weights_sha256": content["forward_kinematics"]["weights_sha256"]}
    return new
