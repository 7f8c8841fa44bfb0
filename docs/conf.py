"""How the pages become a site: `make docs` writes it to docs/_build, to be read and searched without a network.

Pages are Markdown. The reference is written from the docstrings of everything public, by the tables of the package
itself, so that nothing is listed by hand. Pages at the root of the project are included as they are.
"""

import importlib
import inspect
import re
from pathlib import Path

import noisette as nz

ROOT = Path(__file__).resolve().parents[1]
ELSEWHERE = re.compile(r"\]\(\.\./(SECURITY|CHANGELOG|CONTRIBUTING|README|benchmarks/README)\.md(#[\w-]+)?\)")

project, author, version = "Noisette", "the Noisette authors", nz.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
myst_heading_anchors = 4
default_role = "literal"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
python_use_unqualified_type_names = True
nitpicky = False
html_theme = "furo"
html_title = "Noisette"
html_copy_source = False
html_show_sphinx = False


# The reference


PARTS = {
    "curator": "Opening data and asking",
    "questions": "Questions",
    "answers": "Answers",
    "mechanisms": "Mechanisms",
    "privacy": "Guarantees and composition",
    "laws": "Laws of noise",
    "accuracy": "Error and calibration",
    "local": "Local privacy",
    "holdout": "Reusable holdout",
    "charts": "Charts",
    "audit": "Auditor",
    "attacks": "Attacks",
    "errors": "Errors",
}


def reference() -> None:
    """Write one page for each public part of the package, and their list."""
    folder = ROOT / "docs" / "api"
    folder.mkdir(exist_ok=True)
    for part, title in PARTS.items():
        module = importlib.import_module(f"noisette.{part}")
        names = [name for name in sorted(module.__all__) if not inspect.ismodule(getattr(module, name))]
        lines = [f"# {title}", "", f"`noisette.{part}`", "", "```{eval-rst}"]
        for name in names:
            kind = "autoclass" if inspect.isclass(getattr(module, name)) else None
            kind = kind or ("autofunction" if callable(getattr(module, name)) else "autodata")
            lines += [f".. {kind}:: noisette.{part}.{name}", *(["   :members:"] if kind == "autoclass" else []), ""]
        _write(folder / f"{part}.md", [*lines, "```"])
    about = "Everything that is public, from its docstrings; each example in them is run by the tests."
    _write(folder / "index.md", ["# Reference", "", about, "", "```{toctree}", *PARTS, "```"])


def _write(path: Path, lines: list[str]) -> None:
    text = "\n".join(lines) + "\n"
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def as_written(app, what, name, obj, options, lines) -> None:
    """Docstrings are plain text: paragraphs, examples, and indented blocks, which keep their layout."""
    made = []
    for block in re.split(r"\n{2,}", "\n".join(lines)):
        rows = block.splitlines()
        if block.lstrip().startswith(">>>"):
            made += ["", ".. code-block:: pycon", "", *(f"   {row}" for row in rows)]
        elif any(row.startswith((" ", "|", "│", "├", "└")) for row in rows):
            made += ["", "::", "", *(f"   {row}" for row in rows)]
        else:
            made += ["", *map(_plain, rows)]
    lines[:] = [*made, ""]


def _plain(row: str) -> str:
    """A line without the marks of reStructuredText, except for literals."""
    parts = re.split(r"(`[^`]*`)", row)
    return "".join(
        f"`{part}`" if part.startswith("`") and len(part) > 2 else re.sub(r"([*_|`\\])", r"\\\1", part)
        for part in parts
    )


# Pages that are also read elsewhere


def as_on_a_site(app, page, source) -> None:
    """Links to pages at the root lead to where they are included, and the gallery lists its pages for the menu."""

    def moved(found: re.Match[str]) -> str:
        name = found[1].lower().replace("/readme", "")
        return "](/index.md)" if name == "readme" else f"](/project/{name}.md{found[2] or ''})"

    source[0] = ELSEWHERE.sub(moved, source[0])
    if page == "gallery/README":
        source[0] += "\n```{toctree}\n:hidden:\n:glob:\n\n*\n```\n"


def setup(app) -> None:
    """Connect them."""
    reference()
    app.connect("autodoc-process-docstring", as_written)
    app.connect("source-read", as_on_a_site)
