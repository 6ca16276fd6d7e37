"""Parts of libraries that nothing here uses, but that these import: loaded only when something asks for them.

Nodes and commands begin with `defer_unused_parts`. An import of Softform alone changes nothing of this.
"""

import sys
from collections import defaultdict
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_given: dict[str, dict[str, Any]] = {}


class _Deferred(ModuleType):
    """Stands for a module until it is asked for what is not given."""

    def __getattr__(self, name: str) -> Any:
        # Who looks through all modules does not want it, nor does the import of what stands for it.
        if name.startswith("__") and not (name == "__path__" and self.__name__ in sys.modules):
            raise AttributeError(f"module '{self.__name__}' is not loaded yet and has no '{name}'")
        _given.pop(self.__name__, None)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


class _DeferringImporter(MetaPathFinder, Loader):
    """Imports a `_Deferred` in place of each module that is deferred."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname in _given else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Deferred(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        vars(module).update(_given[module.__name__])


class UnparsedDocstring(defaultdict[str, list[Any]]):
    """A function's docstring as it is: what is added to its sections is dropped."""

    def __init__(self, function: Any) -> None:
        super().__init__(list)
        self._text = function.__doc__ or ""

    def __str__(self) -> str:
        return "\n" + self._text  # below the place of the signature


_importer = _DeferringImporter()


def defer_unused_parts() -> None:
    """Load what Softform never uses of Open3D, PyTorch, SciPy and NumPy only when something asks for it.

    It concerns the whole process, and has to come before these libraries are imported: what is loaded already stays.
    """
    if _importer in sys.meta_path:
        return
    # Open3D's viewer for browsers imports dash and plotly: half of Open3D's time, 30 MB.
    _defer(
        "open3d.visualization.draw_plotly", __path__=[], get_plotly_fig=None, draw_plotly=None, draw_plotly_server=None
    )
    # What compiles networks, which an optimiser only keeps away from its steps: as long again as PyTorch itself, 70 MB.
    _defer("torch._dynamo", graph_break=lambda: None, disable=lambda function, recursive=True, wrapping=True: function)
    # SciPy parses its functions' docstrings at import, to add whose arrays they work on: two fifths of its time.
    _defer("scipy._lib._docscrape", __path__=[], FunctionDoc=UnparsedDocstring, Parameter=lambda *parts: parts)
    # SciPy takes all names of NumPy, and with them three parts that it does not use: a twelfth of a node's imports.
    _defer("numpy.f2py")
    _defer("numpy.testing")
    _defer("numpy.ma")
    sys.meta_path.insert(0, _importer)


def _defer(name: str, **given: Any) -> None:
    """Load a module only when it is asked for anything but `given`.

    `from name import …` asks for its `__path__`, too.
    """
    _given[name] = given
