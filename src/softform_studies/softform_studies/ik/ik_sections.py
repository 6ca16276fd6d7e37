"""The sections of `softform bench ik`: parts that packages register, each a dictionary of figures under its name.

A section is an entry point of the group `softform.bench.ik`: a function that returns what JSON can hold. The first line
of its docstring is what `--help` says of it. If it has parameters, they are options of the command (`points`,
`targets`, `robot_name`), and have defaults; most have none. One without `robot_name` is of robots of its own.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence

from softform_core.errors import SoftformError
from softform_core.paths import DEFAULT_ROBOT
from softform_core.plugins import load_plugin, plugin_kinds

GROUP = "softform.bench.ik"

_ROBOT = "robot_name"

_ORDER = ("prediction", "solver", "algorithm2", "compiled", "scaling", "bounds", "streaming", "waypoints", "planning")

Section = Callable[..., dict[str, object]]


def section_names() -> list[str]:
    """Names of the registered sections in the order in which they run."""
    last = len(_ORDER)
    return sorted(plugin_kinds(GROUP), key=lambda name: (_ORDER.index(name) if name in _ORDER else last, name))


def load_section(name: str) -> Section:
    """The section of this name.

    Raises:
        SoftformError: If there is none.
    """
    section: Section = load_plugin(GROUP, name, "section")[0]
    return section


def run_sections(
    names: Sequence[str], options: Mapping[str, object], report: Callable[[str], None]
) -> dict[str, dict[str, object]]:
    """Run sections one after another.

    Args:
        names: Names of the sections that are run.
        options: Arguments of the sections, by parameter name.
        report: Called with a line when a section begins or fails.

    Returns:
        Figures by section; a section that failed has its `error`, so that what the others showed is not lost.

    Raises:
        SoftformError: If there is no section of one of the names, or one takes no other robot; nothing has run then.
    """
    sections = {name: load_section(name) for name in names}
    takes = {name: inspect.signature(section).parameters for name, section in sections.items()}
    fixed = [name for name in names if _ROBOT not in takes[name]]
    if fixed and options.get(_ROBOT, DEFAULT_ROBOT) != DEFAULT_ROBOT:
        raise SoftformError(
            f"These sections take no robot: {', '.join(fixed)}.",
            "Add --only with each section that takes one (solver, algorithm2), or leave --robot out.",
        )
    figures: dict[str, dict[str, object]] = {}
    for name, section in sections.items():
        wanted = {option: options[option] for option in takes[name] if option in options}
        report(f"bench ik: {name}")
        try:
            figures[name] = section(**wanted)
        except SoftformError as error:
            report(f"  failed: {error}")
            figures[name] = {"error": str(error)}
    return figures
