"""docs/safety.md: each hazard has tests that exist, each class of faults a hazard, and the table is what was kept."""

import re

import pytest

from softform_core.errors import SoftformError
from softform_core.paths import home
from softform_system_tests.fault_injection import safety_page
from softform_system_tests.fault_injection.campaign import CLASSES
from softform_system_tests.fault_injection.hazards import HAZARDS, SHARES
from softform_system_tests.schedules.promises import Promises

ROWS = [row for rows in HAZARDS.values() for row in rows]
FIGURES = {
    "injected": 3,
    "safe": 3,
    "safe_measured": 2,
    "reported_safe_but_not": 0,
    "classes": {
        "stuck valve": {"injected": 2, "safe": 2, "vented_within_ms_p99": None},
        "kill -9": {"injected": 1, "safe": 1, "vented_within_ms_p99": 61.4, "chamber_vented_within_ms_p99": 512.2},
    },
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.hazard)
def test_each_hazard_is_complete_and_has_a_test_that_exists(row):
    assert all((row.hazard, row.cause, row.detected, row.undetected, row.risk))
    assert row.rig or row.promises or row.tests
    assert row.rig.keys() <= CLASSES.keys()
    promised = Promises.__doc__.lower()
    assert all(re.search(rf"^ *- {re.escape(one.lower())}\b", promised, re.MULTILINE) for one in row.promises)
    for test in row.tests:
        path, _, name = test.partition("::")
        text = (home() / path).read_text(encoding="utf-8")
        assert re.search(rf"^def {name if name != '*' else 'test_'}", text, re.MULTILINE), test


def test_each_class_of_faults_is_a_hazard_of_the_page():
    assert SHARES.keys() == CLASSES.keys()
    assert {name for row in ROWS for name in row.rig} == CLASSES.keys()
    assert sum(count for row in ROWS for count in row.rig.values()) == sum(SHARES.values()), "counted in one row each"


def test_the_page_holds_what_the_last_whole_run_measured():
    page = safety_page.page_of(home()).read_text(encoding="utf-8")
    assert f"{safety_page.BEGIN}{safety_page.tables(safety_page.read_kept(home()))}{safety_page.END}" in page


def test_what_was_not_measured_says_so():
    text = safety_page.tables(None)
    assert text.count("not measured yet") > 10 and " ms" not in re.sub(r"\d+ ms", "", text)


def test_a_run_is_kept_and_written_into_the_page(tmp_path):
    page = safety_page.page_of(tmp_path)
    page.parent.mkdir()
    page.write_text("before\n", encoding="utf-8")
    with pytest.raises(SoftformError, match="no place"):
        safety_page.keep(tmp_path, FIGURES)
    page.write_text(f"before\n{safety_page.BEGIN}-{safety_page.END}\nafter\n", encoding="utf-8")
    safety_page.keep(tmp_path, FIGURES)
    written = page.read_text(encoding="utf-8")
    assert written.startswith("before\n") and written.endswith("\nafter\n")
    assert "3 of 3 safe" in written and "1 of 1 safe; vent request 61 ms; empty 512 ms" in written
