"""Parts of libraries that nothing here uses, but that these import: loaded only when something asks for them."""

import sys
from collections import defaultdict
from importlib import import_module
from types import ModuleType
from typing import Any


class _Deferred(ModuleType):
    """Stands for a module until it is asked for what is not given."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__path__":  # whoever looks through all modules does not want it
            raise AttributeError(f"module '{self.__name__}' is not loaded yet and has no '{name}'")
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


def defer(name: str, **given: Any) -> None:
    """Load a module only when it is asked for anything but `given`; one that is loaded already stays.

    `from name import …` asks for its `__path__`, too.
    """
    module = _Deferred(name)
    vars(module).update(given)
    sys.modules.setdefault(name, module)


class UnparsedDocstring(defaultdict[str, list[Any]]):
    """A function's docstring as it is: what is added to its sections is dropped."""

    def __init__(self, function: Any) -> None:
        super().__init__(list)
        self._text = function.__doc__ or ""

    def __str__(self) -> str:
        return "\n" + self._text  # below the place of the signature
