"""The site: `make docs` builds it from these pages and from the docstrings, without a network."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import tierrank

project = "TierRank"
author = copyright = "the TierRank authors"
release = version = tierrank.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "examples", "figures"]
templates_path = ["_templates"]
default_role = "py:obj"  # `name` in a docstring is code, and a link where the name is known
html_math_renderer = "mathml"  # what browsers show by themselves; see below

# Pages are Markdown as GitHub shows it: headings have the anchors that links there use.
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4

# A page a name, by _templates/autosummary; a class has its methods and attributes on its page.
autodoc_typehints = "none"  # they would be longer than all else of a signature
numpydoc_show_class_members = False
toc_object_entries_show_parents = "hide"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# Each example runs while the site is built, and one that fails ends the build.
sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "matplotlib_animations": False,
    "min_reported_time": 5,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "download_all_examples": False,
    "remove_config_comments": True,
}

html_theme = "pydata_sphinx_theme"
html_title = "TierRank"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_theme_options = {
    "header_links_before_dropdown": 7,
    "navigation_with_keys": False,
    "show_prev_next": False,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "start": []}

# Public for Python, for torch and for our own rooms, as what `save` and `load` call.
NOT_FOR_PEOPLE = {
    "__init__", "from_state", "to_state", "extra_repr",
    "tables", "kept",  # of Tiers, to the kernels
    # of rankings and games in parts
    "hashes", "packed", "unpacked", "recoded", "either_way", "lower_first",
    "compared",  # of a fit, to reports
    "spelled", "further_down",  # of errors, to commands and readers
}  # fmt: skip


def skip_member(
    app: Any, kind: str, name: str, member: Any, skip: bool, options: Any
) -> bool | None:
    """Leave out of a class what this package did not write or does not explain."""
    if kind not in ("method", "property", "attribute"):
        return None  # no member of a class
    if isinstance(member, property):
        member = member.fget
    elif not inspect.isroutine(member):
        member = getattr(member, "func", None)  # of a cached property; plain values have none
    ours = (getattr(member, "__module__", None) or "").startswith("tierrank.")
    if name in NOT_FOR_PEOPLE or not ours or not inspect.getdoc(member):
        return True
    return None  # as usual: not what begins with _


def write_commands(app: Any) -> None:
    """Write what `--help` says of every command as a page."""
    import typer
    from sphinx.util.osutil import ensuredir
    from sphinx.util.rst import escape

    from tierrank.cli.options import app as commands

    lines = [
        "Commands",
        "========",
        "",
        "What ``--help`` says of each; :doc:`/command-line` has them by what they are for.",
    ]

    def describe(command: Any, parent: Any, name: str) -> None:
        context = typer.Context(command, parent=parent, info_name=name)
        if hasattr(command, "list_commands"):
            for each in command.list_commands(context):
                describe(command.get_command(context, each), context, each)
            return
        path = context.command_path
        lines.extend(["", f".. _command-{path.replace(' ', '-')}:", "", path, "-" * len(path), ""])
        lines.extend(["::", "", f"    {command.get_usage(context).removeprefix('Usage: ')}", ""])
        lines.append(escape(inspect.cleandoc(command.help or "")))
        panels: dict[str, list[str]] = {}
        for option in command.get_params(context):
            if option.name == "help" or not (record := option.get_help_record(context)):
                continue
            usual = "Arguments" if option.param_type_name == "argument" else "Options"
            panel = panels.setdefault(getattr(option, "rich_help_panel", None) or usual, [])
            panel.extend(["", f"``{record[0]}``", f"    {escape(' '.join(record[1].split()))}"])
        for title, entries in panels.items():
            lines.extend(["", f".. rubric:: {title}", *entries])

    describe(typer.main.get_command(commands), None, "tierrank")
    ensuredir(Path(app.srcdir, "generated"))
    text = "\n".join([*lines, ""])
    page = Path(app.srcdir, "generated", "commands.rst")
    if not page.exists() or page.read_text(encoding="utf-8") != text:
        page.write_text(text, encoding="utf-8")


def name_sessions(app: Any, document: Any) -> None:
    """Indented examples of Markdown are sessions of Python, though they cannot say so."""
    from docutils import nodes

    for block in document.findall(nodes.literal_block):
        if block.astext().startswith(">>> "):
            block["language"] = "pycon"


def visit_math(writer: Any, node: Any) -> None:
    """Formulas as MathML: MathJax would come over the network."""
    from docutils import nodes
    from docutils.utils.math.latex2mathml import tex2mathml

    tex = node.astext()
    for known, as_here in ((r"\Big)", r"\Bigr)"), (r"\Big(", r"\Bigl("), (r"\dots", r"\ldots")):
        tex = tex.replace(known, as_here)
    as_block = isinstance(node, nodes.math_block)
    formula = tex2mathml(tex, as_block=as_block)
    writer.body.append(f'<div class="formula">{formula}</div>' if as_block else formula)
    raise nodes.SkipNode


def setup(app: Any) -> None:
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math, None))
    app.connect("builder-inited", write_commands)
    app.connect("doctree-read", name_sessions)
    app.connect("autodoc-skip-member", skip_member)
