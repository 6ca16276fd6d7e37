"""`softform reach`: a shape to a running stack."""

from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from softform_core.errors import SoftformError
from softform_tools.commands import goals
from softform_tools.target_options import FREE, PLACE, POSE_ADVICE, POSE_OPTION

if TYPE_CHECKING:  # commands are listed without ROS
    from softform_client.holding_arms import HoldingArms

MODES = ("plan-only", "plan-and-move", "plan-move-and-verify", "closed-loop")


@click.command()
@click.argument("target", type=click.Path(path_type=Path), metavar="FILE")
@goals.UNIT_OPTION
@click.option("--mode", type=click.Choice(MODES), default="plan-and-move", show_default=True, help="What to do.")
@POSE_OPTION
@click.option("--partial", is_flag=True, help="The target shows only a part of the shape.")
@goals.values_option("--seed", "Where the solver (and the robot in a closed loop) starts.")
@click.option("--starts", default=0, help="Of a global search.  [default: the node's]")
@goals.values_option("--preferred", "Of all solutions the one nearest to these values.")
@click.option("--preference", default=0.0, help="mm² that an actuator's whole range is worth.  [default: the node's]")
@click.option("--tolerance", default=0.0, help="m, mean error at which to stop.  [default: the node's]")
@click.option("--max-time", default=0.0, help="s for each solve.  [default: the node's]")
@click.option("--max-rounds", default=0, help="Corrections of the closed loop.  [default: the node's]")
@goals.MODEL_OPTION
@goals.SIMULATED_OPTION
@goals.ACCEPT_OPTION
@click.option(
    "--held-by",
    metavar="ARMS/left|right",
    help="Namespace of arms that hold still, and the gripper that holds the robot's base: FILE is in their frame.",
)
@goals.values_option("--grip", "x, y, z (m), qx, qy, qz, qw of the base in that gripper's frame.")
@goals.stack_options
def reach(
    target: Path,
    unit: Any,
    mode: str,
    pose: str,
    held_by: str | None,
    grip: Any,
    namespace: str,
    frame: str,
    json_path: str | None,
    **options: Any,
) -> None:
    """Bring the robot of a running stack to a shape; it holds the shape afterwards.

    FILE is a mesh or cloud (PLY, OBJ, STL, PCD, XYZ). Ctrl-C cancels, and the robot stays where it is; `./softform
    release` lets go of the shape, `./softform stop` makes the robot safe. Exits with 1 if the goal ends with an error,
    with 2 if it could not be sent.

    \b
    Examples:
      ./softform reach target.ply --unit mm
      ./softform reach target.ply --mode plan-only --json - | jq .solve.mean_error
      ./softform reach part.stl --unit mm --pose place --mode closed-loop
      ./softform reach target.ply --unit mm --namespace finger --held-by softform/right --grip 0,0,0.05,0,0,0,1
    """  # noqa: D301 - click reads the escape as "keep these lines"
    from softform_client.client import Mode
    from softform_core.evaluation.look import look_at
    from softform_core.shapes.placing import placed
    from softform_core.shapes.read import read_shape
    from softform_core.units import MM_PER_M
    from softform_interfaces.action import ReachShape

    shape = read_shape(target, unit)
    chosen = Mode[mode.upper().replace("-", "_")]
    with ExitStack() as opened:
        arms = opened.enter_context(_arms(held_by, grip, frame, pose))
        client = opened.enter_context(goals.connected(namespace, frame if arms is None else ""))
        bar = opened.enter_context(goals.Progress())
        if pose == PLACE:
            shape = placed(shape, client.robot())
        if arms is not None:
            click.echo(arms.line(), err=True)
        elif not frame:
            click.echo(look_at(shape, client.robot(), pose).line(), err=True)

        def note(feedback: ReachShape.Feedback) -> None:
            place = f" (round {feedback.round})" if feedback.round else ""
            bar.note(f"{feedback.stage}{place}, predicted {feedback.mean_error * MM_PER_M:.2f} mm")

        result = goals.carried_out(
            lambda: client.reach(shape, chosen, fix_pose=pose != FREE, held_by=arms, on_feedback=note, **options),
            client.cancel,
            {ReachShape.Result.UNREACHABLE: POSE_ADVICE[pose]},
        )
    errors = [("predicted", result.solve), *([("measured", result.measured)] if result.measured.valid else [])]
    lines = [
        f"{name} mean error {one.mean_error * MM_PER_M:.2f} mm, largest {one.max_error * MM_PER_M:.2f} mm"
        for name, one in errors
    ]
    goals.tell([*lines, goals.values_line(result.actuators)], result, json_path)


def _arms(held_by: str | None, grip: Any, frame: str, pose: str) -> AbstractContextManager["HoldingArms | None"]:
    """Arms as the options name them, if they do.

    Raises:
        SoftformError: If that is not all that it takes.
    """
    if held_by is None and grip is None:
        return nullcontext()
    space, slash, gripper = (held_by or "").rpartition("/")
    if not slash or grip is None or pose == PLACE:
        raise SoftformError(
            "To hand a target over takes the arms' namespace and gripper, the base's pose there, and a target's place.",
            "Give --held-by softform/right and --grip x,y,z,qx,qy,qz,qw, and no --pose place.",
        )
    from softform_client.holding_arms import HoldingArms

    return HoldingArms(space, gripper, grip, frame, goals.PATIENCE)
