"""Parameters declared from one table, from which the documentation is made too."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.node import Node

from softform_core.errors import SoftformError
from softform_core.paths import DEFAULT_ROBOT

ParameterValue = bool | int | float | str | list[float] | list[str]


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

    def check(self, value: Any) -> None:
        """Raise `SoftformError` if `value` lies outside the table's bounds."""
        if self.choices and value not in self.choices:
            raise SoftformError(f"Parameter {self.name} is '{value}'.", f"Set it to one of: {', '.join(self.choices)}.")
        for number in value if isinstance(value, list) else [value]:
            if not isinstance(number, int | float) or isinstance(number, bool):
                continue
            too_low = self.minimum is not None and not number >= self.minimum
            too_high = self.maximum is not None and not number <= self.maximum
            if too_low or too_high:
                raise SoftformError(
                    f"Parameter {self.name} is {value}.", f"It must lie between {self.minimum} and {self.maximum}."
                )


def declare_parameters(node: Node, table: Iterable[Parameter]) -> None:
    """Declare every row of `table` on `node`."""
    for row in table:
        node.declare_parameter(row.name, row.default, row.descriptor())


def read_parameters(node: Node, table: Iterable[Parameter]) -> Mapping[str, Any]:
    """Read the values of every row of `table` from `node`.

    Raises:
        SoftformError: If a value lies outside its bounds.
    """
    values = {}
    for row in table:
        value = node.get_parameter(row.name).value
        if isinstance(row.default, list):
            value = list(value)
        row.check(value)
        values[row.name] = value
    return values


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
    Parameter("model", "", "folder of the trained N_fk; empty for the robot's own in `models`"),
    Parameter(
        "sim_to_real",
        "auto",
        "sim-to-real model: `auto` for the robot's own in `models` if there is one, `none`, or a folder",
    ),
)
"""Parameters of every node that predicts shapes."""
