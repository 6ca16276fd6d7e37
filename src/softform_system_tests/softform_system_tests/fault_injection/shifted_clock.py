"""A time of day, or since the boot, that jumps for all processes of a stack, without root; see `shifted_clock.c`."""

import os
import shutil
import struct
import subprocess
from pathlib import Path

from softform_core.errors import SoftformError

_NS_PER_S = 1_000_000_000
_SOURCE = Path(__file__).with_suffix(".c")


class ShiftedClock:
    """The clock of the processes that are started with `environment`; library and shift lie in a folder.

    Raises:
        SoftformError: If there is no compiler, or it fails.
    """

    def __init__(self, folder: Path) -> None:
        """Compile the library; the clock is right."""
        self._file = folder / "clock_shift"
        library = folder / "shifted_clock.so"
        compiler = shutil.which("cc")
        if compiler is None:
            raise SoftformError("There is no C compiler.", "Install one, or leave the class 'clock jump' out.")
        words = [compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(_SOURCE), "-ldl", "-lpthread"]
        compiled = subprocess.run(words, capture_output=True, text=True, check=False)
        if compiled.returncode != 0:
            raise SoftformError(f"{_SOURCE.name} cannot be compiled: {compiled.stderr.strip()}")
        self.shift(0.0)
        preloaded = [str(library), *filter(None, [os.environ.get("LD_PRELOAD")])]
        self.environment = {"LD_PRELOAD": ":".join(preloaded), "SOFTFORM_CLOCK_SHIFT": str(self._file)}

    def shift(self, seconds: float, since_boot: float = 0.0) -> None:
        """Let the time of day, and the time since the boot, be so much later than they are, s, from now on."""
        # In place: the processes have the file mapped.
        descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            os.pwrite(descriptor, struct.pack("=qq", round(seconds * _NS_PER_S), round(since_boot * _NS_PER_S)), 0)
        finally:
            os.close(descriptor)
