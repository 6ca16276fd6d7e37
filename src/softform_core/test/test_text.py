"""Strings of others, as they are shown."""

import pytest

from softform_core.text import printable


@pytest.mark.parametrize("text", ["", "plain", "Größe 3 µm – 10 %", "軟體機器人", "a\N{NO-BREAK SPACE}b"])
def test_what_is_printable_stays(text):
    assert printable(text) == text


@pytest.mark.parametrize(
    "text",
    ["\x1b[2J", "\x07", "a\0b", "\x9b31m", "\u202egpj.exe", "\u2066x\u2069", "\u200b", "\udcff", "\u2028", "\x7f"],
)
def test_what_does_something_is_replaced(text):
    shown = printable(text)
    assert shown.isprintable()
    assert "\N{REPLACEMENT CHARACTER}" in shown
    assert len(shown) == len(text)
    shown.encode()


def test_length_is_capped():
    assert printable("x" * 1000, 10) == "x" * 9 + "…"
    assert len(printable("\x1b" * 10**6)) == 200


def test_lines_never_begin_where_those_of_others_begin():
    assert printable("a\r\nb\tc\n[INFO] d") == "a b c [INFO] d"
    assert printable("a\r\nb\tc\n[INFO] d", lines=True) == "a\n    b c\n    [INFO] d"
    assert printable("a\rb", lines=True) == "a\N{REPLACEMENT CHARACTER}b"
