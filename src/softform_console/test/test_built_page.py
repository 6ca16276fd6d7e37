"""The page's sources pass their own checks, and what is committed in dist/ is built from them."""

import shutil
import subprocess
from pathlib import Path

import pytest

CONSOLE = Path(__file__).resolve().parents[1]
WEB, DIST = CONSOLE / "web", CONSOLE / "dist"

MOST_BYTES = 3_000_000

needs_node = pytest.mark.skipif(
    shutil.which("node") is None or not (WEB / "node_modules").is_dir(),
    reason="node is not here, or `npm ci` was not run in src/softform_console/web",
)


def _run(*command: str) -> None:
    done = subprocess.run(["npx", "--no-install", *command], cwd=WEB, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@needs_node
@pytest.mark.parametrize(
    "command",
    [("tsc", "--noEmit"), ("oxlint", "--deny-warnings", "src", "test"), ("vitest", "run")],
    ids=lambda one: one[0],
)
def test_sources_pass_their_checks(command: tuple[str, ...]) -> None:
    _run(*command)


@needs_node
def test_what_is_committed_is_built_from_the_sources(tmp_path: Path) -> None:
    _run("vite", "build", "--outDir", str(tmp_path / "dist"), "--emptyOutDir")
    built, committed = _files(tmp_path / "dist"), _files(DIST)
    assert set(built) == set(committed)
    assert [name for name in built if built[name] != committed[name]] == []


def test_the_page_is_small() -> None:
    assert 0 < sum(map(len, _files(DIST).values())) <= MOST_BYTES
