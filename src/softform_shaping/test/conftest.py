"""What several tests share: a small block between two grips, its model and a target."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for the helper beside this file
from held_block import BENT, BLOCK

from softform_shaping.controllers import Task
from softform_shaping.model import HeldModel
from softform_shaping.objects import ShapedObject
from softform_shaping.visual_mesh import VisualMesh


@pytest.fixture(scope="session")
def block() -> ShapedObject:
    return ShapedObject.model_validate(BLOCK)


@pytest.fixture(scope="session")
def model(block: ShapedObject) -> HeldModel:
    return HeldModel(block.body.simulator())


@pytest.fixture(scope="session")
def task(model: HeldModel) -> Task:
    visual = VisualMesh(model.skin, model.faces, len(model.rest_nodes), 2)
    return Task(model, visual, model.shape(BENT).nodes)
