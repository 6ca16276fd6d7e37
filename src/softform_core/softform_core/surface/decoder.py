"""The B-spline shape decoder B(.) as a differentiable layer (paper 000, Eq. 1 and Fig. 2)."""

import torch
from scipy.sparse import csr_matrix
from torch import Tensor, nn


class SurfaceDecoder(nn.Module):
    """Points of the surface at fixed parameters, differentiable with respect to the control points.

    Args:
        matrix: (P, C), such as `PatchSet.basis`, or one of its derivatives for tangents.
        dtype: Type of control points and points.
    """

    basis: Tensor

    def __init__(self, matrix: csr_matrix, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        entries = matrix.tocoo()
        places = torch.stack([torch.from_numpy(entries.row), torch.from_numpy(entries.col)]).long()
        values = torch.from_numpy(entries.data).to(dtype)
        basis = torch.sparse_coo_tensor(places, values, entries.shape, check_invariants=True).coalesce()
        self.register_buffer("basis", basis)

    def forward(self, control_points: Tensor) -> Tensor:
        """Return points (n, P, 3) of surfaces with n times C control points, in any shape, Eq. 1."""
        shapes = control_points.shape[0]
        columns = control_points.reshape(shapes, -1, 3).transpose(0, 1).reshape(self.basis.shape[1], shapes * 3)
        return (self.basis @ columns).reshape(-1, shapes, 3).transpose(0, 1)
