"""N_fk, N_J and N_s2r of paper 001, Sec. II-B: perceptrons with Tan-Sigmoid; robot's unit and millimetres outside."""

from collections.abc import Sequence

from torch import Tensor, nn

from softform_core.networks.layers import perceptron

ACTIVATION = "tanh"

_TANH_GAIN = 5.0 / 3.0


class TipNetwork(nn.Module):
    """y = offset + scale * mlp((x - offset_x) / scale_x), in double precision: curvature-based training needs it.

    Args:
        inputs: (s, a) samples of the input; its range is brought to -1 … 1.
        outputs: (s, b) samples of the output; its mean and standard deviation are the scales, one scale if `one_scale`.
        hidden: Widths of the hidden layers.
        one_scale: All outputs are of one kind, and their errors count alike.
    """

    input_offset: Tensor
    input_scale: Tensor
    output_offset: Tensor
    output_scale: Tensor

    def __init__(self, inputs: Tensor, outputs: Tensor, hidden: Sequence[int], *, one_scale: bool) -> None:
        """Draw the first weights (Glorot); torch's seed decides them."""
        super().__init__()
        self.activation = ACTIVATION
        self.layers = perceptron((inputs.shape[1], *hidden, outputs.shape[1]), ACTIVATION).double()
        linear = [layer for layer in self.layers if isinstance(layer, nn.Linear)]
        for layer in linear:
            nn.init.xavier_normal_(layer.weight, 1.0 if layer is linear[-1] else _TANH_GAIN)
            nn.init.zeros_(layer.bias)
        lowest, highest = inputs.min(dim=0).values, inputs.max(dim=0).values
        spread = outputs.std(dim=0)
        self.register_buffer("input_offset", 0.5 * (lowest + highest))
        self.register_buffer("input_scale", 0.5 * (highest - lowest))
        self.register_buffer("output_offset", outputs.mean(dim=0))
        self.register_buffer("output_scale", spread.max().expand_as(spread).clone() if one_scale else spread)

    def forward(self, x: Tensor) -> Tensor:
        """Return outputs (s, b) at inputs (s, a)."""
        return self.output_offset + self.output_scale * self.layers((x - self.input_offset) / self.input_scale)


class TipTransfer(TipNetwork):
    """N_s2r: the simulated tip, mm, and the actuation, both of the effective actuation, to the real tip, mm.

    Args:
        inputs: (s, a) samples of the input.
        outputs: (s, b) samples of the output.
        hidden: Widths of the hidden layers.
        play_width: (m,) how far the effective actuation may be from the commanded one, or (k,) of the actuators
            (`forward.memory.play_of`); (0,) if the body has no memory, or none was learned.

    Attributes:
        centre_line: The same for the flattened control points of the centre line, (s, 3 C) mm; there only if learned.
    """

    play_width: Tensor

    def __init__(self, inputs: Tensor, outputs: Tensor, hidden: Sequence[int], play_width: Tensor) -> None:
        super().__init__(inputs, outputs, hidden, one_scale=True)
        self.register_buffer("play_width", play_width)

    def with_line(self, network: TipNetwork) -> "TipTransfer":
        """Return itself, with the transfer of the centre line beside it."""
        self.centre_line = network
        return self


class TipKinematics(nn.Module):
    """N_fk and N_J of one robot, which ship together, with the network of its centre line if that is learned.

    Attributes:
        forward_kinematics: actuation (s, m) -> tip (s, n) mm.
        jacobian: actuation (s, m) -> flattened Jacobian (s, n m) mm/Pa, row by row.
        centre_line: actuation (s, m) -> flattened control points (s, 3 C) mm.
    """

    def __init__(
        self, forward_kinematics: TipNetwork, jacobian: TipNetwork, centre_line: TipNetwork | None = None
    ) -> None:
        super().__init__()
        self.forward_kinematics = forward_kinematics
        self.jacobian = jacobian
        if centre_line is not None:
            self.centre_line = centre_line

    def forward(self, actuation: Tensor) -> Tensor:
        """Return tips (s, n) mm at actuations (s, m)."""
        return self.forward_kinematics(actuation)
