"""The page that is committed: small, and what its sources make."""

import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parents[1]
DIST, WEB = HERE / "dist", HERE / "web"


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_page_is_there_and_below_3_mb():
    files = contents(DIST)
    assert "index.html" in files and sum(map(len, files.values())) < 3e6


needs_node = pytest.mark.skipif(
    shutil.which("node") is None or not (WEB / "node_modules" / "vite").is_dir(), reason="npm ci was not run in web/"
)

CHECKS = ["tsc --noEmit", "oxlint --deny-warnings src test", "prettier --check src test", "vitest run"]


@needs_node
@pytest.mark.parametrize("check", CHECKS)
def test_sources_pass_their_checks(check):
    done = subprocess.run(["npx", "--offline", *check.split()], cwd=WEB, capture_output=True, text=True, timeout=240.0)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_node
def test_what_is_committed_is_what_the_sources_make(tmp_path):
    built = tmp_path / "dist"
    command = ["npx", "--offline", "vite", "build", "--outDir", str(built), "--emptyOutDir"]
    subprocess.run(command, cwd=WEB, check=True, timeout=240.0, stdout=subprocess.DEVNULL)
    assert contents(built) == contents(DIST), "run npm run build in web/, and commit dist"
