"""Pages link to files outside docs/: measurements, sources, the security policy. The site takes them along.

A Markdown file becomes a page below `project/`, any other file a download below `files/`, and a folder a page
that lists its files. So every link works on the site as in a checkout, wherever the project is hosted.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

_LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")


def place_of(path: PurePosixPath) -> str:
    """Where the site has a file of the repository, from its root."""
    if path.parts[0] == "docs":
        return str(path.relative_to("docs"))
    if path.suffix in (".md", ""):
        return f"project/{path.stem.lower()}.md"
    return f"files/{path}"


def _outside(root: Path, page: str, target: str) -> PurePosixPath | None:
    """The file outside docs/ that a page's link leads to, from the repository's root."""
    if re.match(r"\w+:|/", target):
        return None
    path = PurePosixPath(os.path.normpath(PurePosixPath("docs", page).parent / target))
    inside = path.parts[0] in ("docs", "..")
    return None if inside or not (root / path).exists() else path


@event_priority(100)  # before the navigation is made
def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what pages link to, and what those link to in turn."""
    root = Path(config.config_file_path).parent
    ahead = [(file.src_uri, file.content_string) for file in files.documentation_pages()]
    while ahead:
        page, text = ahead.pop()
        for _, target, *_ in _LINK.findall(text):
            path = _outside(root, page, target)
            if path is None or place_of(path) in files.src_uris:
                continue
            if place_of(path).endswith(".md"):
                inner = _rebased(path, (root / path).read_text()) if path.suffix else _listed(root, path)
                files.append(File.generated(config, place_of(path), content=inner))
                ahead.append((place_of(path), inner))
            else:
                files.append(File.generated(config, place_of(path), abs_src_path=str(root / path)))
    return files


def _listed(root: Path, path: PurePosixPath) -> str:
    """A page with links to the files of a folder."""
    names = sorted(file.name for file in (root / path).iterdir() if file.is_file())
    return "\n".join([f"# {path}\n", *(f"- [{name}](../../{path}/{name})" for name in names)])


def _rebased(path: PurePosixPath, text: str) -> str:
    """A page that moves from the repository's root to docs/project/ keeps its links."""

    def rebase(match: re.Match[str]) -> str:
        before, target, anchor, after = match.groups()
        if re.match(r"\w+:|/", target):
            return match[0]
        there = os.path.relpath(path.parent / target, "docs/project")
        return f"{before}{there}{anchor or ''}{after}"

    return _LINK.sub(rebase, text)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to where the site has the file."""
    root = Path(config.config_file_path).parent

    def lead(match: re.Match[str]) -> str:
        before, target, anchor, after = match.groups()
        path = _outside(root, page.file.src_uri, target)
        if path is None:
            return match[0]
        there = os.path.relpath(place_of(path), PurePosixPath(page.file.src_uri).parent)
        return f"{before}{there}{anchor or ''}{after}"

    return _LINK.sub(lead, markdown)
