r"""Formulas become MathML while the site is built: browsers draw it themselves, without scripts or a network.

`$...$` stands in a line and `$$...$$` on its own, as in every Markdown with formulas.
"""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert

_FORMULA = re.compile(r'<(span|div) class="arithmatex">\s*(?:\\\((.*?)\\\)|\\\[(.*?)\\\])\s*</\1>', re.DOTALL)


def on_page_content(content: str, **_: Any) -> str:
    """Replace what `pymdownx.arithmatex` has marked."""

    def drawn(match: re.Match[str]) -> str:
        tag, inline, block = match.groups()
        latex = html.unescape(inline if block is None else block).strip()
        formula = convert(latex, display="inline" if block is None else "block")
        return f'<{tag} class="formula">{formula}</{tag}>'

    return _FORMULA.sub(drawn, content)
