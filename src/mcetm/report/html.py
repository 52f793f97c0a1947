"""The parts that pages are made of. A page is one file: its styles, scripts and pictures are inside."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Iterable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from mcetm.console import one_line

_ASSETS = resources.files("mcetm.report") / "assets"
_LICENCE = "uPlot, https://github.com/leeoniya/uPlot, Copyright (c) Leon Sorokin, MIT License"
_HINT, _HOW = "<!--how-->", "Drag to zoom, double-click to see all again, click a name to hide it."
"""How to use charts is said once on a page."""


def asset(name: str) -> str:
    """A file that pages contain."""
    return (_ASSETS / name).read_text(encoding="utf-8")


def text(words: str, most: int = 1000) -> str:
    """Words that came from anywhere, on one line, as they stand on a page."""
    return html.escape(one_line(words, most))


def page(title: str, parts: Iterable[str]) -> str:
    """A whole page; the library of charts is in it once, and only where there is a chart."""
    body = "".join(parts).replace(_HINT, f'<span class="live screen">{_HOW}</span>', 1).replace(_HINT, "")
    styles, scripts = asset("page.css"), ""
    if "<figure data-chart" in body:
        styles += asset("uPlot.min.css")
        scripts = f"<script>/* {_LICENCE} */\n{asset('uPlot.iife.min.js')}\n{asset('page.js')}</script>"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{text(title)}</title><style>{styles}</style></head>"
        f"<body>{body}{scripts}</body></html>\n"
    )


def section(heading: str, *parts: str) -> str:
    """Parts under a heading; nothing where they are all empty."""
    return f"<h2>{text(heading)}</h2>{''.join(parts)}" if any(parts) else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, words: int = 1) -> str:
    """Cells as text; the first `words` columns are words and not numbers."""

    def line(cells: Sequence[str], kind: str) -> str:
        named = (
            f"<{kind}{' class=words' if i < words else ''}>{_together(text(cell))}</{kind}>"
            for i, cell in enumerate(cells)
        )
        return f"<tr>{''.join(named)}</tr>"

    top = f"<thead>{line(head, 'th')}</thead>" if any(head) else ""
    return f'<div class="wide"><table>{top}{"".join(line(row, "td") for row in rows)}</table></div>'


def _together(cell: str) -> str:
    """A number and its spread stay on one line, where a page is narrow."""
    return cell.replace(" ± ", "&nbsp;±&nbsp;")


def listed(sentences: Iterable[str]) -> str:
    """Sentences as a list."""
    items = "".join(f"<li>{text(words)}</li>" for words in sentences)
    return f"<ul>{items}</ul>" if items else ""


def folded(heading: str, content: Any) -> str:
    """Plain data that is shown when it is asked for."""
    shown = html.escape(json.dumps(content, indent=1))
    return f"<details><summary>{text(heading)}</summary><pre>{shown}</pre></details>"


def picture(path: Path, words: str) -> str:
    """A drawn picture with what it shows."""
    return f"<figure>{_image(path.with_suffix('.png'), words)}<figcaption>{text(words)}</figcaption></figure>"


def chart(path: Path, words: str, lines: dict[str, Any]) -> str:
    """A chart to zoom and read, and the same drawn for printers and for pages without scripts."""
    data = json.dumps(lines, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return (
        f'<figure data-chart><script type="application/json">{data}</script>'
        f'<div class="live" role="img" aria-label="{text(words)}"></div>'
        f'<div class="still">{_image(path.with_suffix(".svg"), words)}</div>'
        f"<figcaption>{text(words)} {_HINT}</figcaption></figure>"
    )


def _image(path: Path, words: str) -> str:
    kind = {".png": "png", ".svg": "svg+xml"}[path.suffix]
    source = base64.b64encode(path.read_bytes()).decode()
    return f'<img class="drawn" alt="{text(words)}" src="data:image/{kind};base64,{source}">'
