"""The B-spline shape decoder B(.) as a differentiable layer (paper 000, Eq. 1 and Fig. 2)."""

import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from softform_core.surface.bspline import basis_matrix


class SurfaceDecoder(nn.Module):
    """Points of the surface at fixed parameters, differentiable with respect to the control points.

    Args:
        uv: (P, 2) in the unit square.
        rows: Control points along u.
        cols: Control points along v.
        degree: Polynomial degree.
        periodic: Whether u runs around a tube.
        dtype: Type of control points and points.

    Raises:
        SoftformError: If uv is not (P, 2) finite numbers in the unit square.
    """

    basis: Tensor

    def __init__(
        self,
        uv: ArrayLike,
        rows: int = 30,
        cols: int = 30,
        degree: int = 3,
        periodic: bool = False,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        matrix = basis_matrix(uv, rows, cols, degree, periodic).tocoo()
        places = torch.stack([torch.from_numpy(matrix.row), torch.from_numpy(matrix.col)]).long()
        values = torch.from_numpy(matrix.data).to(dtype)
        basis = torch.sparse_coo_tensor(places, values, matrix.shape, check_invariants=True).coalesce()
        self.register_buffer("basis", basis)

    def forward(self, control_points: Tensor) -> Tensor:
        """Return points (n, P, 3) of surfaces with control points (n, rows, cols, 3), Eq. 1."""
        shapes = control_points.shape[0]
        columns = control_points.reshape(shapes, -1, 3).transpose(0, 1).reshape(self.basis.shape[1], shapes * 3)
        return torch.sparse.mm(self.basis, columns).reshape(-1, shapes, 3).transpose(0, 1)
