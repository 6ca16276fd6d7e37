"""Networks read without torch: what torch itself reads, and a clear error for all else."""

import io
import zipfile

import numpy as np
import pytest
import torch
from torch import nn

from softform_core.networks.saved_network import SavedNetwork, arrays_of, export
from softform_core.paths import models_dir


class _Odd(nn.Module):
    """Tensors of several types, one of which is a view with strides of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.width, self.activation = 0.25, "tanh"
        self.layers = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2).double())
        self.register_buffer("turned", torch.arange(12.0).reshape(3, 4)[1:, ::2].T)
        self.register_buffer("counts", torch.tensor([3, 1]))
        self.register_buffer("none", torch.zeros(1).expand(2, 1)[:0])
        self.register_buffer("copies", torch.ones(1).expand(2, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers[0](x)


def assert_same(file: bytes) -> SavedNetwork:
    saved, theirs = SavedNetwork(file), torch.jit.load(io.BytesIO(file))
    ours, expected = saved.arrays(), arrays_of(theirs)
    assert list(ours) == list(expected)
    for name, array in ours.items():
        np.testing.assert_array_equal(array, expected[name])
    return saved


def test_tensors_numbers_and_texts_are_those_that_torch_reads() -> None:
    network = _Odd()
    saved = assert_same(export(network))
    assert (saved.width, saved.activation) == (0.25, "tanh")
    x = torch.rand(5, 3)
    torch.testing.assert_close(torch.jit.load(io.BytesIO(export(network)))(x), network(x))
    with pytest.raises(AttributeError, match="no 'degree'"):
        _ = saved.degree


@pytest.mark.parametrize("path", sorted(models_dir().rglob("*.pt")), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_shipped_models_are_read_as_torch_reads_them(path) -> None:
    assert_same(path.read_bytes())


def test_what_is_no_exported_network_is_rejected() -> None:
    state = io.BytesIO()
    torch.save({"a": torch.zeros(2), "b": nn.Linear(2, 2)}, state)
    empty = io.BytesIO()
    with zipfile.ZipFile(empty, "w") as archive:
        archive.writestr("x/other", "")
    file = export(_Odd())
    for bad in (b"", file[: len(file) // 2], state.getvalue(), empty.getvalue()):
        with pytest.raises(ValueError):
            SavedNetwork(bad)
