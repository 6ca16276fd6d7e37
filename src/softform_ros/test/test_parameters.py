from pathlib import Path

import pytest

from softform_core.errors import SoftformError
from softform_ros.parameter_docs import with_current_tables
from softform_ros.parameters import Parameter, parameter_table_markdown

DOCS = Path(__file__).parents[3] / "docs" / "nodes"


def test_bounds_and_choices_are_checked():
    rate = Parameter("rate", 30.0, "rate in Hz", 1.0, 100.0)
    rate.check(30.0)
    for bad in (0.0, 101.0, float("nan")):
        with pytest.raises(SoftformError, match="rate"):
            rate.check(bad)
    with pytest.raises(SoftformError, match="one of: a, b"):
        Parameter("mode", "a", "mode", choices=("a", "b")).check("c")


def test_the_table_names_every_parameter():
    table = parameter_table_markdown(
        [Parameter("rate", 30.0, "rate in Hz", 1.0, 100.0), Parameter("port", "", "device")]
    )
    assert "| `rate` | float | `30.0` | 1 … 100 | rate in Hz |" in table
    assert "| `port` | str | (none) |" in table


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda path: path.stem)
def test_the_pages_hold_the_current_parameter_tables(page):
    text = page.read_text(encoding="utf-8")
    assert with_current_tables(text) == text, "run: python -m softform_ros.parameter_docs"
