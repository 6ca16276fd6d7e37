"""What a task needs before it begins: the object, its model and visual mesh, and the controller by its name."""

from collections.abc import Callable, Mapping
from functools import cache

import numpy as np

from softform_core.errors import SoftformError
from softform_shaping.controllers import Controller, Task
from softform_shaping.model import HeldModel
from softform_shaping.objects import ShapedObject, load_object
from softform_shaping.ours import Ours, OursController
from softform_shaping.printed import Printed, PrintedController
from softform_shaping.tasks import TASKS_OF_OBJECTS
from softform_shaping.visual_mesh import VisualMesh

__all__ = ["CONTROLLERS", "prepared", "prepared_task"]

_LEVELS = 2


@cache
def prepared(name: str) -> tuple[ShapedObject, HeldModel, VisualMesh]:
    """An object, its model and its visual mesh; errors as of `load_object`."""
    described = load_object(name)
    model = HeldModel(described.body.simulator())
    return described, model, VisualMesh(model.skin, model.faces, len(model.rest_nodes), _LEVELS)


def prepared_task(name: str) -> tuple[ShapedObject, Task]:
    """The object and the task of a name in `TASKS_OF_OBJECTS`.

    Raises:
        SoftformError: If there is no such task, or its object is wrong.
    """
    if name not in TASKS_OF_OBJECTS:
        raise SoftformError(f"There is no task '{name}'.", f"Known: {', '.join(TASKS_OF_OBJECTS)}.")
    described, model, visual = prepared(TASKS_OF_OBJECTS[name].object)
    return described, Task(model, visual, model.shape(TASKS_OF_OBJECTS[name].poses).nodes)


def _printed(task: Task, seed: int) -> Controller:
    return PrintedController(task, Printed(), np.random.default_rng([seed, 1]))


def _ours(task: Task, seed: int) -> Controller:
    return OursController(task, Ours())


CONTROLLERS: Mapping[str, Callable[[Task, int], Controller]] = {"ours": _ours, "printed": _printed}
