"""Surfaces of Abaqus input files (.inp), as Abaqus and CalculiX read them: parts, instances, nodes in several blocks.

An instance places a part by a translation and a rotation. What no instance places is not in the model; a file without
instances is flat, and all its parts are.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np
from scipy.spatial.transform import Rotation

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.importing.elements import ElementMesh, triangles

_SURFACE = re.compile(r"(?:S|STRI|DS|M3D|SFM3D|R3D|CPS|CPE|CPEG|CAX(?=4P))(\d)(?!\d)")
"""Elements that are a surface, and how many nodes they have; STRI65 has six, and meshio calls quadrilaterals CAX4P."""
_NO_SURFACE = re.compile("T[23]D|B[23]\\d|PIPE|ELBOW|FRAME|CONN|SPRING|DASHPOT|MASS|ROTARY|GAP|ITS|JOINT|DCOUP|KCOUP")
"""Elements along lines and at points."""
_GENERATES = {"NGEN", "NFILL", "NCOPY", "NMAP", "ELGEN", "ELCOPY", "SYSTEM"}
"""Keywords that make or move nodes: a mesh that is read without them would be another one."""
_DEEPEST = 8

Rows = list[list[str]]
_T = TypeVar("_T")


@dataclass
class _Part:
    """Nodes and surface elements of one part, by their numbers, and how many other elements of each type it has."""

    nodes: dict[int, tuple[float, ...]] = field(default_factory=dict)
    elements: dict[int, list[int]] = field(default_factory=dict)
    others: dict[str, int] = field(default_factory=dict)


def read_inp(path: Path, part: str | None = None) -> ElementMesh:
    """The surface of an input file, which is that of one part; of several, `part` names the part or the instance.

    Raises:
        SoftformError: If it has no surface, several parts and none is named, solid elements, nodes that are generated
            or given twice, or elements of nodes that are not there.
        ValueError: If a number or a keyword cannot be read.
        OSError: If the file, or one that it includes, cannot be read.
    """
    parts, instances = _read(path)
    own = [name for name, one in parts.items() if one.elements]
    placed = {name: of for name, (of, _) in instances.items() if of in own} or {name: name for name in own}
    if not placed:
        kinds = ", ".join(sorted({kind for one in parts.values() for kind in one.others})) or "none"
        raise SoftformError(
            f"{path} has no surface elements (others: {kinds}).",
            "Export the outer surface alone: shells or membranes, with its nodes.",
        )
    wanted = None if part is None else part.upper()
    named = [name for name, of in placed.items() if wanted in (None, name, of)]
    if not named and wanted in own:
        named, placed = [wanted], {wanted: wanted}
    if not named:
        raise SoftformError(f"{path} has no part '{part}'.", f"Name one of: {', '.join(placed)}.")
    if len(named) > 1:
        raise SoftformError(
            f"{path} has {len(named)} parts with surfaces: {', '.join(named)}.", "Choose one by --part."
        )
    name = placed[named[0]]
    mesh = _surface(path, parts[name])
    points = _placed(mesh.points, instances[named[0]][1]) if named[0] in instances else mesh.points
    beside = (f"part {other}" for other in own if other != name)
    return ElementMesh(points, mesh.faces, left_out=(*mesh.left_out, *beside))


def _surface(path: Path, part: _Part) -> ElementMesh:
    if solids := [kind for kind in part.others if not _NO_SURFACE.match(kind)]:
        raise SoftformError(
            f"{path} has elements {', '.join(solids)}: a surface is of shells or membranes.",
            "Export the outer surface alone.",
        )
    places = {node: place for place, node in enumerate(part.nodes)}
    by_size: dict[int, list[list[int]]] = {}
    try:
        for nodes in part.elements.values():
            by_size.setdefault(len(nodes), []).append([places[node] for node in nodes])
    except KeyError as error:
        raise SoftformError(
            f"{path} has an element of node {error}, which is not given.", "Export the part with all its nodes."
        ) from error
    faces = np.concatenate([triangles(np.array(elements)) for elements in by_size.values()])
    points = np.array([(*place, 0.0, 0.0)[:3] for place in part.nodes.values()])
    left_out = [f"{count} elements {kind}" for kind, count in part.others.items()]
    if idle := len(points) - len(np.unique(faces)):
        left_out.append(f"{idle} nodes of no surface element")
    return ElementMesh(points, faces, left_out=tuple(left_out))


def _placed(points: Array, lines: Rows) -> Array:
    """Points (V, 3) where an instance has them: translated, then turned about an axis through two points."""
    moves = [[_number(cell) for cell in line if cell] for line in lines]
    if moves:
        points = points + np.array((moves[0] + [0.0, 0.0, 0.0])[:3])
    if len(moves) > 1:
        *ends, angle = moves[1]
        start, end = np.array(ends).reshape(2, 3)
        axis = (end - start) / np.linalg.norm(end - start)
        points = Rotation.from_rotvec(np.radians(angle) * axis).apply(points - start) + start
    return points


def _number(cell: str) -> float:
    """A number, whose exponent may be Fortran's; 0 if it is left out."""
    return float(cell.upper().replace("D", "E") or 0.0)


def _read(path: Path) -> tuple[dict[str, _Part], dict[str, tuple[str, Rows]]]:
    """Parts by name in capitals ('' outside of all), and of each instance its part, and lines that place it."""
    parts: dict[str, _Part] = {}
    instances: dict[str, tuple[str, Rows]] = {}
    scope = ""
    for keyword, options, data in _blocks(path):
        if keyword in ("PART", "INSTANCE"):
            scope = options.get("NAME", "").upper()
        if keyword == "INSTANCE":
            instances[scope] = options.get("PART", scope).upper(), data
        elif keyword in ("ASSEMBLY", "END INSTANCE"):
            scope = "ASSEMBLY"  # its nodes are reference points, with numbers of their own
        elif keyword in ("END PART", "END ASSEMBLY"):
            scope = ""
        elif keyword == "NODE":
            if options.get("SYSTEM", "R").upper() != "R":
                raise SoftformError(f"{path} gives nodes in a cylindrical or spherical system.", "Export x, y and z.")
            nodes = ((int(row[0]), tuple(_number(cell) for cell in row[1:4])) for row in data)
            _add(path, "node", parts.setdefault(scope, _Part()).nodes, nodes)
        elif keyword == "ELEMENT":
            _add_elements(path, parts.setdefault(scope, _Part()), options.get("TYPE", "").upper(), data)
        elif keyword in _GENERATES and data:
            raise SoftformError(
                f"{path} makes or moves nodes by *{keyword}.", "Export the mesh flat, with all nodes and elements."
            )
    return parts, instances


def _add_elements(path: Path, part: _Part, kind: str, data: Rows) -> None:
    match = _SURFACE.match(kind.replace("STRI65", "STRI6"))
    if match is None:
        part.others[kind] = part.others.get(kind, 0) + len(data)
        return
    cells, nodes = [int(cell) for line in data for cell in line if cell], int(match[1])
    if len(cells) % (nodes + 1):
        raise SoftformError(f"{path} has elements {kind} that have not {nodes} nodes each.", "Export it again.")
    rows = (cells[begin : begin + nodes + 1] for begin in range(0, len(cells), nodes + 1))
    _add(path, "element", part.elements, ((row[0], row[1:]) for row in rows))


def _add(path: Path, what: str, known: dict[int, _T], given: Iterator[tuple[int, _T]]) -> None:
    """Add nodes or elements by their numbers."""
    for number, one in given:
        if known.setdefault(number, one) != one:
            raise SoftformError(
                f"{path} gives {what} {number} twice, not alike.",
                "Export each part as a *Part of its own, or with numbers of its own.",
            )


def _blocks(path: Path, depth: int = 0) -> Iterator[tuple[str, dict[str, str], Rows]]:
    """Keywords in capitals, their options, and the cells of their lines of data, which may be in files of their own."""
    keyword, options, data = "", dict[str, str](), list[list[str]]()
    lines = _lines(path)
    for line in lines:
        if not line.startswith("*"):
            data.append(_cells(line))
        elif not line.startswith("**"):
            yield keyword, options, data
            while line.endswith(",") and (more := next(lines, "")):
                line += more
            keyword, *words = (" ".join(word.split()) for word in line[1:].upper().split(","))
            pairs = (word.partition("=") for word in words)
            options, data = {name.strip(): value.strip(' "') for name, _, value in pairs}, []
            if named := re.search(r'(?i),\s*input\s*=\s*("[^"]*"|[^,]*)', line):
                source = path.parent / named[1].strip(' "')
                if keyword != "INCLUDE":
                    data = [_cells(row) for row in _lines(source) if not row.startswith("**")]
                elif depth < _DEEPEST:
                    yield from _blocks(source, depth + 1)
    yield keyword, options, data


def _lines(path: Path) -> Iterator[str]:
    """Lines that are not blank."""
    return filter(None, map(str.strip, path.read_text(encoding="utf-8-sig", errors="replace").splitlines()))


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split(",")]
