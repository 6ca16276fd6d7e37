"""Launch files evaluated into a plain list of processes.

The format is a subset of the XML that the official `ros2 launch` reads, with the same meaning: variables and changes of
the environment last until the end of the `<group>` that makes them, an `<include>` shares the includer's, and an
attribute or tag that is not understood is an error.
"""

import json
import math
import os
import re
import shlex
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import yaml

from softform_core.errors import SoftformError
from softform_core.parameter_files import is_for, read_parameter_file
from softform_core.text import nearest
from softform_launch.launch_xml import Element, read_launch_xml
from softform_launch.substitutions import GivenValue, SubstitutionContext, package_prefix, substitute

ParameterScalar = bool | int | float | str
ParameterValue = ParameterScalar | list[bool] | list[int] | list[float] | list[str]

CONDITIONS = ("if", "unless")
ATTRIBUTES = {
    "launch": (),
    "arg": ("name", "default", "description", *CONDITIONS),
    "choice": ("value",),
    "let": ("name", "value", *CONDITIONS),
    "node": (
        *("pkg", "exec", "name", "namespace", "args", "output", "on_exit"),
        *("respawn", "respawn_delay", "respawn_max_retries", *CONDITIONS),
    ),
    "param": ("name", "value", "value-sep", "type", "from"),
    "remap": ("from", "to"),
    "env": ("name", "value"),
    "group": CONDITIONS,
    "include": ("file", *CONDITIONS),
    "set_env": ("name", "value", *CONDITIONS),
    "push_ros_namespace": ("namespace", *CONDITIONS),
}
ACTIONS = ("arg", "let", "node", "group", "include", "set_env", "push_ros_namespace")
CHILDREN = {
    "launch": ACTIONS,
    "group": ACTIONS,
    "node": ("param", "remap", "env"),
    "param": ("param",),
    "arg": ("choice",),
    "include": ("arg",),
}
PARAMETER_TYPES = ("bool", "int", "float", "str", "list_of_bool", "list_of_int", "list_of_float", "list_of_str")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class ProcessDescription:
    """One process to start.

    Args:
        name: Name shown in front of its output: the node's name, or the executable's where it has none.
        command: Program and arguments.
        environment: Variables set on top of the launcher's own.
        node: Full name of its node, such as `/softform/actuation`; empty where the executable names it.
        is_required: Whether its end ends the whole launch (`on_exit="shutdown"`).
        respawn: Whether it is started again after it ended.
        respawn_delay: Least time before that, s.
        respawn_max_retries: Most restarts; negative: no limit.
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    node: str = ""
    is_required: bool = False
    respawn: bool = False
    respawn_delay: float = 0.0
    respawn_max_retries: int = -1

    def shell_line(self) -> str:
        """Return the command as one line that a shell can run."""
        assignments = [f"{name}={shlex.quote(value)}" for name, value in self.environment.items()]
        return " ".join([*assignments, shlex.join(self.command)])


@dataclass(frozen=True)
class LaunchArgument:
    """One argument that a launch file declares; `default` is None where it must be given."""

    name: str
    default: str | None
    description: str
    choices: tuple[str, ...]


def list_arguments(file: Path) -> list[LaunchArgument]:
    """Return the arguments that a launch file declares itself, defaults unevaluated.

    Raises:
        LaunchFileError: If the file is not well-formed.
    """
    root = read_launch_xml(file)
    includes = [element for element in root.walk() if element.tag == "include"]
    passed = {id(child) for include in includes for child in include.children}
    return [
        LaunchArgument(
            element.attributes.get("name", ""),
            element.attributes.get("default"),
            element.attributes.get("description", ""),
            tuple(choice.attributes.get("value", "") for choice in element.children),
        )
        for element in root.walk()
        if element.tag == "arg" and id(element) not in passed
    ]


def load_launch_file(file: Path, arguments: Mapping[str, str] | None = None) -> list[ProcessDescription]:
    """Evaluate a launch file with the given arguments.

    Args:
        file: The `.launch.xml` file.
        arguments: Values of its `<arg>`s by name.

    Raises:
        LaunchFileError: With file, line and what to do, at anything that is not understood or not there.
        SoftformError: If an argument is given that no file declares.
    """
    given = {name: GivenValue(_at_home(value)) for name, value in (arguments or {}).items()}
    evaluation = _Evaluation(dict(given))
    evaluation.run_file(file.resolve(), None)
    for name, value in given.items():
        if name not in evaluation.declared:
            known = ", ".join(sorted(evaluation.declared)) or "none"
            raise SoftformError(
                f"{file} has no argument '{name}'{nearest(name, evaluation.declared)}.", f"It has: {known}."
            )
        came_to = evaluation.variables[name]
        if not value.is_used and (came_to is value or came_to != value):
            raise SoftformError(
                f"{name}:={value} is given and would not be used"
                f"{f' ({about})' if (about := evaluation.declared[name].rstrip('.')) else ''}.",
                "Leave it out, or give what it needs as well.",
            )
    _check_sections(evaluation)
    return evaluation.processes


def _at_home(path: str) -> str:
    """Return a path whose `~` is the home folder: the nodes would each take it in a way of its own.

    Raises:
        SoftformError: If it names a user that is not there.
    """
    expanded = os.path.expanduser(path)
    if expanded.startswith("~"):
        raise SoftformError(f"'{path}' names the home of a user that is not there.", "Write the path from / on.")
    return expanded


def _check_sections(evaluation: "_Evaluation") -> None:
    """Reject a parameter file with a section for a node that it is not given to, unless that is not started this time.

    Raises:
        SoftformError: With the file and the nearest name.
    """
    started = {process.node.rpartition("/")[2] for process in evaluation.processes}
    for path, (sections, nodes) in evaluation.parameter_files.items():
        for section in sections:
            is_elsewhere = section.rpartition("/")[2] in evaluation.node_names - started
            if not is_elsewhere and not any(not node or is_for(section, node) for node in nodes):
                raise SoftformError(
                    f"{path}: the section '{section}' is for none of the nodes to which the file is "
                    f"given{nearest(section, nodes)}.",
                    f"They are: {', '.join(nodes)}. Write one of them, or /** for all.",
                )


def _check(element: Element) -> None:
    """Check tags and attributes of `element` and of everything below it, also in branches that are not taken."""
    allowed = ATTRIBUTES[element.tag]
    for attribute in element.attributes:
        if attribute not in allowed:
            listed = ", ".join(allowed) or "none"
            raise element.error(
                f"<{element.tag}> has no attribute '{attribute}'.", f"Understood here: {listed}. Remove or correct it."
            )
    if all(condition in element.attributes for condition in CONDITIONS):
        raise element.error(f"<{element.tag}> has both 'if' and 'unless'.", "Keep one of them.")
    for child in element.children:
        if child.tag == "push-ros-namespace":
            child.tag = "push_ros_namespace"
        if child.tag not in CHILDREN.get(element.tag, ()):
            listed = ", ".join(CHILDREN.get(element.tag, ())) or "nothing"
            raise child.error(f"<{child.tag}> is not understood inside <{element.tag}>.", f"It may hold: {listed}.")
        if element.tag != "include":
            _check(child)
        elif strange := sorted(child.attributes.keys() - {"name", "value"}):
            raise child.error(f"<arg> inside <include> has no attribute '{strange[0]}'.", "Pass it as name and value.")


class _Evaluation:
    """State while files are evaluated: variables, environment and namespace of the current scope, and the outcome."""

    def __init__(self, variables: dict[str, str]) -> None:
        self.variables = variables
        self.changed_environment: dict[str, str] = {}
        self.namespace = ""
        self.open_files: list[Path] = []
        self.declared: dict[str, str] = {}
        self.node_names: set[str] = set()
        self.parameter_files: dict[Path, tuple[list[str], list[str]]] = {}
        self.processes: list[ProcessDescription] = []

    def run_file(self, file: Path, including: Element | None) -> None:
        if file in self.open_files:
            assert including is not None
            chain = " -> ".join(str(path.name) for path in [*self.open_files, file])
            raise including.error(f"the files include each other in a cycle: {chain}.", "Remove one of the includes.")
        if including is not None and not file.is_file():
            raise including.error(f"the included file {file} does not exist.", "Correct the attribute 'file'.")
        root = read_launch_xml(file)
        _check(root)
        self.node_names |= {element.attributes.get("name", "") for element in root.walk() if element.tag == "node"}
        self.open_files.append(file)
        self.run_children(root)
        self.open_files.pop()

    def run_children(self, element: Element) -> None:
        for child in element.children:
            if self.condition_holds(child):
                getattr(self, f"run_{child.tag}")(child)

    def text(self, element: Element, attribute: str, default: str | None = None) -> str:
        """Return an attribute with its substitutions done; without `default`, it must be there."""
        written = element.attributes.get(attribute)
        if written is None:
            if default is None:
                raise element.error(f"<{element.tag}> lacks the attribute '{attribute}'.", f'Add {attribute}="…".')
            return default
        return self.substituted(written, element)

    def substituted(self, text: str, element: Element) -> str:
        context = SubstitutionContext(self.variables, os.environ | self.changed_environment, self.open_files[-1].parent)
        return substitute(text, context, element)

    def boolean(self, element: Element, attribute: str) -> bool:
        value = self.text(element, attribute, "false")
        if value.strip().lower() not in ("true", "1", "false", "0"):
            raise element.error(
                f"'{attribute}' of <{element.tag}> is '{value}', not a truth value.", "Write true, false, 1 or 0."
            )
        return value.strip().lower() in ("true", "1")

    def number(self, element: Element, attribute: str, default: str) -> float:
        value = self.text(element, attribute, default)
        with suppress(ValueError):
            return float(value)
        raise element.error(f"'{attribute}' of <{element.tag}> is '{value}', not a number.", "Write a number.")

    def condition_holds(self, element: Element) -> bool:
        if "if" in element.attributes:
            return self.boolean(element, "if")
        return "unless" not in element.attributes or not self.boolean(element, "unless")

    def run_arg(self, element: Element) -> None:
        name, description = self.text(element, "name"), element.attributes.get("description", "")
        self.declared[name] = description
        if not self.variables.get(name, "given").strip() and element.attributes.get("default") != "":
            raise element.error(f"the argument '{name}' is given and empty.", "Give a value, or leave it out.")
        if name not in self.variables:
            if "default" not in element.attributes:
                raise element.error(
                    f"the argument '{name}' was not given{f' ({description})' if description else ''}.",
                    f"Add {name}:=VALUE to the command.",
                )
            self.variables[name] = _at_home(self.text(element, "default"))
        choices = [self.text(choice, "value") for choice in element.children]
        if choices and self.variables[name] not in choices:
            raise element.error(
                f"the argument '{name}' is '{self.variables[name]}'.", f"Set it to one of: {', '.join(choices)}."
            )

    def run_let(self, element: Element) -> None:
        self.variables[self.text(element, "name")] = self.text(element, "value")

    def run_set_env(self, element: Element) -> None:
        name, value = self.text(element, "name"), self.text(element, "value")
        self.changed_environment = {**self.changed_environment, name: value}

    def run_push_ros_namespace(self, element: Element) -> None:
        self.namespace = self.joined_namespace(element, self.text(element, "namespace"))

    def run_group(self, element: Element) -> None:
        outside = (self.variables, self.changed_environment, self.namespace)
        self.variables = dict(self.variables)
        self.run_children(element)
        self.variables, self.changed_environment, self.namespace = outside

    def run_include(self, element: Element) -> None:
        passed = {self.text(child, "name"): self.text(child, "value") for child in element.children}
        self.variables.update(passed)
        path = Path(self.text(element, "file"))
        if not path.is_absolute():
            raise element.error(f"the path '{path}' is relative.", f'Write file="$(dirname)/{path}".')
        self.run_file(path.resolve(), element)

    def run_node(self, element: Element) -> None:
        package, executable = self.text(element, "pkg"), self.text(element, "exec")
        program = package_prefix(package, element) / "lib" / package / executable
        if not os.access(program, os.X_OK) or program.is_dir():
            present = sorted(path.name for path in program.parent.glob("*")) if program.parent.is_dir() else []
            raise element.error(
                f"the package '{package}' has no executable '{executable}'.",
                f"It has: {', '.join(present) or 'none'}. Build the workspace with ./softform build.",
            )
        name = self.text(element, "name", "")
        if name and not _NAME.fullmatch(name):
            raise element.error(f"'{name}' is not a valid node name.", "Use letters, digits and underscores.")
        if self.text(element, "output", "screen") not in ("screen", "both", "log"):
            raise element.error("'output' of <node> is neither screen, both nor log.", "Write screen.")
        is_required = "on_exit" in element.attributes
        if is_required and element.attributes["on_exit"] != "shutdown":
            raise element.error("'on_exit' of <node> can only be shutdown.", 'Write on_exit="shutdown" or remove it.')
        respawn = self.boolean(element, "respawn")
        if respawn and is_required:
            raise element.error("a node cannot both respawn and end the launch.", "Keep respawn or on_exit.")
        delay = self.number(element, "respawn_delay", "0")
        if delay < 0.0:
            raise element.error("'respawn_delay' of <node> is negative.", "Write seconds, 0 or more.")

        namespace = self.joined_namespace(element, self.text(element, "namespace", ""))
        ros_arguments = []
        if name:
            ros_arguments += ["-r", f"__node:={name}"]
        if namespace:
            ros_arguments += ["-r", f"__ns:={namespace}"]
        full_name = f"{namespace.rstrip('/')}/{name}" if name else ""
        ros_arguments += self.parameter_arguments(element, full_name)
        for remap in element.children:
            if remap.tag == "remap":
                ros_arguments += ["-r", f"{self.text(remap, 'from')}:={self.text(remap, 'to')}"]

        additions = {self.text(c, "name"): self.text(c, "value") for c in element.children if c.tag == "env"}
        self.processes.append(
            ProcessDescription(
                name=name or executable,
                command=(
                    str(program),
                    *shlex.split(self.text(element, "args", "")),
                    *(["--ros-args", *ros_arguments] if ros_arguments else []),
                ),
                environment={**self.changed_environment, **additions},
                node=full_name,
                is_required=is_required,
                respawn=respawn,
                respawn_delay=delay,
                respawn_max_retries=int(self.number(element, "respawn_max_retries", "-1")),
            )
        )

    def joined_namespace(self, element: Element, addition: str) -> str:
        """Return the current namespace with `addition` below it, absolute, or "" where there is none."""
        namespace = addition if addition.startswith("/") else f"{self.namespace}/{addition}".rstrip("/")
        namespace = namespace.rstrip("/") or ("/" if addition == "/" else "")
        if namespace not in ("", "/") and not all(_NAME.fullmatch(token) for token in namespace[1:].split("/")):
            raise element.error(f"'{namespace}' is not a valid namespace.", "Use letters, digits, _ and /.")
        return namespace

    def parameter_arguments(self, element: Element, node: str) -> list[str]:
        arguments = []
        in_files: dict[str, Path] = {}
        for param in element.children:
            if param.tag != "param":
                continue
            if "from" in param.attributes:
                if len(param.attributes) > 1 or param.children:
                    raise param.error("<param from> takes nothing else.", "Use another <param> for name and value.")
                file = Path(self.text(param, "from")).resolve()
                if not file.is_file():
                    raise param.error(f"the parameter file {file} does not exist.", "Correct the attribute 'from'.")
                in_files |= dict.fromkeys(self.note_parameter_file(file, node), file)
                arguments += ["--params-file", str(file)]
            else:
                for name, value in self.parameter_values(param, ""):
                    if name in in_files:
                        raise param.error(
                            f"the parameter '{name}' in {in_files[name]} would not be used, for it is given here, too.",
                            "Leave it out there, and give it by the launch's argument.",
                        )
                    arguments += ["-p", f"{name}:={_yaml(value)}"]
        return arguments

    def note_parameter_file(self, file: Path, node: str) -> Iterable[str]:
        """Note that a node takes it; return the names that it gives to all nodes, which are the weaker ones."""
        try:
            sections = read_parameter_file(file)
        except SoftformError as error:
            raise SoftformError(f"{error.message} It is given to {node or 'a node'}.", error.next_step) from error
        self.parameter_files.setdefault(file, (list(sections), []))[1].append(node)
        return sections.get("/**", {})

    def parameter_values(self, param: Element, parent: str) -> list[tuple[str, ParameterValue]]:
        if "from" in param.attributes:
            raise param.error("<param from> cannot be nested.", "Put it directly below <node>.")
        name = parent + self.text(param, "name")
        if param.children and "value" in param.attributes:
            raise param.error(f"the parameter '{name}' has both a value and nested parameters.", "Keep one of them.")
        if param.children:
            return [pair for child in param.children for pair in self.parameter_values(child, f"{name}.")]
        return [(name, self.parameter_value(param, name))]

    def parameter_value(self, param: Element, name: str) -> ParameterValue:
        text = self.text(param, "value")
        kind = param.attributes.get("type")
        if kind is not None and kind not in PARAMETER_TYPES:
            raise param.error(f"the type '{kind}' is not understood.", f"Use one of: {', '.join(PARAMETER_TYPES)}.")
        if kind == "str":
            return text
        separator = param.attributes.get("value-sep")
        value: object = _guess(text)
        if separator:  # split before substituting, as the official parser does
            value = [_guess(self.substituted(item, param)) for item in param.attributes["value"].split(separator)]
        items = cast(list[ParameterScalar], value if isinstance(value, list) else [value])
        if not items:
            raise param.error(f"the parameter '{name}' is an empty list.", "ROS cannot pass one; leave it out.")
        try:
            if kind is not None and isinstance(value, list) != kind.startswith("list_of_"):
                raise ValueError
            items = _of_one_type(items, kind.removeprefix("list_of_") if kind else None)
        except ValueError as error:
            raise param.error(
                f"the parameter '{name}' is '{text}', not {kind or 'a value or a list of one type'}.",
                "Correct the value or the type.",
            ) from error
        return cast(ParameterValue, items if isinstance(value, list) else items[0])


def _guess(text: str) -> ParameterScalar | list[ParameterScalar]:
    """Return the bool, int, float, str or list that `text` means as YAML; anything else is the text itself."""
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        return text
    return value if isinstance(value, bool | int | float | str | list) else text


def _of_one_type(items: list[ParameterScalar], wanted: str | None) -> list[ParameterScalar]:
    """Return the items as `wanted`, or as the one type that they share; ValueError if there is none."""
    if wanted == "str":
        return [str(item) for item in items]
    is_number = [isinstance(item, int | float) and not isinstance(item, bool) for item in items]
    if wanted == "float" or (wanted is None and all(is_number) and any(isinstance(item, float) for item in items)):
        return [float(item) for item in items]
    types = {type(item) for item in items}
    if len(types) > 1 or not types <= {bool, int, float, str} or wanted not in (None, types.pop().__name__):
        raise ValueError
    return items


def _yaml(value: ParameterValue) -> str:
    """Return a parameter as the YAML that `--ros-args -p` reads; strings are quoted, so that they stay strings."""
    if isinstance(value, list):
        return f"[{', '.join(_yaml(item) for item in value)}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    return str(value).lower() if isinstance(value, bool) else repr(value)
