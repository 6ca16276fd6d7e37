"""Twenty meshes as CAD and mesh editors export them: sound ones, and what is wrong with others. Made, not collected.

Lengths are in millimetres until a file is written.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import trimesh

from softform_core.arrays import Array
from softform_core.bodies.gmsh_process import started_gmsh
from softform_core.units import PER_METRE, AnyUnit

Fields = dict[str, Any]
_AROUND = 16
"""Triangles around a circle of an exported surface."""


class Case(NamedTuple):
    """A mesh that somebody may have.

    Attributes:
        name: What it is.
        make: Writes its file into a folder, and gives the fields of a `MeshBody` that somebody would write for it.
        is_sound: Whether it can be a body.
    """

    name: str
    make: Callable[[Path], Fields]
    is_sound: bool = True


@contextmanager
def _drawn() -> Iterator[Any]:
    with started_gmsh() as gmsh:
        yield gmsh.model.occ


def _finger(occ: Any, inlet: float = 8.0) -> None:
    """A tapered finger of two chambers that begin so high above its base."""
    cone, tip = (3, occ.addCone(0, 0, 0, 0, 0, 60, 13, 9)), (3, occ.addSphere(0, 0, 60, 9))
    joined, _ = occ.fuse([cone], [tip])
    occ.cut(joined, [(3, occ.addCylinder(x, 0, inlet, 0, 0, 54 - inlet, 3)) for x in (-4.5, 4.5)])


_OF_FINGER: Fields = {
    "cavities": [{"at": (-0.0045, 0, 0.03)}, {"at": (0.0045, 0, 0.03)}],
    "mesh_size": 0.012,
    "end": {"at": (0, 0, 0.06)},
}


def _bellows(occ: Any, wall: float) -> None:
    """Three folds around one chamber, with flat ends 4 mm thick."""
    heights = np.linspace(4.0, 28.0, 7)
    radii = np.where(np.arange(7) % 2, 14.0, 9.0)
    outer, inner = (_revolved(occ, heights, radii + shift) for shift in (0.5 * wall, -0.5 * wall))
    ends = [(3, occ.addCylinder(0, 0, z, 0, 0, 4, 9 + 0.5 * wall)) for z in (0.0, 28.0)]
    joined, _ = occ.fuse([outer], ends)
    occ.cut(joined, [inner])


def _revolved(occ: Any, heights: Array, radii: Array) -> tuple[int, int]:
    places = [(0.0, heights[0]), *zip(radii.tolist(), heights.tolist(), strict=True), (0.0, heights[-1])]
    points = [occ.addPoint(radius, 0, height) for radius, height in places]
    lines = [occ.addLine(one, other) for one, other in zip(points, [*points[1:], points[0]], strict=True)]
    made = occ.revolve([(2, occ.addPlaneSurface([occ.addCurveLoop(lines)]))], 0, 0, 0, 0, 0, 1, 2.0 * np.pi)
    found: tuple[int, int] = next(tag for tag in made if tag[0] == 3)
    return found


_OF_BELLOWS: Fields = {"cavities": [{"at": (0, 0, 0.016)}], "mesh_size": 0.006}


def _gripper(occ: Any, is_joined: bool) -> None:
    """Three fingers of one chamber each on a palm."""
    parts, chambers = [(3, occ.addCylinder(0, 0, 0, 0, 0, 10, 28))], []
    for turn in np.arange(3) * 2.0 * np.pi / 3.0:
        x, y = 18.0 * np.cos(turn), 18.0 * np.sin(turn)
        parts.append((3, occ.addCylinder(x, y, 8 if is_joined else 12, 0, 0, 42, 8)))
        chambers.append((3, occ.addCylinder(x, y, 16, 0, 0, 28, 4)))
    occ.cut(occ.fuse(parts[:1], parts[1:])[0] if is_joined else parts, chambers)


_OF_GRIPPER: Fields = {
    "cavities": [{"at": (0.018, 0, 0.03)}, {"at": (-0.009, 0.01559, 0.03)}, {"at": (-0.009, -0.01559, 0.03)}],
    "mesh_size": 0.012,
    "surface": "none",
    "tip": (0.018, 0, 0.049),
}


def _starfish(occ: Any) -> None:
    """Five arms of one chamber each around a disc, flat on the ground."""
    parts, chambers = [(3, occ.addCylinder(0, 0, 0, 0, 0, 12, 16))], []
    for turn in np.arange(5) * 2.0 * np.pi / 5.0:
        arm, chamber = (3, occ.addBox(8, -7, 0, 42, 14, 12)), (3, occ.addBox(20, -4, 3, 24, 8, 6))
        occ.rotate([arm, chamber], 0, 0, 0, 0, 0, 1, turn)
        parts.append(arm)
        chambers.append(chamber)
    occ.cut(occ.fuse(parts[:1], parts[1:])[0], chambers)


def _pneunet(occ: Any) -> None:
    """A row of four rooms joined by a channel, above a floor."""
    body = [(3, occ.addBox(0, -8, 0, 56, 16, 20))]
    body, _ = occ.cut(body, [(3, occ.addBox(x, -8, 8, 2, 16, 12)) for x in (13.0, 27.0, 41.0)])
    rooms = [(3, occ.addBox(x, -5, 4, 8, 10, 13)) for x in (3.0, 17.0, 31.0, 45.0)]
    channel, _ = occ.fuse(rooms[:1], [*rooms[1:], (3, occ.addBox(4, -1.5, 4, 46, 3, 3))])
    occ.cut(body, channel)


def _ring(occ: Any) -> None:
    occ.cut([(3, occ.addTorus(0, 0, 0, 25, 8))], [(3, occ.addTorus(0, 0, 0, 25, 4))])


def _tentacle(occ: Any) -> None:
    occ.addCone(0, 0, 0, 0, 0, 90, 10, 4)


def _cable(turn: float, name: str) -> Fields:
    run = [(r * np.cos(turn), r * np.sin(turn), z) for r, z in ((0.006, 0.0), (0.004, 0.045), (0.0025, 0.088))]
    return {"load": "cable", "name": name, "runs": [run], "stiffness": 500.0}


def _surface(draw: Callable[[Any], None]) -> trimesh.Trimesh:
    """What is drawn, as triangles."""
    with started_gmsh() as gmsh:
        draw(gmsh.model.occ)
        gmsh.model.occ.synchronize()
        gmsh.option.setNumber("Mesh.MeshSizeFromCurvature", _AROUND)
        gmsh.model.mesh.generate(2)
        walls = gmsh.model.getBoundary(gmsh.model.getEntities(3), oriented=False)
        found = np.concatenate([gmsh.model.mesh.getElementsByType(2, wall)[1] for _, wall in walls])
        tags, places, _ = gmsh.model.mesh.getNodes()
        number = np.zeros(int(tags.max()) + 1, dtype=np.int64)
        number[tags] = np.arange(len(tags))
        return trimesh.Trimesh(places.reshape(-1, 3), number[found].reshape(-1, 3))


def _exported(
    draw: Callable[[Any], None],
    name: str,
    unit: AnyUnit,
    fields: Fields,
    changed: Callable[[trimesh.Trimesh], trimesh.Trimesh] = lambda mesh: mesh,
    said: AnyUnit | None = None,
) -> Callable[[Path], Fields]:
    """A file of triangles, in a unit; who describes it says another one, if `said` does."""

    def make(folder: Path) -> Fields:
        mesh = changed(_surface(draw))
        mesh.apply_scale(PER_METRE[unit] / PER_METRE["mm"])
        mesh.export(folder / name)
        return {"file": name, "unit": said or unit} | fields

    return make


def _from_gmsh(
    draw: Callable[[Any], None], name: str, fields: Fields, size: float = 0.0, order: int = 1
) -> Callable[[Path], Fields]:
    """A file as gmsh writes it: CAD, or tetrahedra of edges up to `size`."""

    def make(folder: Path) -> Fields:
        with started_gmsh() as gmsh:
            gmsh.option.setString("Geometry.OCCTargetUnit", "MM")  # who read a file before may have left another one
            draw(gmsh.model.occ)
            gmsh.model.occ.synchronize()
            if size:
                gmsh.option.setNumber("Mesh.MeshSizeMax", size)
                gmsh.option.setNumber("Mesh.MeshSizeFromCurvature", 8)
                gmsh.model.mesh.generate(3)
                gmsh.model.mesh.setOrder(order)
                gmsh.model.mesh.optimize("HighOrder" if order > 1 else "")
            gmsh.write(str(folder / name))
        return {"file": name} | fields

    return make


def _without(mesh: trimesh.Trimesh) -> trimesh.Trimesh:
    return trimesh.Trimesh(mesh.vertices, mesh.faces[5:], process=False)


def _turned(mesh: trimesh.Trimesh) -> trimesh.Trimesh:
    return trimesh.Trimesh(mesh.vertices, [face[::-1] if i % 2 else face for i, face in enumerate(mesh.faces)], None)


def _with_flat_ones(mesh: trimesh.Trimesh) -> trimesh.Trimesh:
    """Triangles without area where edges were split on one side, and duplicates."""
    a, b, c = mesh.faces[0]
    middle = 0.5 * (mesh.vertices[a] + mesh.vertices[b])
    faces = [*mesh.faces[1:], (a, len(mesh.vertices), c), (len(mesh.vertices), b, c), (a, b, len(mesh.vertices))]
    return trimesh.Trimesh([*mesh.vertices, middle], [*faces, faces[1], faces[7]], process=False)


def _with_another(mesh: trimesh.Trimesh) -> trimesh.Trimesh:
    """A flange that was laid over the body and not joined to it."""
    flange = trimesh.creation.box((40.0, 40.0, 6.0))
    flange.apply_translation((0.0, 0.0, 3.0))
    return trimesh.util.concatenate([mesh, flange])


_TETRAHEDRA = {key: value for key, value in _OF_FINGER.items() if key != "mesh_size"}
_FLAT: Fields = {"surface": "sheet", "mesh_size": 0.014}


def cases() -> Sequence[Case]:
    """All of them."""
    star = [{"at": (0.03 * np.cos(turn), 0.03 * np.sin(turn), 0.006)} for turn in np.arange(5) * 2.0 * np.pi / 5.0]
    three = [_cable(turn, f"t{number}") for number, turn in enumerate((0.0, 2.0944, 4.1888), 1)]
    wall = {"supports": [{"at": (0, 0, 0), "normal": (1, 0, 0)}], "surface": "none"}
    return (
        Case("finger, STEP", _from_gmsh(_finger, "finger.step", _OF_FINGER)),
        Case("finger, STL in mm", _exported(_finger, "finger.stl", "mm", _OF_FINGER)),
        Case("finger, PLY in inches", _exported(_finger, "finger.ply", "in", _OF_FINGER)),
        Case("finger, OBJ in m", _exported(_finger, "finger.obj", "m", _OF_FINGER)),
        Case("finger, tetrahedra, .msh", _from_gmsh(_finger, "finger.msh", _TETRAHEDRA | {"unit": "mm"}, 10.0)),
        Case("finger, curved, .vtk", _from_gmsh(_finger, "finger.vtk", _TETRAHEDRA | {"unit": "mm"}, 10.0, 2)),
        Case("finger, facets turned", _exported(_finger, "turned.stl", "mm", _OF_FINGER, _turned)),
        Case("finger, flat facets", _exported(_finger, "flat.ply", "mm", _OF_FINGER, _with_flat_ones)),
        Case("bellows, walls 2 mm", _exported(lambda o: _bellows(o, 2.0), "bellows.stl", "mm", _OF_BELLOWS)),
        Case("bellows, walls 0.8 mm", _from_gmsh(lambda o: _bellows(o, 0.8), "thin.step", _OF_BELLOWS), False),
        Case("gripper of three", _exported(lambda o: _gripper(o, True), "gripper.stl", "mm", _OF_GRIPPER)),
        Case("starfish, STEP", _from_gmsh(_starfish, "starfish.step", _FLAT | {"cavities": star})),
        Case(
            "row of rooms",
            _exported(
                _pneunet,
                "rooms.stl",
                "mm",
                wall | {"cavities": [{"at": (0.007, 0, 0.01)}], "mesh_size": 0.008, "tip": (0.055, 0, 0.002)},
            ),
        ),
        Case(
            "ring",
            _exported(
                _ring,
                "ring.stl",
                "mm",
                {"supports": [{"at": (-0.03, 0, 0), "normal": (1, 0, 0)}], "cavities": [{"at": (0.025, 0, 0)}]}
                | {"surface": "none", "tip": (0.032, 0, 0), "mesh_size": 0.012},
            ),
        ),
        Case("tentacle of cables", _exported(_tentacle, "tentacle.stl", "m", {"loads": three, "mesh_size": 0.012})),
        Case("bellows, walls 0.1 mm", _exported(lambda o: _bellows(o, 0.1), "foil.stl", "mm", _OF_BELLOWS), False),
        Case("gripper of loose parts", _from_gmsh(lambda o: _gripper(o, False), "loose.step", _OF_GRIPPER), False),
        Case("finger, inlets open", _exported(lambda o: _finger(o, -1.0), "inlet.stl", "mm", _OF_FINGER), False),
        Case("finger, facets missing", _exported(_finger, "holes.stl", "mm", _OF_FINGER, _without), False),
        Case("finger, flange not joined", _exported(_finger, "flange.stl", "mm", _OF_FINGER, _with_another), False),
    )
