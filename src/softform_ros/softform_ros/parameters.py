"""Parameters declared from one table, from which the documentation is made too."""

import json
import math
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.node import Node

from softform_core.errors import SoftformError
from softform_core.parameter_files import VALUES, is_for, read_parameter_file
from softform_core.paths import DEFAULT_ROBOT
from softform_core.text import nearest, printable

Settings = TypeVar("Settings")
ParameterValue = bool | int | float | str | list[float] | list[str]

_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text (in quotes if it is digits)"}


@dataclass(frozen=True)
class Parameter:
    """One row of a node's parameter table.

    Args:
        name: Name of the ROS parameter.
        default: Default value; its Python type is the parameter's type.
        description: Meaning, with the unit.
        minimum: Least allowed number.
        maximum: Greatest allowed number.
        choices: Allowed strings; empty for any.
        read_only: Whether it is fixed once the node runs.
    """

    name: str
    default: ParameterValue
    description: str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    read_only: bool = True

    def descriptor(self) -> ParameterDescriptor:
        """Return the row as rclpy wants it."""
        descriptor = ParameterDescriptor(description=self.description, read_only=self.read_only)
        if self.choices:
            descriptor.additional_constraints = "one of: " + ", ".join(self.choices)
        if self.minimum is not None and self.maximum is not None:
            if isinstance(self.default, int) and not isinstance(self.default, bool):
                descriptor.integer_range = [IntegerRange(from_value=int(self.minimum), to_value=int(self.maximum))]
            elif isinstance(self.default, float):
                descriptor.floating_point_range = [
                    FloatingPointRange(from_value=float(self.minimum), to_value=float(self.maximum))
                ]
        return descriptor

    @property
    def _kind(self) -> type[Any]:
        """Type of the parameter, of a list that of its elements."""
        return type(self.default[0]) if isinstance(self.default, list) else type(self.default)

    def taken(self, value: Any) -> ParameterValue:
        """Return a value as the parameter's type, for which whole numbers are floats, too.

        Raises:
            SoftformError: If it has another type, is not finite, or lies outside the table's bounds.
        """
        is_list = not isinstance(value, str) and hasattr(value, "__iter__")
        items = [self._element(item) for item in (value if is_list else [value])]
        if is_list != isinstance(self.default, list) or None in items:
            shown = f"'{value}'" if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else value
            low, high = (None if one is None else f"{one:.10g}" for one in (self.minimum, self.maximum))
            bounds = f" from {low}" * (low is not None) + f" to {high}" * (high is not None)
            takes = f"one of: {', '.join(self.choices)}" if self.choices else f"{_KINDS[self._kind]}{bounds}"
            raise SoftformError(
                f"Parameter {self.name} is {printable(str(shown))}.",
                f"It takes {'a list, each element ' * isinstance(self.default, list)}{takes}.",
            )
        return items if is_list else items[0]

    def _element(self, given: Any) -> Any:
        """Return one value, or None if it is not taken."""
        value: Any = float(given) if self._kind is float and type(given) is int else given
        if type(value) is not self._kind or (self.choices and value not in self.choices):
            return None
        if isinstance(value, str):  # that may be a path, which each node would take in a way of its own
            return os.path.expanduser(value) if value.startswith("~/") else value
        low = -math.inf if self.minimum is None else self.minimum
        high = math.inf if self.maximum is None else self.maximum
        return value if isinstance(value, bool) or (math.isfinite(value) and low <= value <= high) else None


def declare_parameters(node: Node, table: Iterable[Parameter]) -> None:
    """Declare every row of `table` on `node`.

    Raises:
        SoftformError: If a given value has another type than the table's or lies outside its bounds; the message names
            file, node, parameter and value, and what it takes.
    """
    given = node._parameter_overrides
    for row in table:
        try:
            value = row.taken(given[row.name].value) if row.name in given else row.default
        except SoftformError as error:
            raise SoftformError(
                f"{_origin(node, row.name)}node {node.get_fully_qualified_name()}: {error.message}", error.next_step
            ) from error
        node.declare_parameter(row.name, value, row.descriptor(), ignore_override=True)


def tell_unknown_parameters(node: Node) -> None:
    """Say which parameters were given that the node, which has declared all of its own, does not know."""
    known = node.get_parameters_by_prefix("")
    for name in node._parameter_overrides:
        if name not in known and not name.startswith("qos_overrides."):
            node.get_logger().warning(
                f"{_origin(node, name)}parameter {name} is not used: this node has none of that name"
                f"{nearest(name, known)}. docs/nodes lists them."
            )


def _origin(node: Node, name: str) -> str:
    """Return the file that gives a parameter, with a colon; empty where the command line does, which is stronger."""
    if not any(word.startswith(f"{name}:=") for word in sys.argv):
        for at in reversed(_files(sys.argv)):
            for section, values in read_parameter_file(Path(sys.argv[at])).items():
                if name in values and is_for(section, node.get_fully_qualified_name()):
                    return f"{sys.argv[at]}: "
    return ""


def _files(words: Sequence[str]) -> list[int]:
    """Return the positions of parameter files among the words of a command."""
    return [at + 1 for at, word in enumerate(words[:-1]) if word == "--params-file"]


def with_read_files(words: Sequence[str]) -> list[str]:
    """Return the words of a node's command; its parameter files are read strictly, and handed on to rcl in memory.

    Raises:
        SoftformError: If a file is wrong.
    """
    changed = list(words)
    for at in _files(words):
        content = {section: {VALUES: values} for section, values in read_parameter_file(Path(words[at])).items()}
        descriptor = os.memfd_create("parameters")
        text = json.dumps(content, ensure_ascii=False)  # escaped pairs of surrogates are no YAML
        os.write(descriptor, text.encode())
        changed[at] = f"/proc/self/fd/{descriptor}"
    return changed


def read_parameters(node: Node, table: Iterable[Parameter]) -> Mapping[str, Any]:
    """Read the values of every row of `table` from `node`.

    Raises:
        SoftformError: If a value lies outside its bounds.
    """
    return {row.name: row.taken(node.get_parameter(row.name).value) for row in table}


def settings_from(kind: type[Settings], values: Mapping[str, Any], **others: Any) -> Settings:
    """Return settings whose fields have the names of parameters, from their values; others are given."""
    named = {one.name: values[one.name] for one in fields(kind) if one.name in values}  # type: ignore[arg-type]
    return kind(**named | others)


def parameter_table_markdown(table: Iterable[Parameter]) -> str:
    """Return the table as Markdown, for `docs/nodes`."""
    lines = ["| parameter | type | default | range | what it decides |", "|---|---|---|---|---|"]
    for row in table:
        kind = type(row.default).__name__
        if isinstance(row.default, list):
            kind = f"list of {type(row.default[0]).__name__ if row.default else 'str'}"
        if row.choices:
            bounds = ", ".join(f"`{choice}`" for choice in row.choices)
        elif row.minimum is not None or row.maximum is not None:
            low = "" if row.minimum is None else f"{row.minimum:g}"
            high = "" if row.maximum is None else f"{row.maximum:g}"
            bounds = f"{low} … {high}"
        else:
            bounds = ""
        default = f"`{row.default}`" if row.default != "" else "(none)"
        lines.append(f"| `{row.name}` | {kind} | {default} | {bounds} | {row.description} |")
    return "\n".join(lines)


MODEL_PARAMETERS = (
    Parameter("robot", DEFAULT_ROBOT, "the robot: a name in `config/robots`, or the path of a description"),
    Parameter(
        "model",
        "auto",
        "kind of its model: `learned`, `fem` (its simulator), another package's, or `auto`: learned if there is one",
    ),
    Parameter("model_folder", "", "folder of the trained N_fk; empty for the robot's own in `models`"),
    Parameter(
        "sim_to_real",
        "auto",
        "sim-to-real model: `auto` for the robot's own in `models` if there is one, `none`, or a folder",
    ),
)
"""Parameters of every node that predicts shapes."""
