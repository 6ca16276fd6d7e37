"""`softform home`: makes the past of the robot of a running stack known, so that what it remembers can be foretold."""

from typing import Any

import click

from softform_tools.commands import goals


@click.command()
@goals.stack_options
def home(namespace: str, frame: str, json_path: str | None) -> None:
    """Lead the robot of a running stack there and back until what it did before cannot matter, and leave it at rest.

    A body that remembers is foretold wrongly after a restart of its driver: nobody knows what it did before. Each
    degree of freedom goes through nearly half of its range and back, or all of it where an actuator needs that, alone,
    while the others rest; look first that nothing is in its way. Ctrl-C leaves the robot where it is. Exits with 1 if
    it ends with an error, with 2 if it could not be asked for.

    \b
    Examples:
      ./softform home
      ./softform home && ./softform reach target.ply --unit mm
    """  # noqa: D301 - click reads the escape as "keep these lines"
    from softform_core.forward.homing import homing_path

    with goals.connected(namespace, frame) as client:
        count = len(homing_path(client.robot()))
        with goals.Progress(count, "waypoint") as bar:

            def show(feedback: Any) -> None:
                bar.note("homing", feedback.waypoint)

            result = goals.carried_out(lambda: client.home(on_feedback=show), client.cancel)
    said = f"home after {count} moves: what the robot did before does not matter any more; it is held at rest"
    goals.tell([said], result, json_path)
