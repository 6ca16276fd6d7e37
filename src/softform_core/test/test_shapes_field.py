"""Meshes and clouds as public reports have them: each is read right, or rejected with the reason that helps."""

import struct
import unicodedata

import numpy as np
import open3d
import pytest

from softform_core.errors import SoftformError
from softform_core.evaluation.look import look_at, moved
from softform_core.robots import load_robot
from softform_core.shapes import read as reading
from softform_core.shapes.placing import placement
from softform_core.shapes.polygons import MOST_CORNERS, triangulated
from softform_core.shapes.read import read_file, read_shape
from softform_core.shapes.shape import Shape

pytestmark = pytest.mark.slow

SIDE = 21
X, Y = (axis.ravel() for axis in np.meshgrid(np.linspace(-160.0, 160.0, SIDE), np.linspace(-160.0, 160.0, SIDE)))
DOME = np.column_stack([X, Y, 24.0 * (1.0 - (X / 160.0) ** 2) * (1.0 - (Y / 160.0) ** 2)])
CORNER = (np.arange(SIDE - 1)[:, None] * SIDE + np.arange(SIDE - 1)).ravel()
QUADS = np.stack([CORNER, CORNER + 1, CORNER + SIDE + 1, CORNER + SIDE], axis=1)
FACES = np.concatenate([QUADS[:, [0, 1, 2]], QUADS[:, [0, 2, 3]]])
MIXED = [*FACES[: len(QUADS) // 2].tolist(), *FACES[len(QUADS) : 3 * len(QUADS) // 2].tolist(), *QUADS[200:].tolist()]
HEXAGONS = [[c, c + 1, c + 2, c + 2 + SIDE, c + 1 + SIDE, c + SIDE] for c in CORNER.reshape(20, 20)[:, ::2].ravel()]
CLOUD, MESH = (441, 0, None), (441, 800, 104017.0)


def rows(points=DOME, layout="%.4f %.4f %.4f"):
    return "".join(layout % tuple(point) + "\n" for point in points)


def obj(points=DOME, faces=FACES, vertex="v %.6f %.6f %.6f", face="f {}", corner="{}"):
    lines = [face.format(" ".join(corner.format(index + 1) for index in one)) for one in faces]
    return rows(points, vertex) + "".join(line + "\n" for line in lines)


def in_blocks(base=""):
    """Strips of the dome, each of its own vertices, which its faces count backwards."""
    text = ""
    for row in range(SIDE - 1):
        text += rows(DOME[row * SIDE : (row + 2) * SIDE], "v %.6f %.6f %.6f") + base
        for a, b, c in [face for face in FACES if face[0] // SIDE == row]:
            text += "f " + " ".join(str(int(index) - (row + 2) * SIDE) for index in (a, b, c)) + "\n"
    return text


def stl(change=lambda text: text, names=("dome",)):
    text = ""
    for name, part in zip(names, np.array_split(FACES, len(names)), strict=True):
        text += f"solid {name}\n"
        for corners in DOME[part]:
            inner = "".join("   vertex {:.6e} {:.6e} {:.6e}\n".format(*corner) for corner in corners)
            text += f" facet normal 0.0 0.0 1.0\n  outer loop\n{inner}  endloop\n endfacet\n"
        text += f"endsolid {name}\n"
    return change(text)


def ply(points=DOME, faces=(), form="ascii", before="", properties="float x\nfloat y\nfloat z", after="", body=None):
    order = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}[form]
    names = "".join(f"property {one}\n" for one in properties.split("\n"))
    listed = "property list uchar int vertex_indices\n"
    head = f"ply\n{before}format {form} 1.0\nelement vertex {len(points)}\n{names}"
    head += (f"element face {len(faces)}\n{listed}" if len(faces) else "") + f"{after}end_header\n"
    if not order:
        polygons = "".join(f"{len(one)} {' '.join(map(str, one))}\n" for one in faces)
        return head.encode() + (rows(points) + polygons if body is None else body).encode()
    packed = b"".join(struct.pack(f"{order}B{len(one)}i", len(one), *one) for one in faces)
    return head.encode("latin-1") + np.asarray(points, order + "f4").tobytes() + packed


def pcd(kinds, packed=False, names="x y z", extra=()):
    """Columns of the dome of these NumPy types, and more, in one row of the file."""
    columns = [DOME[:, "xyz".index(name)] if name in "xyz" else np.zeros(len(DOME)) for name in names.split()]
    dtype = np.dtype([(str(place), f"<{kind}") for place, kind in enumerate(kinds.split())])
    table = np.empty(len(DOME), dtype)
    for place, column in enumerate(columns):
        table[str(place)] = column
    head = f"VERSION 0.7\nFIELDS {names}\nSIZE {' '.join(k[1] for k in kinds.split())}\n"
    head += f"TYPE {' '.join(k[0].upper() for k in kinds.split())}\nCOUNT{' 1' * len(columns)}\nWIDTH 441\nHEIGHT 1\n"
    head += f"VIEWPOINT 0 0 0 1 0 0 0\nPOINTS 441\nDATA binary{'_compressed' * packed}\n"
    if not packed:
        return head.encode() + table.tobytes()
    body = b"".join(table[name].tobytes() for name in dtype.names)
    runs = b"".join(bytes([len(body[at : at + 32]) - 1]) + body[at : at + 32] for at in range(0, len(body), 32))
    return head.encode() + struct.pack("<II", len(runs), len(body)) + runs


def organised(nothing):
    """The dome as a cloud of which 60 places were not measured."""
    lines = rows().split("\n")
    for place in np.random.default_rng(1).choice(441, 60, replace=False):
        lines[place] = " ".join([nothing] * 3)
    return "\n".join(lines)


def strips():
    """The dome as one list of triangle strips, with -1 between them."""
    below = np.arange(SIDE * (SIDE - 1)).reshape(SIDE - 1, SIDE)
    pairs = np.stack([below + SIDE, below], axis=2).reshape(SIDE - 1, -1)
    return " -1 ".join(" ".join(map(str, one)) for one in pairs)


BOM = b"\xef\xbb\xbf"
TWO_LINES = rows(DOME, "%.4f %.4f %.4f \n120 130 90 ")
COLOURS = "float32 x\nfloat32 y\nfloat32 z\nuchar red\nuchar green\nuchar blue"
NUMBERED = "".join(f"{n},{x},{y},{z}\n" for n, (x, y, z) in enumerate(DOME, 1))

READ = {
    # K2, K3 and what else OBJ files have.
    "blocks.obj": (in_blocks(), (840, 800, 104017.0)),
    "blocks_after_positive.obj": (obj(DOME[:3] + 1000.0, [[0, 1, 2]]) + in_blocks(), (843, 801, None)),
    "tabs.obj": (obj(vertex="v\t%.6f\t%.6f\t%.6f").replace("f ", "f\t"), MESH),
    "tabs_here_and_there.obj": (rows(DOME[:200], "v\t%f %f %f") + rows(DOME[200:], "v %f %f %f"), CLOUD),
    "two_sides.obj": (obj(faces=[*FACES, *FACES[:, ::-1]]), MESH),
    "indented.obj": (obj(vertex="  v   %.6f  %.6f  %.6f"), MESH),
    "normal_for_each_face.obj": ("vt 0 0\nvn 0 0 1\n" + obj(corner="{}/1/1"), MESH),
    "normals_alone.obj": (obj(corner="{0}//{0}"), MESH),
    "comments.obj": (obj(vertex="v %f %f %f # C:\\a\\", face="f {} # b"), MESH),
    "continued.obj": (obj(face="f {}").replace("f ", "f \\\n "), MESH),
    "old_mac.obj": (obj().replace("\n", "\r"), MESH),
    "capitals.obj": (obj().upper(), MESH),
    "windows.obj": (obj().replace("\n", "\r\n"), MESH),
    "latin.obj": (b"o K\xf6rper\n" + obj().encode(), MESH),
    "lines_and_points.obj": (obj() + "l 1 2 3\np 4\n", MESH),
    "some_colours.obj": (rows(DOME[:9], "v %f %f %f 0.5 0.5 0.5") + obj()[len(rows(DOME[:9], "v %f %f %f")) :], MESH),
    "commas.obj": (obj().replace(".", ","), MESH),
    "hexagons.obj": (obj(faces=HEXAGONS), MESH),
    # K15, K16 and what else STL files have.
    "capitals.stl": (stl(str.upper), MESH),
    "Solid.stl": (stl(lambda text: text.replace("solid", "Solid", 1)), MESH),
    "bom.stl": (BOM + stl().encode(), MESH),
    "vertex.stl": (stl(names=("vertex group",)), MESH),
    "facet_and_solid.stl": (stl(names=("my solid endsolid facet normal",)), MESH),
    "two_solids.stl": (stl(names=("", "")), MESH),
    "commas.stl": (stl(lambda text: text.replace(".", ",")), MESH),
    "fortran.stl": (stl(lambda text: text.replace("e+", "D+").replace("e-", "D-")), MESH),
    # K10, K17, K18 and what else PLY files have.
    "triangles_and_quads.ply": (ply(faces=MIXED, form="binary_little_endian"), MESH),
    "triangles_and_quads_big.ply": (ply(faces=MIXED, form="binary_big_endian"), MESH),
    "triangles_and_quads_ascii.ply": (ply(faces=MIXED), MESH),
    "hexagons.ply": (ply(faces=HEXAGONS, form="binary_little_endian"), MESH),
    "floats.ply": (
        ply(after="element camera 1\nproperty list uchar float view\n", faces=FACES, body=None) + b"2 0.5 0.25\n",
        MESH,
    ),
    "edges.ply": (ply(after="element edge 1\nproperty int a\nproperty int b\n", body=rows() + "0 1\n"), CLOUD),
    "two_lines.ply": (ply(properties=COLOURS, body=TWO_LINES), CLOUD),
    "one_line.ply": (ply(body=rows().replace("\n", " ")), CLOUD),
    "commas.ply": (ply(body=rows().replace(".", ",")), CLOUD),
    "blank_lines.ply": (ply(body="\n\n" + rows().replace("\n", "\n\n")), CLOUD),
    "latin.ply": (ply(faces=FACES, form="binary_little_endian", before="comment f\xfcr end_header 3\n"), MESH),
    "bom.ply": (BOM + ply(faces=FACES), MESH),
    "comment_first.ply": (ply(faces=FACES, form="binary_big_endian", before="comment by a scanner\n"), MESH),
    "columns.ply": (ply(DOME[:, ::-1], properties="double z\nfloat Y\nfloat x"), CLOUD),
    "capitals.ply": (ply(faces=FACES).replace(b"t vertex", b"t Vertex").replace(b"t face", b"t FACE"), MESH),
    "strips.ply": (
        ply(after="element tristrips 1\nproperty list int int vertex_indices\n", body=f"{rows()}859 {strips()}\n"),
        MESH,
    ),
    # K9, K22, K23, K26: tables.
    "id.xyz": ("ID,X,Y,Z\n" + NUMBERED, CLOUD),
    "index.xyz": (",x,y,z\n" + NUMBERED, CLOUD),
    "back.xyz": ("z y x\n" + rows(DOME[:, ::-1]), CLOUD),
    "paraview.xyz": (
        '"Normals:0","Normals:1","Points:0","Points:1","Points:2"\n' + rows(DOME, "0.1,0.2,%f,%f,%f"),
        CLOUD,
    ),
    "units.xyz": ("n;X [mm];Y [mm];Z [mm]\n" + rows(DOME, "7;%f;%f;%f"), CLOUD),
    "bom.xyz": (BOM + rows().replace("\n", "\r\n").encode(), CLOUD),
    "utf16.xyz": (rows().encode("utf-16"), CLOUD),
    "semicolons.xyz": (rows(layout="%.4f;%.4f;%.4f").replace(".", ","), CLOUD),
    "tabs.xyz": (rows(layout="%.4f\t%.4f\t%.4f").replace(".", ","), CLOUD),
    "blanks.xyz": (rows().replace(".", ","), CLOUD),
    "trailing.xyz": (rows(layout="%.4f, %.4f,  %.4f,"), CLOUD),
    "titles.xyz": ("Scan export\nUnit mm\nPoints\nx y z\n" + rows(), CLOUD),
    "percent.xyz": ("% Version: 6.1\n% x y z\n" + rows(), CLOUD),
    "count.xyz": ("//X;Y;Z;R\n441\n" + rows(layout="%f;%f;%f;255"), CLOUD),
    "no_end.xyz": (rows()[:-1], CLOUD),
    "units_below.xyz": ('"z";"y";"x"\nmm;mm;mm\n' + rows(DOME[:, ::-1], "%f;%f;%f"), CLOUD),
    "german.xyz": ("Nr;Y-Koordinate;X-Koordinate;Z-Koordinate\n" + rows(DOME[:, [1, 0, 2]], "7;%f;%f;%f"), CLOUD),
    "quoted.xyz": ('"x","y","z"\n' + rows(DOME, '"%f","%f","%f"'), CLOUD),
    "quoted_commas.xyz": ('"x","y","z"\n' + rows(DOME, '"%f","%f","%f"').replace(".", ","), CLOUD),
    "normals_behind.xyz": (rows(DOME, "%g %g %g 0.6 0.0 0.8"), CLOUD),
    # K8 and what else PCD files have.
    "doubles.pcd": (pcd("f8 f8 f8"), CLOUD),
    "mixed.pcd": (pcd("f4 f8 f4"), CLOUD),
    "intensity.pcd": (pcd("f8 f8 f8 f4", names="x y z i"), CLOUD),
    "whole_numbers.pcd": (pcd("i2 i4 f4"), CLOUD),
    "capitals.pcd": (pcd("f4 f4 f4").replace(b"x y z", b"X Y Z").replace(b"F F F", b"f f f"), CLOUD),
    "bom.pcd": (BOM + pcd("f4 f4 f4"), CLOUD),
    "comments.pcd": (b"# f\xfcr Probe\n\n" + pcd("f4 f4 f4"), CLOUD),
    "version_5.pcd": (pcd("f4 f4 f4").replace(b"FIELDS", b"COLUMNS").replace(b"WIDTH 441\nHEIGHT 1\n", b""), CLOUD),
    "packed.pcd": (pcd("u1 f8 f4 f8", True, "a z y x"), CLOUD),
    "no_end.pcd": (pcd("f4 f4 f4").split(b"binary\n")[0] + b"ascii\n" + rows()[:-1].encode(), CLOUD),
}  # fmt: skip


def written(folder, name, content):
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("name", READ)
def test_the_dome_is_read_as_it_is(tmp_path, name):
    content, (points, triangles, area) = READ[name]
    shape = read_shape(written(tmp_path, name, content), "mm")
    look = look_at(shape, load_robot("membrane"))
    assert (look.points, look.triangles) == (points, triangles)
    if area is not None:
        assert look.area_mm2 == pytest.approx(area, rel=1e-4)
    found = {tuple(point) for point in np.round(1000.0 * shape.points, 3) + 0.0}
    assert {tuple(point) for point in np.round(DOME, 3) + 0.0} <= found
    if triangles == 800:
        assert shape.facing[2] > 0.9


REJECTED = {
    "nan.obj": (obj().replace("v 0.000000 0.000000 24.000000", "v nan nan nan"), "1 of 441 points"),
    "half.obj": (obj()[:9000] + "\nv", "'v' is no whole line"),
    "nowhere.obj": (obj() + "f 1 2 442\n", "names a vertex that is not there; the vertices are 441"),
    "zero.obj": (obj() + "f 0 1 2\n", "something else than its number"),
    "letter.stl": (stl(lambda text: text.replace("-1.44", "x-1.44", 1)), "'x-1.440000e.02' is no number"),
    "overflow.stl": (stl(lambda text: text.replace("-1.440000e+02", "*********", 1)), r"'\*{9}' is no number"),
    "ind.stl": (stl(lambda text: text.replace("-1.440000e+02", "-nan(ind)", 1)), "NaN or infinite"),
    "qnan.stl": (stl(lambda text: text.replace("-1.440000e+02", "1.#QNAN", 1)), "NaN or infinite"),
    "cut.stl": (stl()[: stl().index(" facet", 9000)], "1 solids, 0 ends of solids"),
    "swapped.stl": (stl(lambda text: text.replace("vertex", "vertx", 1)), "Facet 1 has 'vertx' in place of 'vertex'"),
    "too_few.ply": (ply(DOME[:-1], body=rows()), "1323 numbers after the header, which promises 1320"),
    "no_list.ply": (ply(after="element face 1\nproperty int a\n", body=rows() + "3\n"), "faces name no vertices"),
    "no_index.ply": (ply(faces=[[0, 1, 1.5]]), "something else than its number"),
    "counted.xyz": (NUMBERED, "first column counts the rows"),
    "down.xyz": ("\n".join(NUMBERED.split("\n")[::-1]) + "\n", "first column counts the rows"),
    "held.xyz": (rows(layout="0.5 %.4f %.4f %.4f"), "first column has one number in all rows"),
    "two.xyz": ("441\n" + rows() + rows(), "882 rows; above them it promises 441"),
    "timed.xyz": ("".join(f"{n * 0.033:.3f} {x} {y} {z}\n" for n, (x, y, z) in enumerate(DOME)), "rows, or time"),
    "shuffled.xyz": ("".join(f"{7 * n % 441} {x} {y} {z}\n" for n, (x, y, z) in enumerate(DOME)), "whole numbers"),
    "colours_first.xyz": (rows(layout="90 120 60 %.4f %.4f %.4f"), "first column has whole numbers"),
    "columns.xyz": ("\n".join(" ".join(map(str, axis)) for axis in [*DOME.T, X]) + "\n", "4 rows have 441 numbers"),
    "heights.xyz": ("\n".join(" ".join(map(str, row)) for row in DOME[:, 2].reshape(21, 21)), "21 rows have 21 num"),
    "halves.xyz": (rows(np.round(DOME * 2.0) / 2.0, "%.1f,%.1f,%.1f").replace(".", ","), "Commas seem to be decimal"),
    "centimetres.xyz": ("x,y,z\ncm,cm,cm\n" + rows(layout="%f,%f,%f"), "in cm, but was to be read in mm"),
    "inches.obj": ("# Units: inches\n" + obj(), "in inches, but was to be read in mm"),
    "far.xyz": (rows().replace("24.0000", "1e10"), r"A coordinate is 1e\+10"),
    "cut.obj": (rows(layout="v %.4f %.4f %.4f")[:-3], "ends within a number"),
    "cut.ply": (ply()[:-3], "ends within a number"),
    "whole_commas.ply": (ply(body=rows(DOME, "%d,%d,%d")), "'-160,-160,0' is no number"),
    "page_below.ply": ("\ufeff\n <!DOCTYPE html>\n", "a web page"),
    "packed.obj": (b"7z\xbc\xaf\x27\x1c", "packed"),
    "commas_and_points.ply": (ply(body=rows()[:600] + rows()[600:].replace(".", ",")), "'-.*,.*' is no number"),
    "page.stl": ("<!DOCTYPE html>\n", "a web page"),
    "names.xyz": ("".join(f"P{n} 1 2 {n}\n" for n in range(9)), "the first one is 'P0 1 2 0'"),
    "others.xyz": ("a b c\n" + rows(), "None of its columns is named x, y or z"),
    "few_names.xyz": ("z y x\n" + rows(layout="%f %f %f 1"), "names 3 of 4 columns"),
    "ragged.xyz": (rows(DOME[:9]) + rows(DOME[9:], "%f %f %f 1 2 3"), "not all of as many numbers"),
    "commas.xyz": (rows(layout="%.4f,%.4f,%.4f").replace(".", ","), "Commas seem to be decimal marks"),
    "cut.xyz": (rows()[:-3], "ends within a number"),
    "more.pcd": (pcd("f8 f8 f8").replace(b"SIZE 8 8 8", b"SIZE 4 4 4"), "does not hold just the 441 points"),
    "pointer.pcd": ("version https://git-lfs.github.com/spec/v1\n", "pointer of Git LFS"),
}


@pytest.mark.parametrize("name", REJECTED)
def test_what_cannot_be_read_right_is_rejected_with_the_reason(tmp_path, name):
    content, says = REJECTED[name]
    with pytest.raises(SoftformError, match=says) as caught:
        read_shape(written(tmp_path, name, content), "mm")
    assert "unit" not in caught.value.next_step and caught.value.next_step


@pytest.mark.parametrize(
    "head", ["x [m],y [m],z [m]", "x_m;y_m;z_m", "x/m\ty/m\tz/m", "# unit: metres", "x y z\nm m m"]
)
def test_a_unit_that_the_file_contradicts_is_refused(tmp_path, head):
    path = written(tmp_path, "a.xyz", f"{head}\n{rows()}")
    assert len(read_shape(path, "m").points) == 441
    with pytest.raises(SoftformError, match="in m, but was to be read in mm. State the unit m"):
        read_shape(path, "mm")


@pytest.mark.parametrize("nothing", ["nan", "-nan(ind)", "1.#QNAN", "inf", "0.0"])
@pytest.mark.parametrize("kind", ["ply", "xyz", "pcd"])
def test_what_was_not_measured_is_left_out_and_said(tmp_path, kind, nothing):
    body = organised(nothing)
    head = {"ply": ply(body=""), "xyz": b"", "pcd": pcd("f4 f4 f4").split(b"binary\n")[0] + b"ascii\n"}[kind]
    read = read_file(written(tmp_path, f"a.{kind}", head + body.encode()), "mm")
    assert len(read.shape.points) == 381
    assert read.notes == ("60 points that were not measured (NaN, or all zeros) were left out",)


def test_what_was_not_measured_and_then_moved_is_left_out_but_no_points_that_come_twice(tmp_path):
    read = read_file(written(tmp_path, "a.xyz", organised("0.1").replace("0.1 0.1 0.1", "-12.5 40.0 -500.0")), "mm")
    assert len(read.shape.points) == 381 and read.shape.points[:, 2].min() == 0.0
    assert read.notes == ("60 points at one place were left out, as if they were not measured",)
    assert len(read_shape(written(tmp_path, "b.xyz", rows(np.repeat(DOME, 20, axis=0))), "mm").points) == 8820
    assert len(read_shape(written(tmp_path, "c.xyz", rows(DOME) + rows(DOME[:1]) * 8), "mm").points) == 449


def test_vertices_of_a_mesh_that_were_not_measured_are_left_out_but_no_seam_and_no_cone(tmp_path):
    holed = np.where(np.isin(np.arange(441), [60, 130, 300])[:, None], 0.0, DOME)
    read = read_file(written(tmp_path, "a.ply", ply(holed, FACES, body=None)), "mm")
    assert len(read.shape.points) == 438 and len(read.shape.faces) == 800 - 18
    assert read.notes[0].startswith("3 vertices that were not measured")
    flat = (DOME * [1.0, 1.0, 0.0])[FACES].reshape(-1, 3)  # six corners at the origin, of triangles apart
    soup = np.arange(2400).reshape(-1, 3)
    assert len(read_file(written(tmp_path, "b.obj", obj(flat, soup)), "mm").shape.faces) == 800
    angle = np.linspace(0.0, 2.0 * np.pi, 101)
    base = np.column_stack([np.cos(angle), np.sin(angle), 3.0 + 0.0 * angle])
    cone = np.stack([np.zeros((100, 3)), base[:-1], base[1:]], axis=1).reshape(-1, 3)
    assert len(read_file(written(tmp_path, "c.obj", obj(cone, soup[:100])), "mm").shape.faces) == 100


def test_one_point_at_the_origin_is_one_of_the_surface(tmp_path):
    shape = read_shape(written(tmp_path, "flat.xyz", rows(DOME * [1.0, 1.0, 0.0])), "mm")
    assert len(shape.points) == 441


def test_binary_stl_may_be_padded_and_has_no_triangles_that_are_one_point(tmp_path):
    table = np.zeros(803, np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")]))
    table["corners"][3:] = DOME[FACES] + 500.0
    content = b"solid".ljust(80) + struct.pack("<I", 803) + table.tobytes() + b"\r\n\0\0"
    read = read_file(written(tmp_path, "a.stl", content), "mm")
    assert (len(read.shape.points), len(read.shape.faces)) == (441, 800) and read.shape.points.min() > 0.3
    assert "3 triangles that are one point were left out" in read.notes


def test_whole_numbers_by_commas_without_a_newline_are_not_cut(tmp_path):
    content = rows(layout="%.0f,%.0f,%.0f,255") + "160,160,0,9"
    assert len(read_shape(written(tmp_path, "a.xyz", content), "mm").points) == 442


def test_what_is_not_used_is_said(tmp_path, caplog):
    content = obj(np.concatenate([DOME, [[np.nan] * 3, [1e6] * 3]])) + "curv 0 1 1 2\n"
    shape = read_shape(written(tmp_path, "a.obj", content), "mm")
    assert len(shape.points) == 441
    assert "1 lines 'curv' are no polygons" in caplog.text and "2 vertices that belong to no face" in caplog.text
    content = ply(after="element camera 1\nproperty float a\n", body=rows() + "0\n")
    assert read_file(written(tmp_path, "a.ply", content), "mm").notes == (
        "1 rows of the element 'camera' are no shape: not read",
    )
    content = pcd("f4 f4 f4").replace(b"0 0 0 1 0 0 0", b"0 0 1 1 0 0 0")
    assert "VIEWPOINT" in read_file(written(tmp_path, "a.pcd", content), "mm").notes[0]


@pytest.mark.parametrize(
    ("corners", "area"),
    [
        ([[100, 0], [0, 0], [0, 100], [-100, 100], [-100, -100], [100, -100]], 30_000.0),
        ([[-160, -160], [0, -100], [160, -160], [0, 160]], 41_600.0),
        ([[0, 0], [10, 0], [10, 10], [5, 10], [0, 10], [0, 5]], 100.0),
        ([[0, 0], [9, 0], [9, 9], [6, 9], [6, 3], [3, 3], [3, 9], [0, 9]], 63.0),
    ],
)
def test_concave_polygons_have_their_own_area_from_every_corner_and_side(corners, area):
    flat = np.column_stack([np.array(corners, dtype=float), np.full(len(corners), 7.0)])
    for points in (flat, flat[:, [2, 0, 1]], flat @ np.linalg.qr(np.arange(9.0).reshape(3, 3) ** 2 + np.eye(3))[0]):
        for start in range(len(points)):
            for turn in (1, -1):
                order = np.roll(np.arange(len(points))[::turn], start)
                triangles = triangulated(points, np.array([order, order]))
                assert len(triangles) == 2 * (len(points) - 2)
                a, b, c = points[triangles].transpose(1, 0, 2)
                normals = np.cross(b - a, c - a) / 4.0
                assert np.linalg.norm(normals, axis=1).sum() == pytest.approx(area)
                assert np.linalg.norm(normals.sum(axis=0)) == pytest.approx(area)  # none is turned over


def test_a_circle_is_cut_and_too_many_corners_are_refused():
    angle = np.linspace(0.0, 2.0 * np.pi, 101)[:-1]
    points = np.column_stack([np.cos(angle), np.sin(angle), 0.0 * angle])
    a, b, c = points[triangulated(points, np.arange(100)[None])].transpose(1, 0, 2)
    assert np.cross(b - a, c - a)[:, 2].sum() / 2.0 == pytest.approx(np.pi, rel=1e-3)
    with pytest.raises(SoftformError, match="at most"):
        triangulated(points, np.zeros((1, MOST_CORNERS + 1), dtype=int))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_packed_clouds_of_open3d_are_read(tmp_path, kind):
    cloud = open3d.t.geometry.PointCloud(open3d.core.Tensor(DOME.astype(kind)))
    open3d.t.io.write_point_cloud(str(tmp_path / "a.pcd"), cloud, compressed=True)
    assert b"binary_compressed" in (tmp_path / "a.pcd").read_bytes()
    assert np.allclose(1000.0 * read_shape(tmp_path / "a.pcd", "mm").points, DOME, atol=1e-4)


@pytest.mark.parametrize(("on_disk", "asked"), [("NFD", "NFC"), ("NFC", "NFD")])
def test_a_name_is_found_however_its_accents_are_coded(tmp_path, on_disk, asked):
    folder = tmp_path / unicodedata.normalize(on_disk, "für")
    folder.mkdir()
    written(folder, unicodedata.normalize(on_disk, "prüfung.xyz"), rows())
    assert len(read_shape(tmp_path / unicodedata.normalize(asked, "für/prüfung.xyz"), "mm").points) == 441


def test_reading_does_not_write(tmp_path):
    path = written(tmp_path, "a.ply", ply(faces=FACES))
    path.chmod(0o444)
    before = path.read_bytes(), path.stat().st_mtime_ns
    read_shape(path, "mm")
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before and [*tmp_path.iterdir()] == [path]


def test_a_look_tells_parts_holes_unit_place_and_what_lies_beside():
    robot = load_robot("membrane")
    mesh = Shape.from_mesh((DOME + [0.0, 0.0, 40.0]) / 1000.0, FACES)
    centred, pose = moved("place", placement(mesh, robot), mesh)
    look = look_at(centred, robot, pose, (), "mm")
    assert look.box_mm == [[-160.0, -160.0, 0.0], [160.0, 160.0, 24.0]]
    assert (look.parts, look.holes, look.unit_guess, look.beside_robot_share) == (1, 0, "mm", 0.0)
    assert look.pose == "place: moved by (0.00, 0.00, -40.00) mm, turned by 0.00 degrees"
    assert "441 points, 800 triangles, 104017 mm², 320 x 320 x 24 mm, 1 part, no holes, 0 % of" in look.line()
    holed = Shape(mesh.points + [0.08, 0.0, 0.0], None, np.delete(FACES, [190, 590, 230, 630, 631], axis=0))
    look = look_at(holed, robot, unit="m")
    assert look.holes == 2 and look.unit_guess == "m" and look.beside_robot_share == pytest.approx(0.25, abs=0.01)
    soup = Shape(mesh.points[FACES].reshape(-1, 3), None, np.arange(2400).reshape(-1, 3))
    assert (look_at(soup, robot).parts, look_at(soup, robot).holes) == (1, 0)
    debris = Shape(np.concatenate([mesh.points, mesh.points[:9] + 1.0]))
    look = look_at(debris, robot)
    assert look.parts > 1 and look.holes is None and look.area_mm2 is None
    assert look_at(Shape(np.repeat(debris.points, 2, axis=0)), robot).parts == look.parts
    assert look_at(debris, robot, "free").beside_robot_share is None
    assert look_at(debris, load_robot("three_chamber")).beside_robot_share is None


def test_each_type_has_one_reader():
    assert tuple(reading._READERS) == reading.EXTENSIONS == (".ply", ".obj", ".stl", ".pcd", ".xyz")
