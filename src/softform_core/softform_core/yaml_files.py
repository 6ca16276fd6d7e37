"""YAML that people write: a number is what it looks like, and nothing is said twice."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from softform_core.errors import SoftformError
from softform_core.files import made_folder, write_atomically


class _Loader(yaml.CSafeLoader):
    """The core schema of YAML 1.2: by 1.1, `010` is 8, `1:30` is 90, `no` is false, and `3e3` is text."""

    yaml_implicit_resolvers: dict[str, Any] = {}

    def core_int(self, node: yaml.ScalarNode) -> int:
        """Return a decimal number, with zeros before it or without, or one that says that it is none (0o, 0x)."""
        return int(node.value, 0 if node.value[:2] in ("0o", "0x") else 10)


_CORE = {
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "bool": (r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    "int": (r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    "float": (
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        list("-+.0123456789"),
    ),
    "merge": (r"<<", ["<"]),
}
for _kind, (_pattern, _first) in _CORE.items():
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", re.compile(f"(?:{_pattern})$"), _first)
_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.core_int)


def parse_yaml(text: str) -> Any:
    """Parse a YAML text.

    Raises:
        yaml.YAMLError: If it is not valid, or gives a field of one mapping twice.
    """
    loader = _Loader(text)
    try:
        root = loader.get_single_node()
        _check_once(root, set())
        return None if root is None else loader.construct_document(root)
    finally:
        loader.dispose()


def read_yaml(path: str | Path) -> Any:
    """Read a YAML file.

    Raises:
        SoftformError: If it cannot be read (its cause is the `OSError`) or is not valid YAML.
    """
    return YamlText(read_text(path), path).content


def read_text(path: str | Path) -> str:
    """Read the text of a YAML file.

    Raises:
        SoftformError: If it cannot be read (its cause is the `OSError`).
    """
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SoftformError(f"{path} cannot be read: {error.strerror or error}.", "Check the path.") from error
    except UnicodeDecodeError as error:
        raise SoftformError(f"{path} is not valid YAML: it is not UTF-8.", "Save it as UTF-8.") from error


class YamlText:
    """A YAML text whose lines can be told.

    Args:
        text: The text.
        origin: Its name, for messages.

    Attributes:
        content: What it says.

    Raises:
        SoftformError: If it is not valid YAML.
    """

    def __init__(self, text: str, origin: str | Path) -> None:
        try:
            self.content = parse_yaml(text)
            self._root = yaml.compose(text, _Loader)
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            mark = getattr(error, "problem_mark", None)
            reason = (getattr(error, "problem", None) or str(error)) + (f" in line {mark.line + 1}" if mark else "")
            message = f"{origin} is not valid YAML: {reason}."
            raise SoftformError(message, "Correct the file; indent by blanks.") from error

    def line(self, path: Sequence[int | str]) -> int:
        """Return the line, from 1 on, of what lies at a path of keys and indices; of what is not there that above."""
        node, line = self._root, 1
        for part in path:
            if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
                node = node.value[part]
                line = node.start_mark.line + 1
            elif isinstance(node, yaml.MappingNode):
                found = [(key, value) for key, value in node.value if key.value == part]
                if not found:
                    break
                line, node = found[0][0].start_mark.line + 1, found[0][1]
        return line


def write_yaml(path: Path, content: object) -> None:
    """Write a file of YAML, and its folder.

    Raises:
        SoftformError: If it cannot be written.
    """
    made_folder(path.parent)
    text = yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=120)
    write_atomically(path, text.encode())


def _check_once(node: yaml.Node | None, seen: set[int]) -> None:
    """See that no mapping gives a field twice: the last would silently win."""
    if not isinstance(node, yaml.CollectionNode) or id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and names.count(key.value) > 1:
                raise yaml.constructor.ConstructorError(None, None, f"'{key.value}' is given twice", key.start_mark)
            _check_once(value, seen)
    else:
        for each in node.value:
            _check_once(each, seen)
