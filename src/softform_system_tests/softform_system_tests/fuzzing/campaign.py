"""All targets side by side, each in a process of its own, with one progress bar."""

import importlib.util
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tqdm import tqdm

from softform_core.errors import SoftformError
from softform_system_tests.fuzzing import worker
from softform_system_tests.fuzzing.trial import KINDS

_POLL_SECONDS = 0.5


def engine() -> str:
    """Coverage-guided if atheris is installed, else random mutation."""
    return worker.COVERAGE if importlib.util.find_spec("atheris") else worker.MUTATION


def fuzz(names: Sequence[str], inputs: int, folder: Path, seed: int, at_once: int) -> dict[str, object]:
    """Fuzz targets; returns totals, and counts of each target.

    Args:
        names: Names of the targets.
        inputs: Number of inputs for all targets together.
        folder: Folder of the failing inputs, with one subfolder per target.
        seed: Seed of the mutations.
        at_once: Processes.

    Raises:
        SoftformError: If there is no target.
    """
    if not names:
        raise SoftformError("There is no fuzz target.", "Packages register them as entry points 'softform.fuzz'.")
    share = -(-inputs // len(names))
    waiting, running = list(names), dict[str, subprocess.Popen[bytes]]()
    codes: dict[str, int] = {}
    with tqdm(total=share * len(names), unit="input", desc="bench fuzz", unit_scale=True) as bar:
        while waiting or running:
            while waiting and len(running) < at_once:
                name = waiting.pop(0)
                running[name] = _start(name, folder / name, share, seed)
            time.sleep(_POLL_SECONDS)
            for name, process in list(running.items()):
                if process.poll() is not None:
                    codes[name] = running.pop(name).returncode
            bar.update(sum(_counts(folder / name).get("inputs", 0) for name in names) - bar.n)
    each = {name: {**_counts(folder / name), "exit_code": codes[name]} for name in names}
    return {"engine": engine(), **_totals(each), "targets": each}


def _start(name: str, folder: Path, inputs: int, seed: int) -> subprocess.Popen[bytes]:
    folder.mkdir(parents=True, exist_ok=True)
    words = [sys.executable, "-m", worker.__name__, engine(), name, str(folder), str(inputs), str(seed)]
    with (folder / "output.log").open("wb") as log:
        return subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT)


def _counts(folder: Path) -> dict[str, int]:
    try:
        counts: dict[str, int] = json.loads((folder / "counts.json").read_text(encoding="utf-8"))
        return counts
    except (OSError, ValueError):
        return {}


def _totals(each: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    totals = {kind: sum(counts.get(kind, 0) for counts in each.values()) for kind in ("inputs", *KINDS)}
    # A process that ended otherwise than by its own decision was ended by an input.
    totals["crash"] += sum(counts["exit_code"] != 0 for counts in each.values())
    return totals
