"""What is put into the table of mutants: where it was changed, and what counts."""

from pathlib import Path

from click.testing import CliRunner

from softform_system_tests.mutation import cli_bench_mutation, measure

SOURCE = '''class Latch:
    @property
    def is_set(self) -> bool:
        """Whether it is."""
        return self.count > 0

    def set(self) -> None:
        self.count = 1
        self.count = 1
'''

DIFF = """--- a/latch.py
+++ b/latch.py
@@ -1,3 +1,3 @@
 def set(self) -> None:
     self.count = 1
-    self.count = 1
+    self.count = 2
"""


def test_properties_are_made_in_the_same_lines_so_that_they_are_mutated_too() -> None:
    changed = measure._without_property_decorators(SOURCE)
    assert changed.count("\n") == SOURCE.count("\n") and "@property" not in changed
    names: dict[str, type] = {}
    exec(changed, names)
    latch = names["Latch"]()
    latch.set()
    assert latch.is_set is True


def test_survivors_are_named_and_what_processes_test_is_left_out() -> None:
    mutants = [
        ["killed", "xǁLatchǁset", ""],
        ["timed_out", "xǁLatchǁset", ""],
        ["killed", "xǁLatchǁis_set", ""],
        ["survived", "xǁLatchǁset", DIFF],
        ["survived", "x_main", ""],
    ]
    figures = measure._figures("latch", SOURCE, mutants, 0.9)
    assert figures.pop("survivors") == ["latch.py:008: self.count = 1  →  self.count = 2"]
    assert figures == {
        "mutants": 4,
        "killed": 2,
        "survived": 1,
        "timed_out": 1,
        "score": 0.75,
        "branch_coverage": 0.9,
    }


def test_the_table_is_written_between_its_markers_and_a_low_score_fails(tmp_path: Path, monkeypatch) -> None:
    row = {"mutants": 4, "killed": 2, "survived": 1, "timed_out": 1, "score": 0.75, "branch_coverage": 0.9}
    monkeypatch.setattr(measure, "measure", lambda jobs, say: {"latch": row | {"survivors": []}})
    page = tmp_path / "safety.md"
    page.write_text("before\n<!-- made by ./softform bench mutation: mutation -->\nold\n<!-- end -->\nafter\n")
    done = CliRunner().invoke(cli_bench_mutation.mutation, ["--jobs", "1", "--write", str(page), "--json", "-"])
    assert done.exit_code == 1 and '"score": 0.75' in done.output
    text = page.read_text()
    assert "old" not in text and "| `latch.py` | 4 | 3 | 1 | 75 % | 90 % |\n<!-- end -->\nafter" in text
    page.write_text("nothing")
    assert CliRunner().invoke(cli_bench_mutation.mutation, ["--write", str(page)]).exit_code == 2


def test_what_is_missing_is_told_with_how_it_is_installed(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(measure, "_LIBRARIES", tmp_path)
    done = CliRunner().invoke(cli_bench_mutation.mutation, ["--jobs", "1"])
    assert done.exit_code and "requirements-mutation.txt" in str(done.exception)
    assert all(
        (Path(measure.softform_actuation.__file__).resolve().parents[1] / "test" / test).exists()
        for test in measure.TESTS
    )
