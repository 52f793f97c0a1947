"""How a text table is written: its encoding, what separates its cells, and its decimals.

Whatever is recognised is said. What two readings fit is refused rather than guessed: `1,234` may be over a
thousand or a little more than one.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Literal

from mcetm.errors import UserError
from mcetm.formats import delimiter_of

Decimal = Literal[".", ","]
_SAMPLE = 1 << 16
_LINES = 50
_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_EXCEL = re.compile(r'^"?sep=(.)"?\r?\n')
_NUMBER = r"[+-]?(?:{})(?:[eE][+-]?\d+)?"
_SPACED = re.compile("[+-]?\\d{1,3}(?:[ \u00a0\u202f'\u2019]\\d{3})+(?:[.,]\\d*)?")
_UNCLEAR = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}")


@dataclass(frozen=True)
class Dialect:
    """How one file is written."""

    encoding: str = "utf-8-sig"
    delimiter: str = ","
    decimal: Decimal = "."
    skip: int = 0
    """Lines before the header."""
    header: tuple[str, ...] = ()
    body: int = 1
    """Lines down to the first row."""

    @property
    def said(self) -> str | None:
        """What is not usual about it, for the card."""
        words = []
        if self.delimiter != ",":
            words.append(f"cells separated by {_DELIMITERS.get(self.delimiter, repr(self.delimiter))}")
        if self.decimal == ",":
            words.append("decimal commas")
        if self.encoding != "utf-8-sig":
            words.append(f"text in {self.encoding}")
        return f"read with {', '.join(words)}" if words else None

    def rows(self, file: IO[str]) -> Iterator[list[str]]:
        """The cells of each line below the header, empty lines left out."""
        for _ in range(self.skip):
            next(file, "")
        lines = csv.reader(file, delimiter=self.delimiter)
        next(lines, [])
        yield from filter(None, lines)


def recognise(path: Path) -> Dialect:
    """How a file is written, judged by its beginning; its decimals only where the cells are read."""
    with path.open("rb") as file:
        head = file.read(_SAMPLE)
    encoding = _encoding(path, head)
    # The last line may be cut.
    text = head.decode(encoding, errors="ignore")
    if len(head) == _SAMPLE:
        text = text[: text.rfind("\n") + 1] or text
    skip = 0
    usual = delimiter_of(path)
    if match := _EXCEL.match(text):
        usual, skip, text = match[1], 1, text[match.end() :]
        delimiter = usual
    else:
        delimiter = _delimiter(text, usual)
    try:
        with path.open(newline="", encoding=encoding) as file:
            for _ in range(skip):
                next(file)
            reader = csv.reader(file, delimiter=delimiter)
            header = next(reader, [])
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path} is not a table of text in UTF-8: {error}.") from None
    body = skip + reader.line_num  # a quoted name can take several lines
    return Dialect(encoding, delimiter, ".", skip, tuple(name.strip() for name in header), body)


def _encoding(path: Path, head: bytes) -> str:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 4:  # not just a letter that the sample cuts
            return "cp1252" if _decodes(head, "cp1252") else "utf-8-sig"
    return "utf-8-sig"


def _decodes(head: bytes, encoding: str) -> bool:
    try:
        return b"\0" not in head and bool(head.decode(encoding))
    except UnicodeDecodeError:
        return False


def _delimiter(text: str, usual: str) -> str:
    """What divides all first lines into as many cells as the header, and the more the better."""
    best, most = usual, 1
    widest, cells = usual, 1
    for delimiter in dict.fromkeys([usual, *_DELIMITERS]):
        try:
            rows = [cells for cells in _first(csv.reader(text.splitlines(), delimiter=delimiter)) if cells]
        except csv.Error:
            continue
        width = len(rows[0]) if rows else 0
        if width > most and all(len(row) == width for row in rows):
            best, most = delimiter, width
        if width > cells:
            widest, cells = delimiter, width
    # Where no division is even, a row is faulty; the header knows best.
    return best if most > 1 else widest


def _first(rows: Iterable[list[str]]) -> Iterator[list[str]]:
    for _, row in zip(range(_LINES), rows, strict=False):
        yield row


def number(cell: str, decimal: Decimal) -> float:
    """A number as such a file writes it; thousands may be in groups where no other reading is possible."""
    text = cell.strip().replace("\N{MINUS SIGN}", "-")
    if _SPACED.fullmatch(text):
        text = re.sub("[ \u00a0\u202f'\u2019]", "", text)
    group = "," if decimal == "." else "."
    if group in text and re.fullmatch(rf"[+-]?\d{{1,3}}(?:\{group}\d{{3}})+(?:\{decimal}\d*)?", text):
        text = text.replace(group, "")
    if decimal == ",":
        if "." in text:
            raise ValueError(cell)
        text = text.replace(",", ".")
    if not text.isascii() or "_" in text:  # Python itself takes `1_000` and digits of any script
        raise ValueError(cell)
    return float(text)


def decimal_of(cells: Iterable[str]) -> tuple[Decimal, str | None]:
    """The decimal sign of numbers, and one of which two readings fit where nothing settles it."""
    signs: set[Any] = set()
    unclear = None
    for cell in cells:
        text = cell.strip()
        if "," not in text and "." not in text:
            continue
        if _UNCLEAR.fullmatch(text):
            unclear = unclear or (text if "," in text else None)
        elif sign := _sign(text):
            signs.add(sign)
    if signs == {","}:
        return ",", None
    return ".", None if signs else unclear


def _sign(text: str) -> Decimal | None:
    """The decimal sign of a number that can be read in one way only; None for what is no number."""
    for sign, group in ((",", "."), (".", ",")):
        grouped = rf"\d{{1,3}}(?:\{group}\d{{3}})"
        plain = rf"\d*\{sign}\d+|\d+\{sign}|{grouped}+\{sign}\d*|{grouped}{{2,}}"
        if re.fullmatch(_NUMBER.format(plain), text):
            return "," if sign == "," else "."
    return None


def with_decimal(dialect: Dialect, decimal: Decimal) -> Dialect:
    """The same with another decimal sign."""
    return replace(dialect, decimal=decimal)
