"""Which motors do not answer, and where to look."""

from collections.abc import Collection, Sequence


def in_words(motors: Sequence[int]) -> str:
    """Ids with neighbours joined: 1-3, 5."""
    runs: list[list[int]] = []
    for motor in motors:
        if runs and motor == runs[-1][-1] + 1:
            runs[-1].append(motor)
        else:
            runs.append([motor])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)


def where_broken(motors: Sequence[int], answering: Collection[int], damaged: Collection[int] = ()) -> tuple[str, str]:
    """What is wrong with a bus of motors in this order, and what to do; empty if all answer undamaged."""
    silent = [motor for motor in motors if motor not in answering and motor not in damaged]
    alive = [motor for motor in motors if motor in answering]
    if damaged:
        names = in_words(sorted(damaged))
        return (
            f"Answers of id {names} arrive damaged.",
            f"Two motors may have the id {names}: unplug one and give it another id; or look for a loose contact.",
        )
    if not silent:
        return "", ""
    if not alive:
        return (
            f"No motor answers (ids {in_words(motors)}).",
            f"Check the motors' supply, their baud rate, and the cable from the adapter to id {motors[0]}.",
        )
    first = motors.index(silent[0])
    findings = f"ids {in_words(alive)} answer, {in_words(silent)} {'do' if len(silent) > 1 else 'does'} not"
    if silent == list(motors[first:]) and len(silent) > 1:
        return f"The bus is broken: {findings}.", f"Look at the cable between {motors[first - 1]} and {silent[0]}."
    if len(silent) == 1:
        return f"A motor is missing: {findings}.", f"Look at the plugs, the supply and the id of motor {silent[0]}."
    return f"Motors are missing: {findings}.", "Look at their plugs, their supply and their ids."
