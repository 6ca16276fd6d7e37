"""Cards of the models of a tip: N_fk with N_J, and N_s2r."""

from typing import Annotated, Literal

from pydantic import Field

from softform_core.networks.card import Count, Entry, KinematicsReference, Millimetres, ModelCard, Share, Split

Percent = Annotated[float, Field(ge=0.0)]


class NetworkEntry(Entry):
    """One perceptron and how it was fitted.

    Errors are on the test part: of N_fk and N_s2r distances over the workspace's width; of N_J Frobenius norms over the
    root mean square of all.
    """

    inputs: Count
    hidden: list[Count]
    outputs: Count
    activation: str
    parameters: Count
    steps: Count
    best_step: Count
    seconds: float
    test_mean_percent: Percent
    test_max_percent: Percent


class SimulatedData(Entry):
    """Source of the tips and Jacobians; the store's own provenance is repeated.

    `segments` is None of imported tips, which lie on no grid and have no Jacobians: N_J learnt the derivative of N_fk.
    """

    store: str
    samples: Count
    segments: Count | None
    simulation_command: str
    simulation_git_revision: str
    simulation_created: str

    @property
    def is_imported(self) -> bool:
        """Whether the tips are imported."""
        return self.segments is None


class RealData(Entry):
    """Source of the real tips; the store's own provenance is repeated."""

    store: str
    samples: Count
    source: str
    created: str


class TipKinematicsCard(ModelCard):
    """Everything about N_fk and N_J of a tip that is not in their weights, and about the network of a centre line.

    Errors of a centre line are distances of its nodes over the workspace's width.
    """

    model: Literal["tip kinematics"] = "tip kinematics"
    workspace_width_mm: Millimetres
    data: SimulatedData
    split: Split
    seed: int
    forward_kinematics: NetworkEntry
    jacobian: NetworkEntry
    centre_line: NetworkEntry | None = None

    def to_markdown(self) -> str:
        """Return the card for people."""
        d, f, j = self.data, self.forward_kinematics, self.jacobian
        derivatives = "with exact Jacobians" if d.segments else "(Jacobians: the derivative of N_fk)"
        line = "" if self.centre_line is None else ", of the nodes of the centre line in percent of the width"
        grid = f" ({d.segments} values of each actuation)" if d.segments else ""
        rows = "\n".join(
            f"| {name} | {n.inputs} → {n.hidden} → {n.outputs}, {n.activation}, {n.parameters} parameters "
            f"| {n.test_mean_percent:.3f} | {n.test_max_percent:.3f} "
            f"| {n.best_step} of {n.steps} steps, {n.seconds:.0f} s |"
            for name, n in (("N_fk", f), ("N_J", j), ("centre line", self.centre_line))
            if n is not None
        )
        return f"""{self._head("Kinematics of the tip")}

| | |
|---|---|
| takes | {self._takes()} |
| gives | the tip, {f.outputs} coordinates in the robot's frame, mm, and its Jacobian, mm/{self.unit} \
(paper 001, Sec. II-B) |
| workspace | {self.workspace_width_mm:.1f} mm wide: the smaller extent along x and y of the simulated tips |
{self._files()}

## Networks and their errors

On the {self.split.test} samples of the test part; of N_fk in percent of the workspace's width, of N_J in percent of the
root mean square Jacobian{line}.

| network | layers | mean, % | largest, % | fit |
|---|---|---|---|---|
{rows}

## Data

{d.samples} simulated tips {derivatives} from `{d.store}`{grid}, made by
`{d.simulation_command}` (revision {d.simulation_git_revision}, {d.simulation_created}); {self.split.train} train,
{self.split.validation} select, {self.split.test} test. Seed {self.seed}.
{self._made()}
"""


class TipSimToRealCard(ModelCard):
    """Everything about an N_s2r of a tip that is not in its weights.

    `play` is the part of its range by which the body stays behind each actuation or actuator that turns back; empty
    without a memory. Errors of a centre line are distances of its nodes over the workspace's width.
    """

    model: Literal["tip sim-to-real"] = "tip sim-to-real"
    forward_kinematics: KinematicsReference
    data: RealData
    split: Split
    seed: int
    network: NetworkEntry
    play: dict[str, Share] = {}
    centre_line: NetworkEntry | None = None
    before_mean_percent: Percent
    before_max_percent: Percent

    @property
    def memory(self) -> str:
        """The play in words; empty without one."""
        if not self.play:
            return ""
        each = ", ".join(f"{name} {share:.1%}" for name, share in self.play.items())
        return f"the body stays behind where an actuator turns back, by parts of the range up to: {each}"

    def to_markdown(self) -> str:
        """Return the card for people."""
        n, d = self.network, self.data
        memory, line = f"| memory | {self.memory} |\n" if self.play else "", ""
        if (of := self.centre_line) is not None:
            line = f"| centre line, with sim-to-real | {of.test_mean_percent:.2f} | {of.test_max_percent:.2f} |\n"
        return f"""{self._head("Sim-to-real transfer of the tip")}

| | |
|---|---|
| takes | the simulated tip, {n.outputs} coordinates, mm, and {self._takes()} |
| gives | the real one, mm (paper 001, Sec. II-B) |
| network | N_s2r: {n.inputs} → {n.hidden} → {n.outputs}, {n.activation}, {n.parameters} parameters |
{memory}| N_fk | sha256 `{self.forward_kinematics.weights_sha256}`: the model is rejected beside any other |
{self._files()}

## Errors

Distances to the captured tips of the test part, {self.split.test} samples, in percent of the workspace's width.

| | mean, % | largest, % |
|---|---|---|
| simulation alone | {self.before_mean_percent:.2f} | {self.before_max_percent:.2f} |
| with sim-to-real | {n.test_mean_percent:.2f} | {n.test_max_percent:.2f} |
{line}
{d.samples} samples of `{d.store}` ({d.source}, {d.created}): {self.split.train} train, {self.split.validation} select,
{self.split.test} test. Seed {self.seed}, {n.best_step} of {n.steps} steps, {n.seconds:.0f} s.
{self._made()}
"""
