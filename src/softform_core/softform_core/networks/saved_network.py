"""TorchScript files: what they hold, read without torch, whose import takes longer than all else that a node loads."""

import io
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from softform_core.arrays import Array

if TYPE_CHECKING:
    from torch import nn
    from torch.jit import ScriptModule

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

    _file: bytes

    def __init__(self, file: bytes) -> None:
        """Read a file.

        Raises:
            ValueError: If it is no TorchScript of the plain modules that Softform exports.
        """
        self.__dict__.update(_read(file).__dict__, _file=file)

    def __getattr__(self, name: str) -> Any:
        """Only so that type checkers know that there are more."""
        raise AttributeError(f"the network has no '{name}'")

    def arrays(self) -> dict[str, Array]:
        """All tensors in double precision, named as in torch's `state_dict`."""
        return dict(self._arrays(""))

    def _arrays(self, prefix: str) -> Iterator[tuple[str, Array]]:
        for name, value in self.__dict__.items():
            if isinstance(value, SavedNetwork):
                yield from value._arrays(f"{prefix}{name}.")
            elif isinstance(value, np.ndarray):
                yield prefix + name, value.astype(np.float64)

    def script(self) -> "ScriptModule":
        """The whole file as torch runs it, in evaluation mode on the CPU."""
        import torch

        return torch.jit.load(io.BytesIO(self._file), map_location="cpu").eval()


def export(network: "nn.Module") -> bytes:
    """TorchScript of a trained network, in evaluation mode on the CPU."""
    import torch

    buffer = io.BytesIO()
    torch.jit.save(torch.jit.script(network.cpu().eval()), buffer)
    return buffer.getvalue()


def arrays_of(network: "SavedNetwork | nn.Module") -> dict[str, Array]:
    """All tensors of a network in double precision, by name."""
    if isinstance(network, SavedNetwork):
        return network.arrays()
    return {name: tensor.detach().cpu().numpy().astype(np.float64) for name, tensor in network.state_dict().items()}


def _read(file: bytes) -> SavedNetwork:
    try:
        with zipfile.ZipFile(io.BytesIO(file)) as archive:
            (name,) = [entry for entry in archive.namelist() if entry.endswith("/data.pkl")]
            folder = name.removesuffix("data.pkl")
            if f"{folder}byteorder" in archive.namelist() and archive.read(f"{folder}byteorder") != b"little":
                raise ValueError("its numbers are big-endian")
            module = _Unpickler(archive, folder).load()
    except (zipfile.BadZipFile, pickle.UnpicklingError, KeyError, TypeError, EOFError, IndexError) as error:
        raise ValueError(str(error)) from error
    if not isinstance(module, SavedNetwork):
        raise ValueError("it holds no module")
    return module


class _Unpickler(pickle.Unpickler):
    """Makes nothing but modules and arrays."""

    def __init__(self, archive: zipfile.ZipFile, folder: str) -> None:
        super().__init__(io.BytesIO(archive.read(f"{folder}data.pkl")))
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

    def persistent_load(self, pid: Any) -> Array:
        _, kind, key, _, _ = pid
        return np.frombuffer(self._archive.read(f"{self._folder}data/{key}"), dtype=kind)


def _array(storage: Array, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], *_: object) -> Array:
    steps = [step * storage.itemsize for step in strides]
    return np.lib.stride_tricks.as_strided(storage[offset:], shape, steps).copy()
