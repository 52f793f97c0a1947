"""Reports of runs with one thing wrong: of one run, of several, and the index of a folder."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hostile_trial.runs import DAMAGE
from hostile_trial.trial import Case, Place, command

GROUP = "report"
_LINES: dict[str, tuple[str, ...]] = {
    "one": ("report", "run"),
    "several": ("report", "run", "{m}/bc", "--out", "page"),
    "index": ("report", "."),
    "compared": ("compare", "run", "{m}/bc", "--out", "drawn"),
}
_FILES = ("config.json", "results.json", "report.json", "metrics.jsonl", "card.json", "environment.json",
          "estimates/seed-0-fqe.json", "policy/seed-0/policy.json")  # fmt: skip


def _copy(place: Place, file: str) -> Path:
    """A run that has this file."""
    run = place.copy("bc" if file.startswith("estimates") else "mopo", "run")
    return run / file


def damaged() -> Iterator[Case]:
    """Every file with every damage, for one of the pages in turn."""
    for f, file in enumerate(_FILES):
        for d, (name, damage) in enumerate(DAMAGE.items()):
            line = list(_LINES)[(f + d) % len(_LINES)]

            def prepare(place: Place, file: str = file, damage: Any = damage) -> None:
                damage(_copy(place, file))

            yield command(
                GROUP,
                f"{line}: {file}: {name}",
                *_LINES[line],
                prepare=prepare,
                words=("run", file),
                expect="either",
            )


_VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1e308, -1e308, 10**40, "", "x" * 50_000, "<script>alert(1)</script>", "</script><b>", "\x1b[31m", "[/red]", [], {}, [[]], [None], [1, [2]], {"a": {}}, 1e-320, "javascript:alert(1)",
)  # fmt: skip


def _leaves(content: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inner = (
        list(content.items())
        if isinstance(content, dict)
        else list(enumerate(content[:2]))
        if isinstance(content, list)
        else []
    )
    for name, value in inner:
        yield (*place, name)
        yield from _leaves(value, (*place, name))


def fields(material: Path) -> Iterator[Case]:
    """One value of a file is another one."""
    number = 0
    for file in ("report.json", "results.json", "environment.json", "card.json", "estimates/seed-0-fqe.json"):
        source = material / ("bc" if file.startswith("estimates") else "mopo") / file
        if not source.is_file():
            continue
        places = list(_leaves(json.loads(source.read_text())))
        for path in places[:: max(1, len(places) // 30)]:
            number += 1
            value = _VALUES[number * 8 % len(_VALUES)]
            line = list(_LINES)[number % 3]

            def prepare(
                place: Place, file: str = file, path: tuple[Any, ...] = path, value: Any = value
            ) -> None:
                where = _copy(place, file)
                content = inner = json.loads(where.read_text())
                for part in path[:-1]:
                    inner = inner[part]
                inner[path[-1]] = value
                where.write_text(json.dumps(content))

            yield command(
                GROUP,
                f"{line}: {file}: {'.'.join(map(str, path))} = {value!r:.30}",
                *_LINES[line],
                prepare=prepare,
                words=("run", file),
                expect="either",
            )


def shapes() -> Iterator[Case]:
    """Folders that are no runs, and places where no page can be."""

    def run(change: Callable[[Path], object]) -> Callable[[Place], None]:
        def prepare(place: Place) -> None:
            change(place.copy("bc", "run"))

        return prepare

    made: dict[str, tuple[tuple[str, ...], Callable[[Place], object]]] = {
        "nothing": (("report", "nowhere"), lambda p: None), "no names": (("report",), lambda p: None), "empty name": (("report", ""), lambda p: None), "a file": (("report", "x"), lambda p: p.write("x", "y")), "a pipe": (("report", "x"), lambda p: os.mkfifo(p.folder / "x")), "a loop": (("report", "x"), lambda p: (p.folder / "x").symlink_to("x")),
        "a device": (("report", "/dev/null"), lambda p: None), "NUL": (("report", "a\0"), lambda p: None), "not UTF-8": (("report", "\udcff"), lambda p: None), "endless": (("report", "x" * 5000), lambda p: None), "an empty folder": (("report", "x"), lambda p: (p.folder / "x").mkdir()), "a log": (("report", "{m}/log.npz"), lambda p: None), "the same twice": (("report", "{m}/bc", "{m}/bc"), lambda p: None),
        "the same by another name": (("report", "{m}/bc", "run"), lambda p: (p.folder / "run").symlink_to(p.material / "bc")), "one and nothing": (("report", "{m}/bc", "nowhere"), lambda p: None), "one and a file": (("report", "{m}/bc", "{m}/log.npz"), lambda p: None), "--out of one": (("report", "run", "--out", "x"), run(lambda r: None)), "--out a file": (("report", "{m}/bc", "{m}/mopo", "--out", "x"), lambda p: p.write("x", "y")),
        "--out a pipe": (("report", "{m}/bc", "{m}/mopo", "--out", "x"), lambda p: os.mkfifo(p.folder / "x")), "--out a loop": (("report", "{m}/bc", "{m}/mopo", "--out", "x"), lambda p: (p.folder / "x").symlink_to("x")), "--out a device": (("report", "{m}/bc", "{m}/mopo", "--out", "/dev/full"), lambda p: None), "--out NUL": (("report", "{m}/bc", "{m}/mopo", "--out", "a\0"), lambda p: None),
        "--out endless": (("report", "{m}/bc", "{m}/mopo", "--out", "x" * 300), lambda p: None), "--out empty": (("report", "{m}/bc", "{m}/mopo", "--out"), lambda p: None), "the page is a folder": (("report", "run"), run(lambda r: ((r / "report.html").unlink(), (r / "report.html").mkdir()))), "the page is a pipe": (("report", "run"), run(lambda r: ((r / "report.html").unlink(), os.mkfifo(r / "report.html")))),
        "the page is full": (("report", "run"), run(lambda r: ((r / "report.html").unlink(), (r / "report.html").symlink_to("/dev/full")))), "figures a file": (("report", "run"), run(lambda r: (shutil.rmtree(r / "figures", ignore_errors=True), (r / "figures").write_text("x")))), "the log is gone": (("report", "run"), run(lambda r: (_moved(r), (r / "report.json").unlink(missing_ok=True)))),
        "the index is a folder": (("report", "."), lambda p: (p.copy("bc", "run"), (p.folder / "index.html").mkdir())), "the index is a pipe": (("report", "."), lambda p: (p.copy("bc", "run"), os.mkfifo(p.folder / "index.html"))), "the index is full": (("report", "."), lambda p: (p.copy("bc", "run"), (p.folder / "index.html").symlink_to("/dev/full"))), "an index of nothing": (("report", "."), lambda p: p.write("a/b/config.json", "{}")),
        "an index of pipes": (("report", "."), lambda p: ((p.folder / "run").mkdir(), os.mkfifo(p.folder / "run" / "config.json"))), "an index of markup": (("report", "."), lambda p: p.copy("bc", "<script>alert(1)<script>")), "an index of escapes": (("report", "."), lambda p: p.copy("bc", "\x1b[2J")), "an index of bytes": (("report", "."), lambda p: p.copy("bc", "\udcff")), "an option": (("report", "{m}/bc", "--json"), lambda p: None),
        "runs of bytes": (("report", "\udcff", "{m}/mopo", "--out", "page"), lambda p: p.copy("bc", "\udcff")), "a run of escapes": (("report", "\x1b[2J", "{m}/mopo", "--out", "page"), lambda p: p.copy("bc", "\x1b[2J")), "unfinished": (("report", "run"), run(lambda r: (r / "results.json").unlink())), "no metrics": (("report", "run"), run(lambda r: (r / "metrics.jsonl").unlink())),
        "no policies": (("report", "run"), run(lambda r: shutil.rmtree(r / "policy"))), "estimates a file": (("report", "run"), run(lambda r: (shutil.rmtree(r / "estimates", ignore_errors=True), (r / "estimates").write_text("x")))), "estimates of a thousand seeds": (("report", "run"), run(lambda r: [shutil.copy(r / "estimates" / "seed-0-fqe.json", r / "estimates" / f"seed-{i}-fqe.json") for i in range(2, 300)])),
    }  # fmt: skip
    either = {"an index of markup", "an index of escapes", "an index of bytes", "no metrics", "no policies", "estimates a file", "estimates of a thousand seeds", "runs of bytes",
              "a run of escapes", "figures a file", "the log is gone", "--out empty", "an index of pipes"}  # fmt: skip
    for name, (line, prepare) in made.items():
        yield command(
            GROUP, f"shape: {name}", *line, prepare=prepare, expect="either" if name in either else "refused"
        )


def _moved(run: Path) -> None:
    content = json.loads((run / "config.json").read_text())
    content["dataset"] = "/nowhere/log.npz"
    (run / "config.json").write_text(json.dumps(content))


def cases(material: Path) -> Iterator[Case]:
    """All of them."""
    yield from damaged()
    yield from fields(material)
    yield from shapes()
