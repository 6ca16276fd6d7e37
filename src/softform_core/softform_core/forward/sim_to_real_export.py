"""N_s2r as one TorchScript module: N_rbf of every member, the warp, and how sure it is (paper 000, Eqs. 2-4)."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from torch import Tensor, nn

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.memory import PARTS
from softform_core.forward.mlp import fold
from softform_core.forward.rbf_warp import SimToReal
from softform_core.networks.sim_to_real import kernels
from softform_core.surface.bspline import basis_matrix, derivative_matrices
from softform_core.surface.patch import Patch
from softform_core.surface.patch_set import SHEET, PatchSet

_NEGLIGIBLE = 1e-12
"""Share of the largest singular value of the first layers below which others are rounding."""
_SAMPLES = 61
"""Samples of the surface along u and v among which the nearest normal is found: some 5 mm apart on the membrane."""


class MembersLayer(nn.Module):
    """One linear layer of every member."""

    weight: Tensor
    bias: Tensor

    def __init__(self, weights: Array, biases: Array) -> None:
        """Keep weights (k, out, in) and biases (k, out)."""
        super().__init__()
        self.register_buffer("weight", torch.from_numpy(np.ascontiguousarray(weights)))
        self.register_buffer("bias", torch.from_numpy(np.ascontiguousarray(biases))[:, None])

    def forward(self, x: Tensor) -> Tensor:
        """Return outputs (k, n, out) from inputs (k, n, in)."""
        return x @ self.weight.transpose(1, 2) + self.bias


class PatchFactors(nn.Module):
    """Eq. 1 of one patch as products along u and v: kernels on it, and an even grid with its tangents.

    Args:
        patch: The patch.
        start: Number of the first of its control points.
        kernel_uv: (M, 2) parameters of the kernels on it, in its unit square.
        numbers: (M,) their numbers among all.
        kernels: Number of all.
    """

    center_u: Tensor
    center_v: Tensor
    sample_u: Tensor
    sample_v: Tensor
    slope_u: Tensor
    slope_v: Tensor

    def __init__(self, patch: Patch, start: int, kernel_uv: Array, numbers: NDArray[np.int64], kernels: int) -> None:
        super().__init__()
        self.rows, self.cols, self.start = patch.rows, patch.cols, start
        center_u, center_v = np.zeros((kernels, patch.rows)), np.zeros((kernels, patch.cols))
        if len(numbers):
            center_u[numbers], center_v[numbers] = _along(basis_matrix(kernel_uv, *patch), patch.rows)
        line = np.repeat(np.linspace(0.0, 1.0, _SAMPLES)[:, None], 2, axis=1)
        sample_u, sample_v = _along(basis_matrix(line, *patch), patch.rows)
        by_u, by_v = derivative_matrices(line, *patch)
        for name, value in {
            "center_u": center_u,
            "center_v": center_v,
            "sample_u": sample_u,
            "sample_v": sample_v,
            "slope_u": _along(by_u, patch.rows)[0],
            "slope_v": _along(by_v, patch.rows)[1],
        }.items():
            self.register_buffer(name, torch.from_numpy(np.ascontiguousarray(value)))

    def forward(self, control_points: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return kernels (n, N, 3), zero for those of other patches, grid points and tangents (n, G, 3) each."""
        own = control_points[:, self.start : self.start + self.rows * self.cols]
        control = own.reshape(-1, self.rows, self.cols, 3)
        return (
            torch.einsum("ir,ic,nrcx->nix", self.center_u, self.center_v, control),
            self.samples(self.sample_u, self.sample_v, control),
            self.samples(self.slope_u, self.sample_v, control),
            self.samples(self.sample_u, self.slope_v, control),
        )

    def samples(self, along_u: Tensor, along_v: Tensor, control: Tensor) -> Tensor:
        """Eq. 1 on a grid of parameters, from factors (G, rows), (G, cols) and control (n, rows, cols, 3)."""
        rows = torch.einsum("ur,nrcx->nucx", along_u, control)
        return torch.einsum("vc,nucx->nuvx", along_v, rows).flatten(1, 2)


class SimToRealNetwork(nn.Module):
    """The whole transfer in double precision, exported as it stands.

    The members' first layers are stored as one projection that they share and small layers behind it (exact up to
    rounding): a network whose input are a few principal components of the control points stays small on disk.

    Args:
        members: Members of one ensemble, equal in kernels, depth, activation and normalisation.
        spread_factor: See `forward.surface_uncertainty`.
        spread_floor_mm: See `forward.surface_uncertainty`.
        patches: The robot's surface.

    Raises:
        SoftformError: If there are no members, or they are not of one ensemble.
    """

    input_offset: Tensor
    input_scale: Tensor
    projection: Tensor
    output_offset: Tensor
    output_scale: Tensor
    kernel_uv: Tensor
    memory_widths: Tensor
    memory_weights: Tensor
    memory_fading: Tensor
    memory_shares: Tensor

    def __init__(
        self, members: Sequence[SimToReal], spread_factor: float, spread_floor_mm: float, patches: PatchSet = SHEET
    ) -> None:
        super().__init__()
        _check_one_ensemble(members)
        first, nets = members[0], [member.coefficients for member in members]
        self.activation = nets[0].activation
        self.width = first.width
        self.spread_factor, self.spread_floor_mm = spread_factor, spread_floor_mm
        self.control_points = patches.control_points

        stacked = np.vstack([net.weights[0] for net in nets])
        left, singular, projection = np.linalg.svd(stacked, full_matrices=False)
        kept = singular > _NEGLIGIBLE * max(singular[0], np.finfo(float).tiny)
        behind = (left[:, kept] * singular[kept]).reshape(len(nets), -1, int(kept.sum()))
        weights = [behind, *(np.array(layer) for layer in zip(*(net.weights[1:] for net in nets), strict=True))]
        biases = [np.array(layer) for layer in zip(*(net.biases for net in nets), strict=True)]
        self.layers = nn.ModuleList(MembersLayer(w, b) for w, b in zip(weights, biases, strict=True))

        correction = None if first.actuation is None else fold(first.actuation.layers)
        self.correction_activation = "" if correction is None else correction.activation
        effective = () if correction is None else zip(correction.weights, correction.biases, strict=True)
        self.correction = nn.ModuleList(
            MembersLayer(np.asarray(weight[None], np.float64), np.asarray(bias[None], np.float64))
            for weight, bias in effective
        )

        place, kernel_uv = patches.split(first.kernel_uv)
        self.patches = nn.ModuleList(
            PatchFactors(patch, int(start), kernel_uv[place == i], np.flatnonzero(place == i), len(place))
            for i, (patch, start) in enumerate(zip(patches.patches, patches.starts, strict=True))
        )
        for name, value in {
            "input_offset": nets[0].input_offset,
            "input_scale": nets[0].input_scale,
            "projection": projection[kept],
            "output_offset": nets[0].output_offset,
            "output_scale": nets[0].output_scale,
            "kernel_uv": first.kernel_uv,
            **{f"memory_{name}": getattr(first.memory, name, np.empty(0)) for name in PARTS},
        }.items():
            self.register_buffer(name, torch.from_numpy(np.ascontiguousarray(value, dtype=np.float64)))

    def forward(self, control_points: Tensor, points: Tensor) -> tuple[Tensor, Tensor]:
        """Warp points of simulated surfaces (Eq. 4).

        Args:
            control_points: (n, C * 3) mm, of N_fk at the actuations `effective`.
            points: (n, P, 3) mm, on the surfaces.

        Returns:
            Warped points (n, P, 3) mm, and one standard deviation (n, P) mm along the normal of the predicted surface,
            which is taken at the nearest of many samples of the surface.
        """
        given = points.dtype
        control_points, points = control_points.to(torch.float64), points.to(torch.float64)
        gamma = self.coefficients(control_points)
        mean = gamma.mean(dim=0)
        control = control_points.reshape(-1, self.control_points, 3)
        centers = torch.zeros([], dtype=torch.float64)
        samples: list[Tensor] = []
        slopes_u: list[Tensor] = []
        slopes_v: list[Tensor] = []
        for patch in self.patches:
            on_patch, sample, slope_u, slope_v = patch(control)
            centers = centers + on_patch
            samples.append(sample)
            slopes_u.append(slope_u)
            slopes_v.append(slope_v)
        difference = points[:, :, None] - centers[:, None]
        gaussian = kernels(points, centers, self.width)
        basis = torch.cat([torch.ones_like(points[:, :, :1]), points, gaussian], dim=2)

        nearest = torch.cdist(points, torch.cat(samples, dim=1)).argmin(dim=2)
        index = nearest[:, :, None].expand(-1, -1, 3)
        along_u = torch.gather(torch.cat(slopes_u, dim=1), 1, index)
        along_v = torch.gather(torch.cat(slopes_v, dim=1), 1, index)
        along_u = self.warped_tangents(along_u, difference, gaussian, mean)
        along_v = self.warped_tangents(along_v, difference, gaussian, mean)
        normals = torch.nn.functional.normalize(torch.linalg.cross(along_u, along_v), dim=-1)
        off_mean = ((basis @ (gamma - mean)) * normals).sum(-1)
        spread = (off_mean.square().sum(dim=0) / max(1, gamma.shape[0] - 1)).sqrt()
        sigma = torch.sqrt((self.spread_factor * spread).square() + self.spread_floor_mm**2)
        return (basis @ mean).to(given), sigma.to(given)

    @torch.jit.export
    def effective(self, actuation: Tensor) -> Tensor:
        """Return the actuations (n, k) of the simulation that explain commanded ones (n, k): those that N_fk takes.

        The memory of the `memory_…` buffers has to be applied to the commands before; the module has none.
        """
        x = actuation.to(torch.float64)[None]
        last = len(self.correction) - 1
        for place, layer in enumerate(self.correction):
            x = layer(x)
            if place < last:
                x = torch.tanh(x) if self.correction_activation == "tanh" else torch.relu(x)
        return x[0].to(actuation.dtype)

    def coefficients(self, control_points: Tensor) -> Tensor:
        """Return coefficients gamma (k, n, N + 4, 3) of every member (Eq. 3), from control points (n, C * 3) mm."""
        shape = ((control_points - self.input_offset) / self.input_scale) @ self.projection.T
        last = len(self.layers) - 1
        x = shape[None]
        for place, layer in enumerate(self.layers):
            x = layer(x)
            if place < last:
                x = torch.tanh(x) if self.activation == "tanh" else torch.relu(x)
        gamma = self.output_offset + self.output_scale * x
        return gamma.reshape(x.shape[0], x.shape[1], -1, 3)

    def warped_tangents(self, tangents: Tensor, difference: Tensor, gaussian: Tensor, gamma: Tensor) -> Tensor:
        """Return tangents (n, P, 3) carried along by the warp (Eq. 26)."""
        along = (difference * tangents[:, :, None]).sum(-1)
        return tangents @ gamma[:, 1:4] + (-2.0 * self.width * gaussian * along) @ gamma[:, 4:]


def _check_one_ensemble(members: Sequence[SimToReal]) -> None:
    if not members:
        raise SoftformError("A sim-to-real transfer without members.", "Train one member at least.")
    first = members[0]
    for member in members[1:]:
        one, other = first.coefficients, member.coefficients
        same = (
            member.width == first.width
            and np.array_equal(member.kernel_uv, first.kernel_uv)
            and one.activation == other.activation
            and [weight.shape for weight in one.weights] == [weight.shape for weight in other.weights]
            and np.array_equal(one.input_offset, other.input_offset)
            and np.array_equal(one.input_scale, other.input_scale)
            and np.array_equal(one.output_offset, other.output_offset)
            and np.array_equal(one.output_scale, other.output_scale)
        )
        if not same:
            raise SoftformError(
                "The members of the ensemble differ in kernels, layers or normalisation.", "Train them together."
            )


def _along(products: csr_matrix, rows: int) -> tuple[Array, Array]:
    """Return factors (P, rows) and (P, cols) of products N_i(u) N_j(v): each set of functions sums to one."""
    table = products.toarray().reshape(products.shape[0], rows, -1)
    return table.sum(axis=2), table.sum(axis=1)
