"""Between the messages of `collect_dataset` and what the collector works with."""

from pathlib import Path

from softform_collect.data_set import VIA, asked_actuations, default_output
from softform_collect.goal import Code, CollectError, CollectGoal, CollectOutcome, Progress
from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_interfaces.action import CollectDataset


def goal_from_message(message: CollectDataset.Goal, robot: Robot) -> CollectGoal:
    """Check a goal.

    Raises:
        CollectError: If nothing is to be collected, or by nothing that there is.
    """
    if message.via not in VIA:
        raise CollectError(
            Code.INVALID_GOAL, f"Nothing captures via '{message.via}'.", f"Give one of {', '.join(VIA)}."
        )
    try:
        asked_actuations(robot, message.frames, message.seed)
    except SoftformError as error:
        raise CollectError(Code.INVALID_GOAL, error.message, error.next_step) from error
    output = Path(message.output).expanduser() if message.output else default_output(robot)
    if not output.is_absolute():
        raise CollectError(
            Code.INVALID_GOAL, f"The output '{output}' is relative.", "Give an absolute path: the node runs elsewhere."
        )
    if message.reference_every and message.via != "mocap":
        raise CollectError(Code.INVALID_GOAL, "Drift is measured by markers.", "Collect via mocap, or without it.")
    return CollectGoal(message.via, message.frames, message.seed, output, message.reference_every)


def feedback_to_message(progress: Progress) -> CollectDataset.Feedback:
    """Progress as feedback."""
    return CollectDataset.Feedback(
        frame=progress.frame,
        done=progress.done,
        frames=progress.frames,
        stage=progress.stage,
        coverage=progress.coverage,
        note=progress.note,
    )


def result_to_message(outcome: CollectOutcome) -> CollectDataset.Result:
    """Outcome as result."""
    return CollectDataset.Result(
        store=str(outcome.store),
        captured=outcome.captured,
        rejected=len(outcome.rejections),
        rejections=[f"frame {number} is rejected: {reason}" for number, reason in sorted(outcome.rejections.items())],
        error_code=outcome.code,
        error_msg=outcome.message,
    )
