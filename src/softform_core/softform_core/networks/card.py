"""The card of a trained model: what it is, what it was trained on, how wrong it is, how to make it again."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=0)]
Millimetres = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]


class Entry(BaseModel):
    """A part of a card: unknown fields are rejected."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Card(Entry):
    """What the card of every model says."""

    schema_name: str
    schema_version: int
    robot: str
    robot_fingerprint: str
    chambers: list[str]
    command: str
    git_revision: str
    created: str
    torch_version: str
    weights_file: str
    weights_bytes: Count
    weights_sha256: str

    def to_markdown(self) -> str:
        """The card for people."""
        raise NotImplementedError


class Architecture(Entry):
    """Shape of the network."""

    inputs: Count
    hidden: list[Count]
    outputs: list[Count]
    activation: str
    batch_norm: bool
    parameters: Count


class TrainingData(Entry):
    """Where the shapes came from; the simulation's own provenance is repeated."""

    store: str
    samples: Count
    symmetric_images: Count
    simulation_seed: int
    simulation_command: str
    simulation_git_revision: str
    simulation_created: str


class Split(Entry):
    """Shapes in each part; symmetric images of a shape always lie in the same part."""

    train: Count
    validation: Count
    test: Count


class Training(Entry):
    """How the network was trained."""

    recipe: str
    seed: int
    epochs: Count
    best_epoch: Count
    batch_size: Count
    learning_rate: float
    seconds: float
    threads: Count


class Errors(Entry):
    """Distances between control points, mm, and the floor set by the B-spline fit at the mesh's vertices."""

    train_mean: Millimetres
    train_max: Millimetres
    validation_mean: Millimetres
    validation_max: Millimetres
    test_mean: Millimetres
    test_max: Millimetres
    test_99_percentile: Millimetres
    mean_shape_mean: Millimetres
    fit_mean: Millimetres
    fit_max: Millimetres


class ModelCard(Card):
    """Everything about a forward-kinematics model file that is not in its weights."""

    schema_name: Literal["softform/forward-kinematics"] = "softform/forward-kinematics"
    schema_version: Literal[1] = 1
    pressure_min_pa: list[float]
    pressure_max_pa: list[float]
    surface_degree: Count
    architecture: Architecture
    data: TrainingData
    split: Split
    training: Training
    errors_mm: Errors

    def to_markdown(self) -> str:
        """The card for people."""
        a, d, t, e = self.architecture, self.data, self.training, self.errors_mm
        return f"""# Forward kinematics of the robot '{self.robot}'

Made by `{self.command}`, which makes it again. Do not edit: this page is generated from `forward_kinematics.json`.

| | |
|---|---|
| takes | {a.inputs} chamber pressures, Pa gauge ({", ".join(self.chambers)}), {_range(self)} |
| gives | {a.outputs[0]} x {a.outputs[1]} control points of a B-spline surface of degree {self.surface_degree}, mm |
| network | N_fk (Eq. 14): hidden layers {a.hidden}, {a.activation}, batch norm {"yes" if a.batch_norm else "no"}, \
{a.parameters} parameters |
| weights | `{self.weights_file}` (TorchScript), {self.weights_bytes} bytes, sha256 `{self.weights_sha256}` |
| robot description | `{self.robot_fingerprint}`: the model is rejected for any other |

## Errors

Distances between predicted and fitted control points. The test part took no part in training or selection; symmetric
images of one shape never lie in two parts.

| part | shapes | mean, mm | largest, mm |
|---|---|---|---|
| training | {self.split.train} | {e.train_mean:.3f} | {e.train_max:.2f} |
| validation | {self.split.validation} | {e.validation_mean:.3f} | {e.validation_max:.2f} |
| test | {self.split.test} | {e.test_mean:.3f} | {e.test_max:.2f} |

On the test part, 99 % of the shapes are below {e.test_99_percentile:.2f} mm at their worst control point.
For scale: predicting the mean shape always would err by {e.mean_shape_mean:.2f} mm in the mean. Floor: the B-spline
surface itself is {e.fit_mean:.3f} mm (mean) and {e.fit_max:.2f} mm (largest) away from the vertices of the simulated
shapes.

## Data and training

{d.samples} simulated shapes from `{d.store}`, made by `{d.simulation_command}` (seed {d.simulation_seed}, revision
{d.simulation_git_revision}, {d.simulation_created}); {d.symmetric_images} image(s) of each by the robot's symmetry.
Recipe `{t.recipe}`, seed {t.seed}, {t.epochs} epochs (best: {t.best_epoch}), batches of {t.batch_size}, learning rate
{t.learning_rate:g}; {t.seconds:.0f} s on {t.threads} thread(s). Revision {self.git_revision},
torch {self.torch_version}, {self.created}.
"""


def _range(card: ModelCard) -> str:
    lowest, highest = min(card.pressure_min_pa), max(card.pressure_max_pa)
    return f"{lowest:g} … {highest:g} Pa"
