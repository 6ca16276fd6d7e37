"""The robot's trained models with their cards, and what the stack uses of them."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from softform_console.job_messages import Model

MODEL_NODE = "shape_predictor"
ASKED = ("model", "model_folder", "sim_to_real")
_MOST_SHOWN = 2**16

TO_SWITCH = (
    "Of a robot with a surface the kind of model (`learned`, or `fem`: the simulator) is chosen on the page, and by "
    "each goal. For other trained ones start the stack with `./softform launch softform sim_to_real:=FOLDER` (`auto`, "
    "`none`). One that is trained anew into the same folder is taken into use within seconds."
)


def models_in(folder: Path) -> list[Model]:
    """Return the models with a card in a robot's folder and those in it."""
    found = []
    for card in sorted([*folder.glob("*.md"), *folder.glob("*/*.md")]):
        try:
            text = card.read_text(encoding="utf-8", errors="replace")[:_MOST_SHOWN]
        except OSError:
            continue
        name = card.parent.relative_to(folder.parent)
        found.append(Model(name=f"{name}: {text.partition(chr(10))[0].lstrip('# ')}", card=text))
    return found


def in_use(asked: Callable[[], Mapping[str, Any] | None]) -> str:
    """Return which models the stack was started with, in a sentence."""
    values = asked()
    if values is None or any(values.get(name) is None for name in ASKED):
        return f"The node {MODEL_NODE} does not answer: what is in use is not known."
    folder = values["model_folder"] or "the robot's own"
    return f"Started with: model {values['model']}, folder {folder}, sim_to_real {values['sim_to_real']}."
