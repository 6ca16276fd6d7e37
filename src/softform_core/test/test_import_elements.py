"""Meshes of finite elements as other programs write them: VTK and Abaqus, in pieces, by parts, with displacements."""

import base64
import zlib

import meshio
import numpy as np
import pytest

from softform_core.errors import SoftformError
from softform_core.importing.abaqus import read_inp
from softform_core.importing.elements import triangles
from softform_core.importing.vtk import read_vtk

SIDE = 5
X, Y = (axis.ravel() for axis in np.meshgrid(*[np.linspace(-50.0, 50.0, SIDE)] * 2))
POINTS = np.stack([X, Y, 8.0 * np.exp(-(X**2 + Y**2) / 900.0)], axis=1)
CORNER = (np.arange(SIDE - 1)[:, None] * SIDE + np.arange(SIDE - 1)).ravel()
QUADS = np.stack([CORNER, CORNER + 1, CORNER + SIDE + 1, CORNER + SIDE], axis=1)
MOVES = np.stack([0.0 * X, 0.1 * X, 0.2 * Y], axis=1)


def area(mesh):
    a, b, c = mesh.points[mesh.faces].transpose(1, 0, 2)
    return float(np.linalg.norm(np.cross(b - a, c - a), axis=1).sum()) / 2.0


AREA = area(type("Mesh", (), {"points": POINTS, "faces": triangles(QUADS)}))


# VTK


def text(values):
    return " ".join(map(str, np.asarray(values).ravel().tolist()))


def xml_array(name, values, kind, width=1, *, form="ascii", header="<u4", compress=False):
    if form == "ascii":
        body = text(values)
    else:
        raw = np.asarray(values).astype({"Float64": "<f8", "Int64": "<i8", "UInt8": "u1"}[kind]).tobytes()
        if compress:
            blocks = [zlib.compress(raw[:8]), zlib.compress(raw[8:])]
            head = np.array([2, 8, len(raw) - 8, *map(len, blocks)], dtype=header).tobytes()
            body = base64.b64encode(head).decode() + base64.b64encode(b"".join(blocks)).decode()
        else:
            body = base64.b64encode(np.array([len(raw)], dtype=header).tobytes() + raw).decode()
    return f'<DataArray type="{kind}" Name="{name}" NumberOfComponents="{width}" format="{form}">{body}</DataArray>'


def piece(points, quads, kind="UnstructuredGrid", fields=(), **how):
    cells = xml_array("connectivity", quads, "Int64", **how)
    cells += xml_array("offsets", quads.shape[1] * np.arange(1, len(quads) + 1), "Int64", **how)
    tag, counts = "Polys", f'NumberOfPolys="{len(quads)}"'
    if kind == "UnstructuredGrid":
        tag, counts = "Cells", f'NumberOfCells="{len(quads)}"'
        cells += xml_array("types", np.full(len(quads), 9), "UInt8", **how)
    data = "".join(xml_array(name, values, "Float64", 3, **how) for name, values in fields)
    place = xml_array("Points", points, "Float64", 3, **how)
    return (
        f'<Piece NumberOfPoints="{len(points)}" {counts}><PointData>{data}</PointData><Points>{place}</Points>'
        f"<{tag}>{cells}</{tag}></Piece>"
    )


def document(pieces, kind="UnstructuredGrid", attributes=""):
    return f'<VTKFile type="{kind}" byte_order="LittleEndian" {attributes}><{kind}>{pieces}</{kind}></VTKFile>'


LEGACY = "# vtk DataFile Version 3.0\ntitle\nASCII\nDATASET {}\nPOINTS 25 double\n" + text(POINTS) + "\n"
WITH_LENGTHS = text(np.column_stack([np.full(len(QUADS), 4), QUADS]))
OFFSETS = f"OFFSETS vtktypeint64\n{text(4 * np.arange(17))}\nCONNECTIVITY vtktypeint64\n{text(QUADS)}\n"
STRIP = [n for column in range(SIDE) for n in (column, column + SIDE)]
ZLIB = 'compressor="vtkZLibDataCompressor" header_type="UInt64"'
FILES = {
    "a.vtu": document(piece(POINTS, QUADS)),
    "b.vtp": document(piece(POINTS, QUADS, "PolyData"), "PolyData"),
    "c.vtu": document(piece(POINTS, QUADS, form="binary")),
    "d.vtu": document(piece(POINTS, QUADS, form="binary", header="<u8", compress=True), attributes=ZLIB),
    "pieces.vtu": document(piece(POINTS[:15], QUADS[:8]) + piece(POINTS[10:], QUADS[8:] - 10)),
    "e.vtk": LEGACY.format("UNSTRUCTURED_GRID") + f"CELLS 16 80\n{WITH_LENGTHS}\nCELL_TYPES 16\n{text([9] * 16)}\n",
    "f.vtk": LEGACY.format("POLYDATA") + f"METADATA\nINFORMATION 0\n\nPOLYGONS 17 64\n{OFFSETS}",
    "g.vtk": LEGACY.format("POLYDATA") + f"LINES 1 3\n2 0 1\nPOLYGONS 16 80\n{WITH_LENGTHS}\nPOINT_DATA 25\n"
    f"SCALARS p float\nLOOKUP_TABLE default\n{text(X)}\nVECTORS U float\n{text(MOVES)}\n",
}


@pytest.mark.parametrize("name", FILES)
def test_every_form_of_vtk_holds_the_same_sheet(tmp_path, name):
    (tmp_path / name).write_text(FILES[name])
    mesh = read_vtk(tmp_path / name)
    assert len(mesh.faces) == 32 and np.isclose(area(mesh), AREA)
    assert len(mesh.points) == (30 if name == "pieces.vtu" else 25)
    np.testing.assert_array_equal(np.unique(mesh.points, axis=0), np.unique(POINTS, axis=0))
    if name == "g.vtk":
        np.testing.assert_allclose(mesh.fields["U"], MOVES)
        assert mesh.left_out == ("1 points and lines",)


CONCAVE = "# vtk DataFile Version 3.0\nt\nASCII\nDATASET POLYDATA\nPOINTS {} float\n{}\nPOLYGONS {} {}\n{}\n"


@pytest.mark.parametrize(
    ("corners", "polygons", "area_of_all"),
    [
        ([[100, 0], [0, 0], [0, 100], [-100, 100], [-100, -100], [100, -100]], [[0, 1, 2, 3, 4, 5]], 30_000.0),
        ([[-160, -160], [0, -100], [160, -160], [0, 160]], [[0, 1, 2, 3], [1, 2, 3, 0]], 83_200.0),
    ],
)
def test_polygons_of_vtk_may_be_concave(tmp_path, corners, polygons, area_of_all):
    points = np.column_stack([corners, np.zeros(len(corners), dtype=int)])
    rows = [[len(one), *one] for one in polygons]
    (tmp_path / "a.vtk").write_text(CONCAVE.format(len(points), text(points), len(rows), np.size(rows), text(rows)))
    assert area(read_vtk(tmp_path / "a.vtk")) == pytest.approx(area_of_all)


def test_convex_polygons_of_vtk_keep_their_triangles_however_they_bend(tmp_path):
    angle = np.arange(6) * np.pi / 3.0
    found = []
    for bend in (0.0, 0.3, -0.2):
        points = np.stack([np.cos(angle), np.sin(angle), bend * np.cos(2.0 * angle)], axis=1)
        (tmp_path / "a.vtk").write_text(CONCAVE.format(6, text(points), 1, 7, "6 0 1 2 3 4 5"))
        found.append(read_vtk(tmp_path / "a.vtk").faces.tolist())
    assert found == [[[0, 1, 2], [0, 2, 3], [0, 3, 4], [0, 4, 5]]] * 3


@pytest.mark.parametrize(
    "before",
    [
        f"TEXTURE_COORDINATES t 2 float\n{text(MOVES[:, :2])}",
        f"COLOR_SCALARS c 3\n{text(MOVES)}",
        f"SCALARS s float\nLOOKUP_TABLE own\n{text(X)}\nLOOKUP_TABLE own 2\n0 0 0 1 1 1 1 1",
        "",
    ],
)
@pytest.mark.parametrize("kind", ["VECTORS U double", "SCALARS U double 3\nLOOKUP_TABLE default"])
def test_the_displacement_is_found_behind_colours_and_as_scalars(tmp_path, before, kind):
    (tmp_path / "a.vtk").write_text(FILES["e.vtk"] + f"POINT_DATA 25\n{before}\n{kind}\n{text(MOVES)}\n")
    np.testing.assert_allclose(read_vtk(tmp_path / "a.vtk").fields["U"], MOVES)


def test_xml_may_begin_with_a_byte_order_mark(tmp_path):
    (tmp_path / "a.vtu").write_text("\ufeff" + FILES["a.vtu"], encoding="utf-8")
    assert len(read_vtk(tmp_path / "a.vtu").faces) == 32


@pytest.mark.parametrize("settings", [{"binary": False}, {"compression": None}, {"compression": "zlib"}])
def test_vtu_of_another_writer(tmp_path, settings):
    meshio.vtu.write(tmp_path / "a.vtu", meshio.Mesh(POINTS, {"quad": QUADS}, {"U": MOVES}), **settings)
    mesh = read_vtk(tmp_path / "a.vtu")
    np.testing.assert_allclose(mesh.points + mesh.fields["U"], POINTS + MOVES)
    assert np.isclose(area(mesh), AREA)


@pytest.mark.parametrize("version", ["vtk42", "vtk"])
def test_binary_legacy_vtk_of_another_writer(tmp_path, version):
    meshio.write(tmp_path / "a.vtk", meshio.Mesh(POINTS, {"quad": QUADS}, {"U": MOVES}), version)
    mesh = read_vtk(tmp_path / "a.vtk")
    np.testing.assert_allclose(mesh.points, POINTS)
    np.testing.assert_allclose(mesh.fields["U"], MOVES)


@pytest.mark.parametrize("is_base64", [True, False])
def test_appended_arrays_and_files_of_many_processes(tmp_path, is_base64):
    blob, pieces = b"", piece(POINTS, QUADS, form="binary", fields=[("U", MOVES)])
    while (begin := pieces.find('format="binary">')) >= 0:
        end = pieces.index("<", begin)
        given = pieces[begin + len('format="binary">') : end].encode()
        pieces = f'{pieces[:begin]}format="appended" offset="{len(blob)}">{pieces[end:]}'
        blob += given if is_base64 else base64.b64decode(given)
    kind = "base64" if is_base64 else "raw"
    head, tail = document(pieces).split("</VTKFile>")[0], b"</AppendedData></VTKFile>"
    (tmp_path / "a.vtu").write_bytes(head.encode() + f'<AppendedData encoding="{kind}">_'.encode() + blob + tail)
    (tmp_path / "all.pvtu").write_text('<VTKFile type="PUnstructuredGrid"><Piece Source="a.vtu"/></VTKFile>')
    for name in ("a.vtu", "all.pvtu"):
        mesh = read_vtk(tmp_path / name)
        np.testing.assert_allclose(mesh.fields["U"], MOVES)
        assert np.isclose(area(mesh), AREA)


def test_strips_and_pixels_are_split_as_they_go_round(tmp_path):
    (tmp_path / "a.vtk").write_text(LEGACY.format("POLYDATA") + f"TRIANGLE_STRIPS 1 11\n10 {text(STRIP)}\n")
    mesh = read_vtk(tmp_path / "a.vtk")
    a, b, c = mesh.points[mesh.faces].transpose(1, 0, 2)
    assert len(mesh.faces) == 8 and len(set(np.sign(np.cross(b - a, c - a)[:, 2]))) == 1


DAMAGED = {
    "16 cells where 17": FILES["a.vtu"].replace('NumberOfCells="16"', 'NumberOfCells="17"'),
    "25 points where 26": FILES["a.vtu"].replace('NumberOfPoints="25"', 'NumberOfPoints="26"'),
    "no element found": FILES["a.vtu"][:900],
    "75 numbers where 72": FILES["e.vtk"].replace("POINTS 25", "POINTS 24"),
    "16 cells where 15": FILES["e.vtk"].replace("CELLS 16", "CELLS 15"),
    "type 12": FILES["e.vtk"].replace("9 9 9", "12 9 9"),
    "73 numbers where 80": FILES["e.vtk"].split("CELL_TYPES")[0][:-20],
    "80 cells where 16": FILES["e.vtk"].replace("CELLS 16 80\n4", "CELLS 16 80\n-1"),
    "no triangles": FILES["e.vtk"].split("CELLS")[0],
    "does not begin": "nothing",
    "nothing of VTK": "<svg/>",
}


@pytest.mark.parametrize("said", DAMAGED)
def test_damaged_vtk_is_not_read_as_something_else(tmp_path, said):
    (tmp_path / "a.vtk").write_text(DAMAGED[said])
    with pytest.raises(Exception, match=said):
        read_vtk(tmp_path / "a.vtk")


# Abaqus


def inp_nodes(points, first=1):
    return "*Node\n" + "".join(f"{n}, {x}, {y}, {z}\n" for n, (x, y, z) in enumerate(points.tolist(), first))


def inp_elements(quads, kind="S4R", first=1):
    rows = (f"{n}, {text(row).replace(' ', ', ')}\n" for n, row in enumerate(quads + 1, first))
    return f"*Element, type={kind}\n" + "".join(rows)


SHEET = inp_nodes(POINTS) + inp_elements(QUADS)
BASE = inp_nodes(POINTS[:6] - [0, 0, 9.0]) + inp_elements(QUADS[:1])
RAISED = inp_nodes(POINTS - [0, 0, 30.0]) + inp_elements(QUADS)
INSTANCE = "*Instance, name=Sheet-1, part=Sheet\n{}*End Instance\n"
TURNED = "0., 0., 30.\n0., 0., 0., 0., 0., 5., 90.\n"
NODES_OF_S8R = [[0, 2, 12, 10, 1, 7, 11, 5], [2, 4, 14, 12, 3, 9, 13, 7]]


def parts(*named, assembly=""):
    return "".join(f"*Part, name={name}\n{body}*End Part\n" for name, body in named) + (
        f"*Assembly, name=A\n{assembly}*End Assembly\n" if assembly else ""
    )


INPUTS = {
    "flat": SHEET,
    "lower case, membranes": SHEET.lower().replace("s4r", "m3d4"),
    "keywords over two lines": "**c\n*HEADING\n job\n" + SHEET.replace(", type=S4R", ",ELSET=a,\n  TYPE = S4R"),
    "nodes in two blocks": inp_nodes(POINTS[:10]) + inp_nodes(POINTS[10:], 11) + inp_elements(QUADS),
    "a step": SHEET + inp_nodes(POINTS[:1]) + "*Node Output\nU\n*Step\n*Static\n0.1, 1.\n*End Step\n",
    "an instance that is moved": parts(("Sheet", RAISED), assembly=INSTANCE.format("0., 0., 30.\n")),
    "a part without an instance": parts(("Sheet", SHEET), ("Base", BASE), assembly=INSTANCE.format("")),
    "a part that is named": parts(("Sheet", SHEET), ("Base", BASE)),
    "a reference point": parts(("Sheet", SHEET), assembly=INSTANCE.format("") + "*Node\n1, 0., 0., 50.\n"),
    "trusses": SHEET + "*Element, type=T3D2\n900, 1, 2\n",
}


@pytest.mark.parametrize("name", INPUTS)
def test_every_form_of_abaqus_holds_the_same_sheet(tmp_path, name):
    (tmp_path / "a.inp").write_text(INPUTS[name])
    mesh = read_inp(tmp_path / "a.inp", "sheet" if "named" in name else None)
    np.testing.assert_allclose(mesh.points, POINTS, atol=1e-9)
    assert np.isclose(area(mesh), AREA)
    assert mesh.left_out == (("part BASE",) if "part" in name else ("1 elements T3D2",) if name == "trusses" else ())


def test_an_instance_is_moved_and_then_turned(tmp_path):
    (tmp_path / "a.inp").write_text(parts(("Sheet", SHEET), assembly=INSTANCE.format(TURNED)))
    x, y, z = POINTS.T
    np.testing.assert_allclose(read_inp(tmp_path / "a.inp").points, np.stack([-y, x, z + 30.0], axis=1), atol=1e-9)


def test_includes_are_followed(tmp_path):
    (tmp_path / "Mesh.inp").write_text(SHEET)
    (tmp_path / "a.inp").write_text("*Heading\n*Include, input = Mesh.inp\n*Step\n")
    assert len(read_inp(tmp_path / "a.inp").faces) == 32


def test_nodes_and_elements_may_be_in_files_of_their_own(tmp_path):
    nodes, elements = inp_nodes(POINTS), inp_elements(QUADS)
    (tmp_path / "n.txt").write_text("** by a tool\n" + nodes.split("\n", 1)[1].replace("e+", "D+"))
    (tmp_path / "e.txt").write_text(elements.split("\n", 1)[1])
    (tmp_path / "a.inp").write_text('*Node, input="n.txt", nset=all\n*Element, INPUT = e.txt, type=S4R\n')
    mesh = read_inp(tmp_path / "a.inp")
    np.testing.assert_allclose(mesh.points, POINTS, atol=1e-9)
    assert len(mesh.faces) == 32


def test_exponents_may_be_fortrans(tmp_path):
    (tmp_path / "a.inp").write_text(inp_nodes(POINTS * 1e-9).replace("e-", "D-") + inp_elements(QUADS))
    np.testing.assert_allclose(read_inp(tmp_path / "a.inp").points, POINTS * 1e-9, atol=1e-15)


@pytest.mark.parametrize(
    ("kind", "nodes", "faces"),
    [("S8R", NODES_OF_S8R, 12), ("M3D9", [[*NODES_OF_S8R[0], 6]], 8), ("STRI65", [[0, 2, 12, 1, 7, 6]], 4)],
)
def test_middles_of_sides_are_corners_of_triangles(tmp_path, kind, nodes, faces):
    flat = POINTS * [1.0, 1.0, 0.0]
    (tmp_path / "a.inp").write_text(inp_nodes(flat) + inp_elements(np.array(nodes), kind))
    mesh = read_inp(tmp_path / "a.inp")
    assert len(mesh.faces) == faces and f"{25 - len(np.unique(nodes))} nodes of no surface" in mesh.left_out[0]
    assert np.isclose(area(mesh), 50.0 * 50.0 * len(nodes) / (2.0 if kind == "STRI65" else 1.0))


REFUSED = {
    "2 parts with surfaces: SHEET, BASE.*--part": parts(("Sheet", SHEET), ("Base", BASE)),
    "node 2 twice": SHEET + BASE.replace("*Node\n1,", "*Node\n26,"),
    "elements C3D4": SHEET + "*Element, type=C3D4\n90, 1, 2, 3, 7\n",
    "element of node 22": inp_nodes(POINTS[:20]) + inp_elements(QUADS),
    "NGEN": SHEET + "*Ngen\n1, 5\n",
    "cylindrical": SHEET.replace("*Node", "*Node, system=C"),
    "not 4 nodes": SHEET.replace("1, 1, 2, 7, 6", "1, 1, 2, 7"),
    "no surface elements": inp_nodes(POINTS),
    "others: none": inp_nodes(POINTS) + "*Element, type=S4R,",
}


@pytest.mark.parametrize("said", REFUSED)
def test_abaqus_that_is_ambiguous_or_no_surface_says_so(tmp_path, said):
    (tmp_path / "a.inp").write_text(REFUSED[said])
    with pytest.raises(SoftformError, match=said):
        read_inp(tmp_path / "a.inp")


def test_a_part_that_is_not_there_is_said_with_those_that_are(tmp_path):
    (tmp_path / "a.inp").write_text(INPUTS["a part that is named"])
    with pytest.raises(SoftformError, match="no part 'lid'.*SHEET, BASE"):
        read_inp(tmp_path / "a.inp", "lid")
