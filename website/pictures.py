"""Wide pictures can be scrolled on a phone, where shrinking them would leave their words unreadable."""

from __future__ import annotations

import re
import struct
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

WIDE = 1000
"""Pixels; our figures have 150 to an inch."""
_PICTURE = re.compile(r'<img ([^>]*?src="([^":]+\.png)"[^>]*)>')


def on_page_content(content: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Mark the pictures that are wide; `site.css` does the rest."""
    here = (Path(config.docs_dir) / page.file.src_uri).parent

    def marked(match: re.Match[str]) -> str:
        path = here / match[2]
        wide = path.is_file() and width_of(path) > WIDE
        return f'<span class="wide"><img {match[1]}></span>' if wide else match[0]

    return _PICTURE.sub(marked, content)


def width_of(path: Path) -> int:
    """Of a PNG, in pixels, from its header."""
    with path.open("rb") as file:
        return struct.unpack(">I", file.read(20)[16:])[0]
