"""Command `softform rig`: what it lists, what it rejects, and the rig that it starts."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from softform_core.errors import SoftformError
from softform_core.paths import config_dir
from softform_rig.cli_rig import rig
from softform_rig.faults import kinds


def test_all_kinds_are_listed_and_nothing_starts(monkeypatch) -> None:
    monkeypatch.setattr(os, "execv", lambda *_: pytest.fail("it starts something"))
    result = CliRunner().invoke(rig, ["--list-faults"])
    assert result.exit_code == 0
    assert [line for line in result.output.splitlines() if not line.startswith(" ")] == [
        kind.form for kind in kinds().values()
    ]


def test_a_fault_that_is_none_is_rejected_before_anything_starts(monkeypatch) -> None:
    monkeypatch.setattr(os, "execv", lambda *_: pytest.fail("it starts something"))
    result = CliRunner().invoke(rig, ["--fault", "stall@1", "--fault", "explode@2"])
    assert isinstance(result.exception, SoftformError)
    assert "explode" in str(result.exception)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--reality", "nowhere"], "nowhere"),
        (["--robot", "many.yaml"], "has channel 13, boards of the virtual rig have 10"),
    ],
)
def test_what_the_rig_cannot_be_is_told_without_starting_it(tmp_path, monkeypatch, arguments, complaint) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "execv", lambda *_: pytest.fail("it starts something"))
    content = yaml.safe_load((config_dir() / "robots" / "membrane.yaml").read_text())
    content["devices"][0]["channels"][-1] = 13
    Path("many.yaml").write_text(yaml.safe_dump(content))
    assert CliRunner().invoke(rig, ["--check"]).exit_code == 0
    checked = CliRunner().invoke(rig, ["--check", *arguments])
    assert isinstance(checked.exception, SoftformError) and complaint in str(checked.exception)


def start(folder, *arguments: str) -> subprocess.Popen[str]:
    places = ["--port-link", str(folder / "port"), "--scan-folder", str(folder / "scans")]
    code = "from softform_rig.cli_rig import rig; rig()"
    return subprocess.Popen(
        [sys.executable, "-c", code, *places, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )


@pytest.mark.long
def test_the_rig_runs_tells_of_its_faults_and_ends_when_asked(tmp_path) -> None:
    process = start(
        tmp_path, "--reality", "ideal", "--mocap-rate", "0", "--fault", "stall@0.2+0.3", "--board", "binary"
    )
    try:
        lines = []
        for line in process.stdout:
            lines.append(line)
            if "stall@0.2+0.3 ends" in line:
                break
        assert (tmp_path / "port").is_symlink()
        process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=30.0)[0]
    finally:
        process.kill()
    told = "".join(lines)
    assert "at 0.2 s for 0.3 s, the board hangs" in told
    assert told.index("stall@0.2+0.3 starts") < told.index("stall@0.2+0.3 shows") < told.index("stall@0.2+0.3 ends")
    assert process.returncode == 0, rest
    assert not (tmp_path / "port").is_symlink()


def test_a_rig_that_cannot_start_says_why(tmp_path) -> None:
    process = start(tmp_path, "--reality", "nowhere")
    output = process.communicate(timeout=120.0)[0]
    assert process.returncode == 1
    assert "nowhere" in output
    assert not (tmp_path / "port").is_symlink()
