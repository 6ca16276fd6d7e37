import numpy as np
import pytest
import torch

from softform_core.errors import SoftformError
from softform_core.networks.forward_kinematics import ForwardKinematics
from softform_core.networks.layers import perceptron
from softform_core.networks.mlp_weights import extract_mlp
from softform_core.networks.saved_network import SavedNetwork, export


def _trained_a_little(use_batch_norm: bool, activation: str = "relu") -> ForwardKinematics:
    torch.manual_seed(0)
    network = ForwardKinematics(
        torch.zeros(4), torch.full((4,), 5000.0), 100 * torch.randn(5, 6, 3), 8.0, (16, 16), activation, use_batch_norm
    )
    for _ in range(3):  # moves the statistics of batch norms off their initial values
        network(5000 * torch.rand(32, 4))
    return network.eval()


@pytest.mark.parametrize("use_batch_norm", [False, True])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_numpy_weights_give_what_the_exported_network_gives(use_batch_norm, activation):
    network = _trained_a_little(use_batch_norm, activation)
    actuation = 5000 * torch.rand(50, 4)
    weights = extract_mlp(SavedNetwork(export(network)))
    assert [weight.shape for weight in weights.weights] == [(16, 4), (16, 16), (90, 16)]
    assert weights.activation == activation
    expected = network(actuation).detach().numpy().reshape(50, -1)
    np.testing.assert_allclose(weights.forward(actuation.numpy()), expected, rtol=1e-5, atol=1e-3)


def test_output_is_the_mean_shape_plus_scaled_offsets():
    network = _trained_a_little(False)
    with torch.no_grad():
        network.layers[-1].weight.zero_()
        network.layers[-1].bias.fill_(0.5)
    control_points = network(torch.rand(2, 4))
    assert control_points.shape == (2, 5, 6, 3)
    torch.testing.assert_close(control_points[1].flatten(), network.output_offset + 4.0)


def test_paper_network_has_two_layers_of_128():
    network = ForwardKinematics(torch.zeros(9), torch.ones(9), torch.zeros(30, 30, 3), use_batch_norm=True)
    assert [type(layer).__name__ for layer in network.layers] == ["Linear", "BatchNorm1d", "ReLU"] * 2 + ["Linear"]
    assert [weight.shape for weight in extract_mlp(network).weights] == [(128, 9), (128, 128), (2700, 128)]


def test_other_networks_are_rejected():
    with pytest.raises(SoftformError, match="not a Softform perceptron"):
        extract_mlp(torch.nn.Linear(2, 2))
    with pytest.raises(SoftformError, match="unknown"):
        perceptron((2, 3, 1), "sine")
