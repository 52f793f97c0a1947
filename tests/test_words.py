"""Pages for readers are in plain words: short paragraphs, short sentences, first a line for whom they are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
KINDS = ("tutorials", "how-to", "reference", "explanation")
PAGES = [DOCS / "index.md", *(page for kind in KINDS for page in sorted((DOCS / kind).rglob("*.md")))]
LONGEST_PARAGRAPH = 120
LONGEST_SENTENCE = 40
"""Words; 25 is what we aim at, and a path or a formula in code may count as several."""
MEAN_SENTENCE = 16.0
ITEM = re.compile(r"^\s*(?:[-*]|\d+\.) ", re.MULTILINE)
FOR_WHOM = re.compile(r"\A# .+\n\n\*For [^*]+[.?]\s(Afterwards|Here)\s[^*]+\.\*\n")


def paragraphs(page: Path) -> list[str]:
    """Running text, and lists as they stand: what no blank line divides is one block to the eye.

    Code, tables, headings and figures are left out.
    """
    text = re.sub(r"^( *)```.*?^\1```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^\$\$.*?\$\$$", "", text, flags=re.DOTALL | re.MULTILINE)
    blocks = [block for block in re.split(r"\n\s*\n", text) if block.strip()]
    running = [block for block in blocks if not re.match(r"    |\||#|!\[|<|---", block)]
    return [re.sub(r"\]\([^)]*\)", "]", block) for block in running]


def sentences(paragraph: str) -> list[int]:
    """The words of each sentence; items of a list are sentences of their own."""
    items = ITEM.split(paragraph)
    ends = r"(?<=[.!?:;])[*_)\"]*\s+(?=\W*[A-Z`0-9α-ω])"
    parts = [part for item in items for part in re.split(ends, " ".join(item.split())) if part]
    return [len(part.split()) for part in parts]


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: str(page.relative_to(ROOT)))
def test_paragraphs_and_sentences_are_short(page: Path) -> None:
    lengths = []
    for paragraph in paragraphs(page):
        assert len(paragraph.split()) <= LONGEST_PARAGRAPH, paragraph
        lengths += sentences(paragraph)
        assert max(lengths) <= LONGEST_SENTENCE, paragraph
    assert sum(lengths) / len(lengths) <= MEAN_SENTENCE


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_says_first_for_whom_it_is_and_what_for(page: Path) -> None:
    assert FOR_WHOM.match(page.read_text()), "begin with: *For people who … . Afterwards …*"


def test_every_figure_is_told_in_words() -> None:
    found = [
        (page.name, words)
        for page in [ROOT / "README.md", *DOCS.rglob("*.md")]
        for words in re.findall(r"!\[([^\]]*)\]\(", page.read_text())
    ]
    assert found
    assert [page for page, words in found if len(words.split()) < 3] == []


def _pictures_of(page: Path) -> set[str]:
    """The pictures that a page shows and says how to draw."""
    text = page.read_text()
    drawn = set(re.findall(r"`python benchmarks/method\.py (\w+)`", text))
    return drawn & set(re.findall(r"!\[[^\]]+\]\(\.\./figures/(\w+)\.png\)", text))


@pytest.mark.parametrize(
    "page",
    [p for kind in ("models", "algorithms") for p in (DOCS / "explanation" / kind).glob("[a-z]*.md")],
    ids=lambda page: str(page.relative_to(DOCS)),
)
def test_a_model_or_an_algorithm_has_a_picture_of_its_own(page: Path) -> None:
    mine = _pictures_of(page)
    others = [_pictures_of(other) for other in page.parent.glob("*.md") if other != page]
    assert mine - set().union(*others)
    known = re.findall(r'^    "(\w+)": ', (ROOT / "benchmarks" / "method.py").read_text(), re.MULTILINE)
    for name in mine:
        assert name in known
        assert (DOCS / "explanation" / "figures" / f"{name}.png").stat().st_size < 150_000
        after = page.read_text().split(f"benchmarks/method.py {name}`")[1]
        assert "\nReading: " in after.split("\n## ")[0], f"say how to read {name}"
