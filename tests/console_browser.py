"""The browser of the tests of the console's page."""

from contextlib import contextmanager

import pytest

from softform_core.errors import SoftformError
from softform_studies.console.browser import chromium, tab

__all__ = ["browsers", "tab"]


@contextmanager
def browsers():
    """Chromium; the test is skipped where it or Playwright is not installed."""
    started = chromium()
    try:
        browser = started.__enter__()
    except SoftformError as error:
        pytest.skip(str(error))
    try:
        yield browser
    finally:
        started.__exit__(None, None, None)
