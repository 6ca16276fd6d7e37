"""The site of these pages: `./softform docs` builds it with Sphinx."""

import re
import shutil
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[1]

project = "Softform"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
html_theme = "sphinx_rtd_theme"
html_theme_options = {"navigation_depth": 3}
html_show_copyright = False
html_static_path = ["_static"]
html_css_files = ["wide_tables.css"]
myst_heading_anchors = 4
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_use_ivar = True  # a named tuple has its fields listed already
napoleon_attr_annotations = False  # patterns in annotations read as links
default_role = "literal"  # docstrings are written with single backticks


def _adapt_links(app: Any, name: str, source: list[str]) -> None:
    """Begin with the README, whose links start elsewhere; a link to a file that is no page becomes its name."""
    folder = Path(app.srcdir, name).parent
    if name == "start":
        folder, source[0] = _ROOT, (_ROOT / "README.md").read_text(encoding="utf-8")

    def adapted(link: re.Match[str]) -> str:
        words, path, part = link.groups()
        file = (folder / path).resolve()
        if "://" in path or not file.exists():
            return link[0]
        if not file.is_relative_to(app.srcdir):
            return f"{words} (`{file.relative_to(_ROOT)}`)"
        return f"[{words}]({file.relative_to(app.srcdir)}{part or ''})" if name == "start" else link[0]

    source[0] = re.sub(r"\[([^\]]+)\]\(([^)#\s]+)(#[^)\s]*)?\)", adapted, source[0])


def _escape_bars(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """A bar is an absolute value in these docstrings, and no substitution."""
    lines[:] = [line.replace("|", r"\|") for line in lines]


def setup(app: Any) -> None:
    """Called by Sphinx; pages of modules that another revision had are not of this site."""
    shutil.rmtree(Path(app.srcdir, "reference", "modules"), ignore_errors=True)
    app.connect("source-read", _adapt_links)
    app.connect("autodoc-process-docstring", _escape_bars)
