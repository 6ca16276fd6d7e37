"""ROS parameter files, read strictly: what rcl would end a node for, or silently take for something else, is said."""

import re
from pathlib import Path
from typing import Any

from softform_core.errors import SoftformError
from softform_core.yaml_files import read_yaml

VALUES = "ros__parameters"


def read_parameter_file(path: Path) -> dict[str, dict[str, Any]]:
    """Read a file: for the nodes that it is for (`is_for`), values by name, with dots between parts.

    Whole numbers in a list with decimals, which rcl does not take, are decimals.

    Raises:
        SoftformError: If it cannot be read, is no parameter file, or has a value that ROS cannot pass.
    """
    found: dict[str, dict[str, Any]] = {}

    def read_sections(content: Any, space: str) -> None:
        if not isinstance(content, dict):
            raise SoftformError(
                f"{path}: '{space.removeprefix('/') or content}' stands outside of {VALUES}.",
                f"Write '/**:', below it '{VALUES}:', and below that NAME: VALUE.",
            )
        for name, below in content.items():
            if name == VALUES:
                found[space] = _flat({} if below is None else below, "", path)
            else:
                read_sections(below, f"{space}/{str(name).strip('/')}")

    read_sections(read_yaml(path) or {}, "")
    return found


def _flat(values: Any, parent: str, path: Path) -> dict[str, Any]:
    if not isinstance(values, dict):
        raise SoftformError(f"{path}: {VALUES} is '{values}'.", "Write NAME: VALUE below it.")
    flat: dict[str, Any] = {}
    for last, value in values.items():
        name = f"{parent}{last}"
        if isinstance(value, dict):
            flat |= _flat(value, f"{name}.", path)
            continue
        items = value if isinstance(value, list) else [value]
        kinds = {type(item) for item in items}
        if kinds == {int, float}:
            kinds, items = {float}, [float(item) for item in items]
        if len(kinds) != 1 or not kinds <= {bool, int, float, str}:
            raise SoftformError(
                f"{path}: parameter {name} is {'empty (null)' if value is None else value}, which ROS cannot pass.",
                "Give a value, or a list of values of one type; leave it out for its default.",
            )
        flat[name] = items if isinstance(value, list) else value
    return flat


def is_for(section: str, node: str) -> bool:
    """Return whether a section of a parameter file, such as `/**`, is for a node of some full name."""
    parts = [
        ".*" if part == "**" else re.escape(part).replace(r"\*", "[^/]*") for part in section.strip("/").split("/")
    ]
    return re.fullmatch("/".join(parts).replace("/.*", "(/.*)?").replace(".*/", "(.*/)?"), node.strip("/")) is not None
