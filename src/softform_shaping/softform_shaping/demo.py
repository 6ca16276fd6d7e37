"""`softform demo --robot sponge`: two grippers bring an object into a shape, by both controllers, with a report."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from softform_core.errors import SoftformError
from softform_core.run_folder import new_run_folder
from softform_core.threads import one_thread
from softform_shaping.bench import best_reachable, outcome
from softform_shaping.preparation import CONTROLLERS, prepared_task
from softform_shaping.report import draw_report
from softform_shaping.scene import make_scene
from softform_shaping.session import Iteration, shape_object
from softform_shaping.tasks import TASKS_OF_OBJECTS

__all__ = ["Shown", "show"]

_MOST = {"ours": 20, "printed": 30}

Say = Callable[[str], None]


@dataclass(frozen=True)
class Shown:
    """What the demo found.

    Attributes:
        report: Picture.
        found: Figures by controller.
    """

    report: Path
    found: dict[str, Any]

    def figures(self) -> dict[str, object]:
        """As what JSON can hold."""
        return {**self.found, "report": str(self.report)}


def show(object_name: str, reality_name: str, seed: int, say: Say) -> Iterator[Shown]:
    """Yield what the demo found, once its report is written; `say` takes progress.

    Args:
        object_name: Of `config/objects`; its first task is done.
        reality_name: `default`; objects have one truth, in their description.
        seed: Of what is drawn: camera, noise, first poses.
        say: Takes lines.

    Raises:
        SoftformError: If another reality is asked for, the object has no task, or it is not seen.
    """
    if reality_name != "default":
        raise SoftformError(
            f"Objects have no reality '{reality_name}': their truth stands in config/objects.", "Leave --reality out."
        )
    name = next((key for key, task in TASKS_OF_OBJECTS.items() if task.object == object_name), None)
    if name is None:
        raise SoftformError(f"There is no task with '{object_name}'.", "Take sponge.")
    described, task = prepared_task(name)
    say(f"{described.title}: {TASKS_OF_OBJECTS[name].what}; judged by the true object, which no controller sees")
    shaped, scenes = {}, {}
    with one_thread():
        for which, make in CONTROLLERS.items():
            scenes[which] = make_scene(described, task.model, seed, with_arms=True)

            def watch(one: Iteration, which: str = which) -> None:
                say(f"{which}: true {one.true_rms:5.2f} mm, self-reported {one.estimate.rms:5.2f} mm")

            controller = make(task, seed)
            shaped[which] = shape_object(controller, scenes[which], _MOST[which], watch=watch)
            say(f"{which} ended: {shaped[which].ended}")
        found: dict[str, Any] = {"task": name, **{which: outcome(run) for which, run in shaped.items()}}
        report = new_run_folder("demo") / "report.png"
        if shaped["ours"].iterations:
            scene = scenes["ours"]
            title = f"{described.title}: {TASKS_OF_OBJECTS[name].what}"
            links = scene.arms.links if scene.arms else []
            draw_report(report, title, task, scene, scene.look(), shaped, links)
            found["reachable_mm"] = best_reachable(scene.truth, task.target)[0]
    say(f"report: {report}")
    yield Shown(report, found)
