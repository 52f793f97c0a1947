"""The reference is generated from the library while the site is built: nothing of it can be out of date.

Three parts: names in Python, settings, and the command line. The last two ask the code that answers
`mcetm settings` and `mcetm --help`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from command_pages import command_pages
from name_pages import name_pages
from setting_pages import setting_pages


@event_priority(90)  # before the navigation is made
def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages below `reference/`."""
    for name, text in {**name_pages(), **setting_pages(), **command_pages()}.items():
        files.append(File.generated(config, f"reference/{name}", content=text))
    return files
