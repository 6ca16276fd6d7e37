"""TorchScript files: what they hold, read without torch, whose import takes longer than all else that a node loads.

A file may be anybody's: torch would run the program in it, and so is never asked to load one. Here a file makes nothing
but modules, plain values and arrays, and all that it says of them has to agree.
"""

import io
import math
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from softform_core.arrays import Array

if TYPE_CHECKING:
    from torch import nn

_TYPES = {
    "DoubleStorage": np.float64,
    "FloatStorage": np.float32,
    "LongStorage": np.int64,
    "IntStorage": np.int32,
    "BoolStorage": np.bool_,
}
_LISTS = {"build_intlist", "build_doublelist", "build_boollist", "build_tensorlist"}


class SavedNetwork:
    """A module of a TorchScript file: its tensors as arrays, its numbers and texts, and the modules in it."""

    def __init__(self, file: bytes) -> None:
        """Read a file.

        Raises:
            ValueError: If it is no TorchScript of the plain modules that Softform exports.
        """
        self.__dict__.update(_read(file).__dict__)

    def __getattr__(self, name: str) -> Any:
        """Tell type checkers that there are more attributes."""
        raise AttributeError(f"the network has no '{name}'")

    def arrays(self) -> dict[str, Array]:
        """Return all tensors in double precision, named as in torch's `state_dict`."""
        return dict(self._arrays(""))

    def _arrays(self, prefix: str) -> Iterator[tuple[str, Array]]:
        for name, value in self.__dict__.items():
            if isinstance(value, SavedNetwork):
                yield from value._arrays(f"{prefix}{name}.")
            elif isinstance(value, np.ndarray):
                yield prefix + name, value.astype(np.float64)


def export(network: "nn.Module") -> bytes:
    """Return TorchScript of a trained network, in evaluation mode on the CPU."""
    import torch

    buffer = io.BytesIO()
    network = torch.jit.script(network.cpu().eval())
    for tensor in [*network.parameters(), *network.buffers()]:
        tensor.data = tensor.data.clone()  # each fills a storage of its own
    torch.jit.save(network, buffer)
    return buffer.getvalue()


def arrays_of(network: "SavedNetwork | nn.Module") -> dict[str, Array]:
    """Return all tensors of a network in double precision, by name."""
    if isinstance(network, SavedNetwork):
        return network.arrays()
    return {name: tensor.detach().cpu().numpy().astype(np.float64) for name, tensor in network.state_dict().items()}


def _read(file: bytes) -> SavedNetwork:
    try:
        with zipfile.ZipFile(io.BytesIO(file)) as archive:
            (name,) = [entry for entry in archive.namelist() if entry.endswith("/data.pkl")]
            folder = name.removesuffix("data.pkl")
            if f"{folder}byteorder" in archive.namelist() and _content(archive, f"{folder}byteorder") != b"little":
                raise ValueError("its numbers are big-endian")
            module = _Unpickler(archive, folder).load()
            if not isinstance(module, SavedNetwork):
                raise ValueError("it holds no module")
            _check_modules(module, [])
    except Exception as error:  # there is no end of what a damaged file makes zipfile and pickle raise
        raise ValueError(str(error) or type(error).__name__) from error
    return module


def _content(archive: zipfile.ZipFile, name: str) -> bytes:
    """Return an entry of the file, which has to be as large there as it says."""
    entry = archive.getinfo(name)
    if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size:
        raise ValueError(f"'{name}' is packed")
    return archive.read(entry)


def _check_modules(module: SavedNetwork, seen: list[SavedNetwork]) -> None:
    """Check that each module is in one other at most, and that nothing in it replaces a method.

    Raises:
        ValueError: If it is otherwise.
    """
    seen.append(module)
    for name, value in module.__dict__.items():
        if hasattr(SavedNetwork, name):
            raise ValueError(f"a module calls something '{name}'")
        if isinstance(value, SavedNetwork):
            if any(value is one for one in seen):
                raise ValueError(f"the module '{name}' is there twice")
            _check_modules(value, seen)


class _Unpickler(pickle._Unpickler):
    """Makes nothing but modules, plain values and arrays; the one in C would reserve any memory that it is told to."""

    def __init__(self, archive: zipfile.ZipFile, folder: str) -> None:
        super().__init__(io.BytesIO(_content(archive, f"{folder}data.pkl")))
        self._archive, self._folder = archive, folder

    def find_class(self, module: str, name: str) -> Any:
        if module.split(".")[0] == "__torch__":
            return SavedNetwork
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _array
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if module == "torch.jit._pickle" and name in _LISTS:
            return list
        if module == "torch" and name in _TYPES:
            return _TYPES[name]
        raise pickle.UnpicklingError(f"'{module}.{name}' is not expected in a network")

    def _build(self: Any) -> None:
        """Fill a module, and nothing else: arrays and numbers would be changed in their memory."""
        content = self.stack.pop()
        if not isinstance(self.stack[-1], SavedNetwork) or type(content) is not dict:
            raise pickle.UnpicklingError("something else than a module is filled")
        self.stack[-1].__dict__.update(content)

    dispatch: ClassVar[dict[int, Any]] = {**pickle._Unpickler.dispatch, pickle.BUILD[0]: _build}

    def persistent_load(self, pid: Any) -> Array:
        _, kind, key, _, count = pid
        if kind not in _TYPES.values():
            raise ValueError("numbers are of no known type")
        storage = np.frombuffer(_content(self._archive, f"{self._folder}data/{key}"), dtype=kind)
        if type(count) is not int or len(storage) != count:
            raise ValueError(f"a storage has {len(storage)} numbers, not {count}")
        return storage


def _array(storage: Array, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], *_: object) -> Array:
    """Return the tensor that fills a storage, in whichever order its dimensions lie there.

    Raises:
        ValueError: If it does not.
    """
    if not all(type(each) is int and each >= 0 for each in (offset, *shape, *strides)):
        raise ValueError("the place of a tensor is no place")
    order = sorted(range(len(shape)), key=lambda axis: (-strides[axis], -shape[axis]))
    lying = [shape[axis] for axis in order]
    for place, axis in enumerate(order):
        if shape[axis] != 1 and len(storage) and strides[axis] != math.prod(lying[place + 1 :]):
            raise ValueError(f"a tensor of shape {shape} has strides {strides}")
    if offset or len(strides) != len(shape) or math.prod(shape) != len(storage):
        raise ValueError(f"a tensor of shape {shape} at {offset} does not fill its {len(storage)} numbers")
    return np.array(storage.reshape(lying).transpose(np.argsort(order)))
