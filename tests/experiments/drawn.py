"""What a reader finds written in a figure."""

import re
from html import unescape
from pathlib import Path


def words_in(path: Path) -> set[str]:
    """Every label, title and entry of a legend in a figure that was written as PNG and SVG."""
    assert path.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    texts = re.findall(r"<text[^>]*>(.*?)</text>", path.with_suffix(".svg").read_text(), re.DOTALL)
    return {unescape(re.sub(r"<[^>]*>|\s+", " ", text)).strip() for text in texts}
