"""Between the messages of `collect_dataset` and what the collector works with."""

from pathlib import Path

from softform_collect.data_set import VIA, asked_actuations, default_output
from softform_collect.goal import Code, CollectGoal, CollectOutcome, Progress
from softform_core.robots import Robot
from softform_interfaces.action import CollectDataset
from softform_ros.goal_error import GoalError, in_code


def goal_from_message(message: CollectDataset.Goal, robot: Robot) -> CollectGoal:
    """Check a goal.

    Raises:
        GoalError: If nothing is to be collected, or by nothing that there is.
    """
    if message.via not in VIA:
        raise GoalError(Code.INVALID_GOAL, f"Nothing captures via '{message.via}'.", f"Give one of {', '.join(VIA)}.")
    with in_code(Code.INVALID_GOAL):
        asked_actuations(robot, message.frames, message.seed)
    output = Path(message.output).expanduser() if message.output else default_output(robot)
    if not output.is_absolute():
        raise GoalError(
            Code.INVALID_GOAL, f"The output '{output}' is relative.", "Give an absolute path: the node runs elsewhere."
        )
    if message.reference_every and message.via != "mocap":
        raise GoalError(Code.INVALID_GOAL, "Drift is measured by markers.", "Collect via mocap, or without it.")
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
