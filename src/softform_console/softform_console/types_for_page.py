"""Writes the TypeScript types of the protocol: `python -m softform_console.types_for_page web/src/protocol.ts`."""

import sys
from pathlib import Path
from typing import Any

from pydantic.json_schema import models_json_schema

from softform_console import protocol
from softform_console.job_messages import JobList, Shelf

_SIMPLE = {"string": "string", "number": "number", "integer": "number", "boolean": "boolean", "null": "null"}
_UNIONS = {"ToServer": protocol.ToServer, "FromServer": protocol.FromServer}
_ALONE = (protocol.Uploaded, JobList, Shelf)


def typescript() -> str:
    """Return the types of all messages, an interface each, and the unions of both directions."""
    members = {name: _members(union) for name, union in _UNIONS.items()}
    models = [model for union in members.values() for model in union] + [*_ALONE]
    _, schema = models_json_schema([(model, "validation") for model in models])
    lines = ["// Made by `python -m softform_console.types_for_page`; change softform_console/protocol.py instead.", ""]
    for name in ("VERSION", "BEAT_SECONDS", "DEAD_MAN_SECONDS"):
        lines.append(f"export const {name} = {getattr(protocol, name)}")
    for name, definition in schema["$defs"].items():
        lines += ["", *_interface(name, definition)]
    for name, union in members.items():
        lines += ["", f"export type {name} =", *(f"  | {model.__name__}" for model in union)]
    return "\n".join(lines) + "\n"


def _members(union: Any) -> list[Any]:
    """Return the models of a discriminated union."""
    return list(union.__origin__.__args__)


def _interface(name: str, definition: dict[str, Any]) -> list[str]:
    said = definition.get("description", "").split("\n")
    lines = [f"/** {said[0]}" + (" */" if len(said) == 1 else "")]
    lines += [f" * {line}".rstrip() for line in said[1:]]
    lines += [" */"] if len(said) > 1 else []
    lines.append(f"export interface {name} {{")
    required = definition.get("required", [])
    for field, schema in definition["properties"].items():
        mark = "" if field in required or "const" in schema else "?"
        lines.append(f"  {field}{mark}: {_type(schema)}")
    return [*lines, "}"]


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    if "const" in schema:
        return f"'{schema['const']}'"
    if "enum" in schema:
        return " | ".join(f"'{one}'" for one in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(_type(one) for one in schema["anyOf"])
    if "prefixItems" in schema:
        return f"[{', '.join(_type(one) for one in schema['prefixItems'])}]"
    if schema["type"] == "array":
        return f"{_type(schema['items'])}[]"
    return _SIMPLE[schema["type"]]


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(typescript(), encoding="utf-8")
