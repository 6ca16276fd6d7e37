"""A device for tests where there is no GPU: its tensors are on the CPU, but refuse to meet any that say they are."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

NAME = "meta"
"""A device that every build of PyTorch has, and that computes nothing by itself."""

_INDEXES = {torch.ops.aten.index.Tensor, torch.ops.aten.copy_.default}
"""Take tensors of both devices on a GPU, too."""


class _Pretended(Tensor):
    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> "_Pretended":
        strides = None if inner.is_sparse else inner.stride()
        made = Tensor._make_wrapper_subclass(cls, inner.shape, strides=strides, dtype=inner.dtype, device=NAME)
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _compute(operation, args, kwargs or {})


class PretendedDevice(TorchDispatchMode):
    """While it is entered, the device of `NAME` computes; `operations` counts what it did."""

    def __init__(self) -> None:
        super().__init__()
        self.operations = 0

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.operations += any(isinstance(value, _Pretended) for value in tree_leaves(args))
        return _compute(operation, args, kwargs or {})


def _compute(operation: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    tensors = [value for value in tree_leaves((args, kwargs)) if isinstance(value, Tensor)]
    ours = [tensor for tensor in tensors if isinstance(tensor, _Pretended)]
    if ours and operation not in _INDEXES:
        strangers = [tuple(one.shape) for one in tensors if one.dim() and not isinstance(one, _Pretended)]
        assert not strangers, f"{operation} mixes devices: {strangers}"
    wanted = kwargs.get("device")
    if wanted is not None:
        kwargs = {**kwargs, "device": torch.device("cpu")}
    done = operation(*tree_map(_inner, args), **tree_map(_inner, kwargs))
    if operation._schema.name.endswith("_"):  # in place
        return args[0]
    there = bool(ours) if wanted is None else torch.device(wanted).type == NAME
    return tree_map(_outer, done) if there else done


def _inner(value: Any) -> Any:
    return value.inner if isinstance(value, _Pretended) else value


def _outer(value: Any) -> Any:
    return _Pretended(value) if isinstance(value, Tensor) else value
