import numpy as np
import torch

from softform_core.surface.bspline import basis_matrix, evaluate
from softform_core.surface.decoder import SurfaceDecoder


def test_decoder_agrees_with_the_matrix_form():
    rng = np.random.default_rng(0)
    uv, control = rng.random((40, 2)), rng.normal(size=(3, 30, 30, 3))
    points = SurfaceDecoder(basis_matrix(uv), torch.float64)(torch.from_numpy(control))
    assert points.shape == (3, 40, 3)
    np.testing.assert_allclose(points.numpy(), evaluate(control, uv), atol=1e-12)


def test_decoder_is_differentiable_and_survives_export():
    decoder = SurfaceDecoder(basis_matrix(np.random.default_rng(0).random((7, 2)), 5, 4), torch.float64)
    control = torch.rand(2, 5, 4, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(decoder, (control,))
    scripted = torch.jit.script(decoder)
    torch.testing.assert_close(scripted(control), decoder(control))
