"""The look of a report: system fonts, a few colours that differ with every kind of colour vision.

Charts bring the colours of their theme; on a dark screen the page replaces each by its counterpart.
"""

from noisette.charts.theme import DARK

__all__ = ["STYLE"]

_PAGE = """
:root { color-scheme: light dark; --paper: #faf8f5; --card: #ffffff; --ink: #24211d; --soft: #6b655d; --rule: #e5e0d8;
  --blue: #0068a8; --orange: #b84a00; --code: #f4f1ec; --nut: #8a5a2b; }
@media (prefers-color-scheme: dark) { :root { --paper: #191714; --card: #23201c; --ink: #ece7df; --soft: #a9a196;
  --rule: #3a352e; --blue: #66b8ec; --orange: #f59a4c; --code: #1c1916; --nut: #d9a871; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 system-ui, -apple-system, "Segoe UI",
  "DejaVu Sans", sans-serif; -webkit-text-size-adjust: 100%; }
main { max-width: 64rem; margin: 0 auto; padding: 2rem 1rem 4rem; }
header { border-top: 6px solid var(--nut); padding-top: 1rem; }
h1 { font-size: 2rem; line-height: 1.2; margin: 0.2rem 0 0.6rem; }
h2 { font-size: 1.2rem; margin: 0 0 0.3rem; }
p { margin: 0.4rem 0; max-width: 46rem; }
section { background: var(--card); border: 1px solid var(--rule); border-radius: 10px;
  padding: 1.1rem 1.25rem; margin: 1.1rem 0; }
.sides { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr));
  gap: 0.5rem 1.75rem; align-items: start; }
.sides > * { min-width: 0; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 13rem), 1fr));
  gap: 0.75rem; margin: 1.25rem 0; }
.tiles div { background: var(--card); border: 1px solid var(--rule); border-radius: 10px; padding: 0.8rem 1rem; }
.tiles strong { display: block; font-size: 1.45rem; line-height: 1.25; color: var(--nut); }
.tiles span { color: var(--soft); font-size: 0.88rem; line-height: 1.35; display: block; }
.scroll { overflow-x: auto; margin: 0.5rem 0; }
table { border-collapse: collapse; font-size: 0.9rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 0.22rem 1.1rem 0.22rem 0; white-space: nowrap;
  border-bottom: 1px solid var(--rule); }
th { color: var(--soft); font-weight: 600; }
.number { text-align: right; }
.half, .truth, .note { color: var(--soft); }
.note { font-size: 0.88rem; overflow-wrap: anywhere; }
pre { background: var(--code); border-radius: 6px; padding: 0.6rem 0.8rem; white-space: pre-wrap;
  font-size: 0.85rem; line-height: 1.45; margin: 0.6rem 0; }
code { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
details { margin-top: 0.5rem; font-size: 0.9rem; }
summary { cursor: pointer; color: var(--blue); }
.said { border-left: 4px solid var(--orange); padding: 0.1rem 0 0.1rem 0.8rem; }
figure { margin: 0.5rem 0; }
figcaption { color: var(--soft); font-size: 0.82rem; }
svg { display: block; max-width: 100%; height: auto; }
"""

_REPLACED = "\n".join(
    f'  svg [{ink}="{light}"] {{ {ink}: {dark}; }}' for light, dark in DARK.items() for ink in ("fill", "stroke")
)
STYLE = f"{_PAGE}@media (prefers-color-scheme: dark) {{\n{_REPLACED}\n}}\n"
