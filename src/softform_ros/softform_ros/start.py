"""The start of every node: what concerns its whole process comes before the libraries that the node imports."""

import sys
from importlib import import_module
from pathlib import Path

from softform_core.deferred import defer_unused_parts


def main() -> None:
    """Run the node whose executable this is: that at `lib/PACKAGE/NODE` is `main` of the module `PACKAGE.NODE`."""
    defer_unused_parts()
    executable = Path(sys.argv[0])
    import_module(f"{executable.parent.name}.{executable.name}").main()
