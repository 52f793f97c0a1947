"""Where a policy can be trusted, as a part of a page: strips for columns, a map of two of them, and words.

Drawn as SVG inside the page, so that it is sharp on paper, follows light and dark, and needs no script.
"""

from __future__ import annotations

from collections.abc import Sequence

from mcetm.agents.regions import ColumnParts, Plane, Regions
from mcetm.report.html import text

_FEW_ROWS = 5
"""Parts with fewer states are not judged."""
_TRUSTED = 0.9
"""A part of a column is trusted where so many of its rows are inside."""
_SHARES = ((0.99, "good"), (_TRUSTED, "fair"), (0.5, "poor"), (-1.0, "bad"))
_SHARE_WORDS = ("99 % or more inside", "90 to 99 %", "50 to 90 %", "less than half")
_SHOWN = 10
"""Columns that get a strip; the others are summed up."""
_SIZE, _LEFT, _BOTTOM = 300.0, 68.0, 40.0


def where(regions: Regions) -> str:
    """Words, then the strips beside the map."""
    said = "".join(f"<p>{text(sentence)}</p>" for sentence in words_of(regions))
    blocks = [_strips(regions)]
    if regions.plane is not None:
        blocks.append(_map(regions.plane, regions))
    return f'{said}<div class="where">{"".join(blocks)}</div>'


def words_of(regions: Regions) -> list[str]:
    """What the figure shows, in sentences."""
    said = []
    common = dict(regions.usual).get(20.0)
    if common is not None and not regions.learned:
        said.append(
            f"In {common:.1%} of the log's states what the policy does is more unusual than 1 in 20 rows of "
            "the log; fresh rows of the log are so in 5%."
        )
    doubtful = [(column, bad) for column in regions.columns if (bad := doubted(column))]
    for column, parts in doubtful[:5]:
        ends = [f"{_number(low)} to {_number(high)} ({share:.0%} inside)" for low, high, share in parts[:3]]
        more = " and elsewhere" if len(parts) > 3 else ""
        said.append(f"Be careful where {column.name} is {', or '.join(ends)}{more}.")
    if len(doubtful) > 5:
        said.append(f"{len(doubtful) - 5} more columns have such parts.")
    if not doubtful and regions.columns:
        said.append("No column has a part of its range where the policy is often outside.")
    if regions.plane is not None and regions.plane.worst is not None:
        a_low, a_high, b_low, b_high, share = regions.plane.worst
        first, second = regions.plane.names
        column = regions.columns[0]
        inside = sum(n * share for n, share in zip(column.rows, column.inside, strict=True) if share)
        said.append(
            f"Of the {regions.rows - inside:,.0f} states outside (of {regions.rows:,}), {share:.0%} "
            f"lie where {first} is {_number(a_low)} to {_number(a_high)} and {second} is {_number(b_low)} to "
            f"{_number(b_high)}."
        )
    return said


def doubted(column: ColumnParts) -> list[tuple[float, float, float]]:
    """The stretches of a column where too little is inside: both ends, and the share inside."""
    found: list[list[float]] = []
    joined = False
    for i, (rows, share) in enumerate(zip(column.rows, column.inside, strict=True)):
        if share is None or rows < _FEW_ROWS or share >= _TRUSTED:
            joined = False
            continue
        if joined:
            found[-1][1:] = [column.edges[i + 1], found[-1][2] + rows, found[-1][3] + rows * share]
        else:
            found.append([column.edges[i], column.edges[i + 1], rows, rows * share])
        joined = True
    return [(low, high, good / rows) for low, high, rows, good in found]


def shares(column: ColumnParts) -> tuple[float, float, float]:
    """Shares of the log's range that are trusted, that are not, and that have too few rows to say."""
    count, good, bad = len(column.rows), 0, 0
    for rows, share in zip(column.rows, column.inside, strict=True):
        if rows >= _FEW_ROWS and share is not None:
            good, bad = good + (share >= _TRUSTED), bad + (share < _TRUSTED)
    return good / count, bad / count, (count - good - bad) / count


def _strips(regions: Regions) -> str:
    shown, rest = regions.columns[:_SHOWN], regions.columns[_SHOWN:]
    rows = "".join(_strip_row(column) for column in shown)
    others = ""
    if rest:
        troubled = sum(shares(column)[1] > 0 for column in rest)
        others = f" {len(rest)} more columns matter less; {troubled} of them have parts not to be trusted."
    caption = (
        "Each column of the observation over its range in the log. Colour: in how many states the policy's "
        f"action is inside the trust region. The column that matters most is first. {_states(regions)}"
        f"{others}"
    )
    keys = _keys([*((kind, words) for (_, kind), words in zip(_SHARES, _SHARE_WORDS, strict=True)),
                  ("empty", f"fewer than {_FEW_ROWS} states")])  # fmt: skip
    return (
        '<figure><table class="parts"><thead><tr><th>column</th><th class="words">its range in the log</th>'
        f"<th>range trusted</th></tr></thead>{rows}</table>{keys}"
        f"<figcaption>{text(caption)}</figcaption></figure>"
    )


def _states(regions: Regions) -> str:
    """Which states are counted."""
    which = f"{regions.held_out:,} of held-out episodes"
    if regions.learned:
        which = f"{regions.held_out:,} of the whole log, as hardly any were held out"
    went = regions.rows - regions.held_out
    return f"States: {which}" + (f", and {went:,} of the policy's own episodes." if went else ".")


def _strip_row(column: ColumnParts) -> str:
    good, bad, unknown = shares(column)
    cells = []
    for i, (rows, share) in enumerate(zip(column.rows, column.inside, strict=True)):
        kind = _by_share(share) if rows >= _FEW_ROWS else "empty"
        tip = f"{_number(column.edges[i])} to {_number(column.edges[i + 1])}: " + _tip(
            rows, share, column.one_in[i]
        )
        cells.append(_cell(20.0 * i, 0.0, 20.0, 20.0, kind, tip))
    words = (
        f"{column.name}: {good:.0%} of its range is trusted, {bad:.0%} not, {unknown:.0%} has too few states"
    )
    # One strip may be wide or narrow; its cells stretch with it.
    width = 20 * len(cells)
    strip = (
        f'<svg viewBox="0 0 {width} 20" preserveAspectRatio="none" role="img" aria-label="{text(words)}">'
        f'{"".join(cells)}<rect class="frame" width="{width}" height="20"/></svg>'
    )
    low, high = (f"<span>{_number(column.edges[i])}</span>" for i in (0, -1))
    ends = f'<div class="ends">{low}{high}</div>'
    unsaid = f", {unknown:.0%} unknown" if unknown else ""
    return f"<tr><td>{text(column.name)}</td><td>{strip}{ends}</td><td>{good:.0%}{unsaid}</td></tr>"


def _map(plane: Plane, regions: Regions) -> str:
    limits = _limits(regions.limit)
    side = _SIZE / len(plane.rows)
    cells, went = [], []
    for i, column in enumerate(plane.rows):
        for j, rows in enumerate(column):
            one_in = plane.one_in[i][j]
            left, top = _LEFT + i * side, _SIZE - (j + 1) * side
            share = plane.visited[i][j] if plane.visited is not None else 0.0
            kind = "empty" if one_in is None else next(k for most, k in limits if one_in <= most)
            visits = f"; {share:.1%} of its own steps" if share else ""
            tip = "; ".join(
                f"{name} {_number(edges[at])} to {_number(edges[at + 1])}"
                for name, edges, at in zip(plane.names, plane.edges, (i, j), strict=True)
            )
            if rows or share:
                said = f"{tip}: {_tip(rows, plane.inside[i][j], one_in)}{visits}"
                cells.append(_cell(left, top, side, side, kind, said))
            if share >= 0.0005:
                radius = side * min(0.45, max(0.12, share**0.5 * 2))
                at = f'cx="{left + side / 2:.1f}" cy="{top + side / 2:.1f}"'
                went.append(f'<circle class="went" pointer-events="none" {at} r="{radius:.1f}"/>')
    first, second = plane.names
    words = (
        f"Map of {first} and {second}, the two columns that together say most of how unusual the policy's "
        "pairs are. Colour: how unusual they typically are, as one in so many rows of the log."
    )
    if went:
        words += " Circles: where the policy went in its own episodes, larger where it was more often."
    keys = _keys(
        [*zip(("good", "fair", "poor", "bad"), _limit_words(limits), strict=True), ("empty", "no state")]
    )
    height, width = _SIZE + _BOTTOM, _SIZE + _LEFT + 8
    return (
        f'<figure><svg class="plane" viewBox="0 -8 {width:g} {height + 8:g}" role="img" '
        f'aria-label="{text(words)}"><rect class="frame" x="{_LEFT:g}" width="{_SIZE:g}" '
        f'height="{_SIZE:g}"/>{"".join(cells)}{"".join(went)}{_axes(plane)}</svg>{keys}'
        f"<figcaption>{text(words)}</figcaption></figure>"
    )


def _axes(plane: Plane) -> str:
    found = []
    (first, second), (across, up) = plane.names, plane.edges
    scale = lambda edges: (edges[0], _middle(edges), edges[-1])  # noqa: E731
    for share, anchor, right, top in zip(
        (0.0, 0.5, 1.0), ("start", "middle", "end"), scale(across), scale(up), strict=True
    ):
        x = _LEFT + share * _SIZE
        found.append(f'<text x="{x:g}" y="{_SIZE + 15:g}" text-anchor="{anchor}">{_number(right)}</text>')
        y = _SIZE * (1 - share) + (4 if share == 0.5 else 10 * share)
        found.append(f'<text x="{_LEFT - 5:g}" y="{y:g}" text-anchor="end">{_number(top)}</text>')
    middle = _SIZE / 2
    found.append(
        f'<text x="{_LEFT + middle:g}" y="{_SIZE + 33:g}" text-anchor="middle">{text(first, 40)}</text>'
    )
    turned = f'transform="translate(11 {middle:g}) rotate(-90)"'
    found.append(f'<text {turned} text-anchor="middle">{text(second, 40)}</text>')
    return "".join(found)


def _limits(limit: float) -> tuple[tuple[float, str], ...]:
    return (limit / 20, "good"), (limit / 4, "fair"), (limit, "poor"), (float("inf"), "bad")


def _limit_words(limits: Sequence[tuple[float, str]]) -> list[str]:
    ordinary, rare, limit = (f"{most:,.0f}" for most, _ in limits[:3])
    return [
        f"up to 1 in {ordinary} rows",
        f"1 in {ordinary} to {rare}",
        f"1 in {rare} to {limit}",
        f"rarer than 1 in {limit}: outside",
    ]


def _by_share(share: float | None) -> str:
    return "empty" if share is None else next(kind for least, kind in _SHARES if share >= least)


def _tip(rows: int, share: float | None, one_in: float | None) -> str:
    if share is None or one_in is None:
        return "no state"
    return f"{share:.0%} of {rows:,} states inside, typically as unusual as 1 in {one_in:,.0f}"


def _cell(x: float, y: float, width: float, height: float, kind: str, tip: str) -> str:
    """A rectangle that says what it stands for when it is pointed at; what is outside is also hatched."""
    at = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    lines = ""
    if kind in ("poor", "bad"):
        lines = f"M{x:.1f} {y + height:.1f}l{width:.1f} {-height:.1f}"
    if kind == "bad":
        lines += f"M{x:.1f} {y:.1f}l{width:.1f} {height:.1f}"
    hatch = f'<path class="hatch" pointer-events="none" d="{lines}"/>' if lines else ""
    fill = ' pointer-events="all"' if kind == "empty" else ""
    return f'<rect class="cell {kind}"{fill} {at}><title>{text(tip)}</title></rect>{hatch}'


def _keys(entries: Sequence[tuple[str, str]]) -> str:
    items = []
    for kind, words in entries:
        frame = '<rect class="frame" width="16" height="16"/>'
        drawn = frame if kind == "empty" else _cell(0, 0, 16, 16, kind, words)
        items.append(f'<li><svg viewBox="0 0 16 16" aria-hidden="true">{drawn}</svg>{text(words)}</li>')
    return f'<ul class="keys">{"".join(items)}</ul>'


def _number(value: float) -> str:
    """A place on a scale, short; no negative zero."""
    return f"{round(value, 12) + 0.0:.3g}" if abs(value) < 1e4 else f"{value:,.0f}"


def _middle(edges: Sequence[float]) -> float:
    """The middle of a scale; 0 where it is 0 but for rounding."""
    middle = (edges[0] + edges[-1]) / 2
    return 0.0 if abs(middle) < 1e-3 * (edges[-1] - edges[0]) else middle
