"""The QR code is read as a camera would read it."""

import builtins

import cv2
import numpy as np
import pytest

from softform_console.qr_code import qr_code

ADDRESS = "https://192.168.1.20:8765/?token=Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4"


def picture(code):
    """A terminal with white letters on black, 10 px a module."""
    pixels = []
    for line in code.splitlines():
        pixels.append([255 * (letter in "▀█") for letter in line])
        pixels.append([255 * (letter in "▄█") for letter in line])
    return np.kron(np.array(pixels, dtype=np.uint8), np.ones((10, 10), dtype=np.uint8))


def test_a_camera_reads_the_address():
    pytest.importorskip("segno", reason="requirements-qr.txt is not installed")
    code = qr_code(ADDRESS)
    assert len({len(line) for line in code.splitlines()}) == 1
    read, *_ = cv2.QRCodeDetector().detectAndDecode(np.pad(picture(code), 40, constant_values=0))
    assert read == ADDRESS


def test_without_segno_there_is_none(monkeypatch):
    ask = builtins.__import__

    def importing(name, *more):
        if name == "segno":
            raise ImportError(name)
        return ask(name, *more)

    monkeypatch.setattr(builtins, "__import__", importing)
    assert qr_code(ADDRESS) == ""
