"""Export of a network as TorchScript."""

import io

import torch
from torch import nn


def export(network: nn.Module) -> bytes:
    """TorchScript of a trained network, in evaluation mode on the CPU."""
    buffer = io.BytesIO()
    torch.jit.save(torch.jit.script(network.cpu().eval()), buffer)
    return buffer.getvalue()
