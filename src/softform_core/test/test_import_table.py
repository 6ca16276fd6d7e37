"""Tables as programs and people write them: read as they are meant, or refused by the line that an editor shows."""

import os
import re
import unicodedata
from pathlib import Path

import numpy as np
import pytest

from softform_core.errors import SoftformError
from softform_core.importing.checks import numbers_in_si
from softform_core.importing.table import read_table

NAMES = ["p", "x", "y"]
VALUES = [[0.0, 1.25, 116.0], [34.5, -7.5, 121.0], [0.0, 2.0, 1e-3]]
PLAIN = "p,x,y\n0,1.25,116.0\n34.5,-7.5,121\n0,2,1e-3\n"
COMMAS = "p;x;y\n0;1,25;116,0\n34,5;-7,5;121\n0;2;0,001\n"


def table_of(folder, text, name="table.csv", **options):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_table(path, **options)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (PLAIN, 2),
        (PLAIN.replace("\n", "\r\n").encode("utf-8-sig"), 2),
        (PLAIN.replace("\n", "\r"), 2),
        (PLAIN.encode("utf-16"), 2),
        (PLAIN.replace(",", ";"), 2),
        (PLAIN.replace(",", "\t"), 2),
        (PLAIN.replace(",", "|"), 2),
        (re.sub("(?m)^(.*)$\n", r"| \1 |\n", PLAIN).replace("\n", "\n|---|---|---|\n", 1).replace(",", " | "), 3),
        (PLAIN.replace(",", "  "), 2),
        (PLAIN.replace(",", ", "), 2),
        (COMMAS, 2),
        (COMMAS.replace(";", "\t"), 2),
        (COMMAS.replace(";", " "), 2),
        ('p,x,y\n0,"1,25","116,0"\n"34,5","-7,5",121\n0,2,"0,001"\n', 2),
        ("sep=;\n" + COMMAS, 3),
        ("sep=,\n" + PLAIN, 3),
        ("# " + PLAIN, 2),
        ('% Model,arm.mph\n% Date,"Nov 3, 10:12"\n% ' + PLAIN, 4),
        ('#made by "X\n#\n\n' + PLAIN, 5),
        (PLAIN.replace("y\n", "y\n# 1st, 2nd, 3rd\n", 1), 3),
        ("# p,x,y\n# kPa,mm,mm\n" + PLAIN.split("\n", 1)[1], 3),
        (PLAIN.replace("y\n", "y,\n"), 2),
        (PLAIN.replace("\n0,2", "\n# half way\n\n0,2"), 2),
        (PLAIN.replace("x,y\n", "x,y\nkPa,mm,mm\n"), 3),
        (PLAIN.replace("x,y\n", "x,y\n[kPa],[mm],-\n"), 3),
        (PLAIN.replace("\n0,2", "\np,x,y\n0,2"), 2),
        (PLAIN.replace("\n", ",\n"), 2),
        (PLAIN.replace("\n", ",\n").replace("y,\n", "y\n"), 2),
        (PLAIN + ",,\n\n,,\n", 2),
        (PLAIN.replace("1.25", "1.25D+00").replace("-7.5", "-75.E-1"), 2),
        (",p,x,y\n0,0,1.25,116.0\n1,34.5,-7.5,121\n2,0,2,1e-3\n", 2),
    ],
)
def test_whatever_its_dress_a_table_says_the_same(tmp_path, text, line):
    table = table_of(tmp_path, text)
    assert list(table.columns) == NAMES and len(table) == 3 and table.lines[0] == line
    np.testing.assert_allclose(table.numbers(NAMES), VALUES, rtol=1e-12)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no row of numbers, in 0 lines"),
        ("p,x,y\n", "no row of numbers, in 1 lines; the first is 'p,x,y'"),
        ("1,2,3\n4,5,6\n", "no header above its 3 columns"),
        (PLAIN + "1,2\n", "Line 5 of .*table.csv has 2 cells, the header 3"),
        (PLAIN + "1,2,3,4\n", "Line 5 of .* has 4 cells"),
        (COMMAS.replace(";", ","), r"header in line 1 .* names 3 columns, line \d has \d cells.*decimal commas"),
        ('p,x,note\n1,2,"two\nlines"\n3,4\n', "Line 4 of .* has 2 cells"),
        (PLAIN.replace("\n0,2", '\n"0,2'), "no table: unexpected end of data"),
        (PLAIN.replace("y\n", "x\n"), "names 'x' twice"),
        (COMMAS.replace("116,0", "1.116,0"), "row of .* begins with 0, 1,25, 1.116,0 holds text"),
        ("p,x\n" + "1.50,2.00\n" * 3 + "1.50,2.", "last row of .*, '2.', ends within a number"),
        (b"PK\x03\x04\x00\x00", "a spreadsheet saved as CSV"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "Run: git lfs pull"),
    ],
)
def test_what_cannot_be_told_is_refused(tmp_path, text, why):
    with pytest.raises(SoftformError, match=why):
        table_of(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (PLAIN.replace("34.5", "3_4"), "Column 'p' .* holds text: '3_4' in line 3"),
        (PLAIN.replace("34.5", "3 400"), "'3 400' in line 3"),
        (PLAIN.replace("34.5", '"1,234.5"'), "'1,234.5' in line 3"),
        (COMMAS.replace("34,5", "34.5"), "comma in '1,25' .* there is '34.5', too"),
        (PLAIN.replace("1.25", '"1,250"').replace("-7.5", "3").replace("116.0", "1").replace("34.5", "3")
         .replace("1e-3", "1"), "comma in '1,250' .* cannot be told"),
    ],
)  # fmt: skip
def test_digits_that_mean_two_things_are_refused(tmp_path, text, why):
    with pytest.raises(SoftformError, match=why):
        table_of(tmp_path, text).numbers(NAMES)


def test_what_has_no_value_is_nan(tmp_path):
    cells = ["", "nan", "NaN", "-nan(ind)", "N/A", "#N/A", "null", "None", "-", "1.#QNAN", "inf"]
    table = table_of(tmp_path, "p,x\n" + "".join(f"{row},{cell}\n" for row, cell in enumerate(cells)) + "11,5\n")
    assert np.isnan(table.numbers(["x"])[:-1]).all() and table.numbers(["x"])[-1] == 5.0


def test_columns_are_named_as_they_are_or_nearly(tmp_path):
    table = table_of(tmp_path, unicodedata.normalize("NFD", "Drück 1, kPa;P;p;Tip  X\n1;2;3;4\n"))
    wanted = ["Drück 1, kPa", "p", "P", "tip x"]
    assert table.numbers(wanted).tolist() == [[1.0, 3.0, 2.0, 4.0]]
    with pytest.raises(SoftformError, match="no column 'q'. Its columns are \"Dr.*1, kPa\", P, p, Tip  X.*double quot"):
        table.numbers(["q"])


def test_names_with_blanks_stand_apart_by_more_than_one(tmp_path):
    text = "% Model:       arm.mph\n% p (kPa)     Displacement, x (mm)\n0       1.5\n3.5     -2\n"
    table = table_of(tmp_path, text)
    assert table.numbers(["p (kPa)", "Displacement, x (mm)"]).tolist() == [[0.0, 1.5], [3.5, -2.0]]


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        *[("p (kPa)", "kPa"), ("p [psi]", "psi"), ("p/bar", "bar"), ("p_kPa", "kPa"), ("p, mm", "mm"), ("x (m)", "m")],
        *[("p", ""), ("p_m", ""), ("p in", ""), ("v (mm/s)", ""), ("chamber (left)", ""), ("F [N]", "")],
    ],
)
def test_a_header_tells_units(tmp_path, name, unit):
    assert table_of(tmp_path, f"{name};q\n1;2\n3;4\n").unit(name) == unit
    assert table_of(tmp_path, "p,x\nkPa,mm\n1,2\n").unit("x") == "mm"


def test_latin_letters_of_windows_are_read(tmp_path):
    assert list(table_of(tmp_path, "p,Höhe µ\n1,2\n".encode("cp1252")).columns) == ["p", "Höhe µ"]


def test_lines_above_a_header_tell_its_columns_apart(tmp_path):
    motive = (
        "Format Version,1.23,Take Name,Take 1,Rate,120.0\n\n,,Rigid Body,Rigid Body,Rigid Body,Rigid Body\n"
        ",,Tip,Tip,Base,Base\n,,Position,Position,Position,Position\nFrame,Time (Seconds),X,Y,X,Y\n"
        "0,0.0,1,2,3,4\n1,0.1,5,6,7,8\n"
    )
    table = table_of(tmp_path, motive)
    assert list(table.columns)[:3] == ["Frame", "Time (Seconds)", "Tip Position X"] and table.lines.tolist() == [7, 8]
    assert table.numbers(["Base Position Y"]).ravel().tolist() == [4.0, 8.0]
    merged = table_of(tmp_path, "Base,,Tip,\nX,Y,X,Y\n1,2,3,4\n")
    assert list(merged.columns) == ["Base X", "Base Y", "Tip X", "Tip Y"]


def test_markers_have_the_names_that_people_gave_them(tmp_path):
    motive = (
        "Format Version,1.23,Length Units,Millimeters\n\n,Type,Marker,Marker,Marker,Marker\n,Name,Tip,Tip,Base,Base\n"
        ",ID,6B29FC40,6B29FC40,A11D,A11D\n,,Position,Position,Position,Position\nFrame,Time (Seconds),X,Y,X,Y\n"
        "0,0.0,1,2,3,4\n1,0.1,5,6,7,8\n"
    )
    table = table_of(tmp_path, motive)
    assert list(table.columns)[:3] == ["Frame", "Time (Seconds)", "Tip Position X"] and table.length_unit == "mm"
    assert table.numbers(["Base Position Y"]).ravel().tolist() == [4.0, 8.0]
    qualisys = "NO_OF_FRAMES\t2\nMARKER_NAMES\tTip\tBase\n1.5\t2\t3\t4\t5\t6\n7\t8\t9\t10\t11\t12\n"
    table = table_of(tmp_path, qualisys, "table.tsv")
    assert list(table.columns)[2:4] == ["Tip Z", "Base X"] and len(table) == 2
    assert table.numbers(["Tip X", "Base Z"]).tolist() == [[1.5, 6.0], [7.0, 12.0]]


def test_lines_that_are_no_rows_keep_their_place_where_that_is_wanted(tmp_path):
    text = 'ets Jul 29 2019 12:21:46\n1,2\n3,"4\nrst:0x1 (POWERON_RESET),boot:0x13\n5,6\n7'
    table = table_of(tmp_path, text, unnamed=("p", "x", "spare"), gaps=True)
    assert list(table.columns) == ["p", "x"] and table.lines.tolist() == [2, 3, 4, 5]
    values = table.numbers(["p", "x"], gaps=True)
    assert values[[0, 1, 3]].tolist() == [[1, 2], [3, 4], [5, 6]] and np.isnan(values[2]).all()
    with pytest.raises(SoftformError, match="no header above its 4 columns"):
        table_of(tmp_path, "1,2,3,4\n", unnamed=("p", "x", "spare"))


def test_arrays_are_columns(tmp_path):
    rows = np.arange(12.0).reshape(4, 3)
    fields = np.array([(1.5, 2)] * 4, dtype=[("x", ">f4"), ("n", "i4")])
    np.savez(
        tmp_path / "a.npz", p=rows, column=rows[:, :1], data=fields, t=0.5, name=np.array([b"a.obj"] * 4), grid=[1]
    )
    table = read_table(tmp_path / "a.npz")
    assert set(table.columns) == {"p1", "p2", "p3", "column", "x", "n", "name", "grid"} and len(table) == 4
    assert table.numbers(["p3", "column", "x", "n"])[1].tolist() == [5.0, 3.0, 1.5, 2.0]
    assert table.text("name")[0] == "a.obj" and table.rows(np.array([0])) == "row 0"
    with pytest.raises(SoftformError, match="'grid' of .* has 1 values, other columns 4"):
        table.numbers(["grid"])
    np.savez(tmp_path / "a.npz", z=np.ones(4, dtype=complex))
    with pytest.raises(SoftformError, match="holds text"):
        read_table(tmp_path / "a.npz").numbers(["z"])
    (tmp_path / "a.npz").write_text(PLAIN)
    with pytest.raises(SoftformError, match="damaged or no such table"):
        read_table(tmp_path / "a.npz")


@pytest.mark.parametrize(
    ("own", "told"),
    [
        (unicodedata.normalize("NFD", "prüfung.obj"), unicodedata.normalize("NFC", "prüfung.obj")),
        (unicodedata.normalize("NFC", "prüfung.obj"), unicodedata.normalize("NFD", "prüfung.obj")),
        ("SHAPE.OBJ", "shape.obj"),
        ("sub dir/a b.obj", "sub dir\\a b.obj"),
        ("sub dir/Ä.obj", "Sub Dir\\ä.obj"),
    ],
)
def test_a_file_is_found_by_a_name_that_differs_as_systems_differ(tmp_path, own, told):
    (tmp_path / own).parent.mkdir(exist_ok=True)
    (tmp_path / own).touch()
    assert table_of(tmp_path, f"p,file\n1,{told}\n").files("file") == [tmp_path / own]


def test_of_two_names_that_are_alike_the_one_that_is_told_is_taken_or_none(tmp_path):
    for name in ("a.obj", "A.obj"):
        (tmp_path / name).touch()
    assert table_of(tmp_path, "p,file\n1,A.obj\n").files("file") == [tmp_path / "A.obj"]
    for told in ("a.OBJ", "C:\\data\\a.obj"):
        with pytest.raises(SoftformError, match="does not exist: line 2 of"):
            table_of(tmp_path, f"p,file\n1,{told}\n").files("file")


def test_a_pipe_or_a_device_is_no_table(tmp_path):
    os.mkfifo(tmp_path / "a.csv")
    for path in (tmp_path / "a.csv", Path("/dev/zero")):
        with pytest.raises(SoftformError, match="not a regular file"):
            read_table(path)


@pytest.mark.parametrize(("says", "unit"), [("Length Units,Centimeters", "cm"), ("# unit: mm", "mm"), ("Notes", "")])
def test_the_unit_of_lengths_above_the_columns_must_be_the_stated_one(tmp_path, says, unit):
    table = table_of(tmp_path, f"{says}\n{PLAIN}")
    assert table.length_unit == unit
    if unit != "cm":
        assert numbers_in_si(table, ["x", "y"], "mm", "m")[0, 0] == 0.00125
    else:
        with pytest.raises(SoftformError, match="lengths are in cm, not in mm"):
            numbers_in_si(table, ["x", "y"], "mm", "m")
    assert numbers_in_si(table, ["p"], "kPa", "Pa")[1, 0] == 34500.0
