"""What becomes of hundreds of bad inputs: refusals, tracebacks, silent acceptances, hangs, by group.

    PYTHONPATH=benchmarks python -m hostile_trial [--only GROUPS] [--every N] [--keep FILE] [--record]

The cases are independent of `tests/hostile`: no file of it is used. Cases in which either outcome is right
are looked at for tracebacks, hangs and numbers that are none.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

SETTINGS = "MCETM_CACHE", "MCETM_CONFIG", "MCETM_COMPILATION_CACHE"
FOUND = (
    "refused",
    "fine",
    "weak",
    "accepted",
    "refused although good",
    "left behind",
    "not finite",
    "traceback",
    "hang",
    "crash",
    "broken case",
)


def main() -> None:
    """Make the material, try everything, count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", default="", help="cases whose group begins with one of these words, a|b|c")
    parser.add_argument("--every", type=int, default=1, help="one of so many cases")
    parser.add_argument("--first", type=int, default=0, help="which of them")
    parser.add_argument(
        "--keep", type=Path, help="write every outcome to this file, and go on with those that it has"
    )
    parser.add_argument("--again", type=Path, help="only the cases that this file has, of an earlier --keep")
    parser.add_argument("--material", type=Path, help="keep the material here for the next time")
    options, _ = parser.parse_known_args()  # `record` knows one more
    keep = None if options.keep is None else options.keep.resolve()
    place = Path(tempfile.mkdtemp(prefix="hostile-"))
    for name in SETTINGS:
        os.environ[name] = str(place / name.lower())
    if options.material is not None:
        os.environ["MCETM_COMPILATION_CACHE"] = str(options.material.resolve().with_suffix(".compiled"))
    os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "true"
    from hostile_trial import (
        arrays,
        clumsy,
        containers,
        kept,
        library,
        material,
        objects,
        pages,
        plans,
        runs,
        settings,
        stores,
        sweeps,
        texts,
        typed,
    )  # fmt: skip
    from hostile_trial.trial import try_all
    from record import record

    made = (options.material or place / "material").resolve()
    if not made.is_dir():
        maker = os.fork()  # what computes here could not be forked later
        if maker == 0:
            code = 1
            try:
                material.make_material(made)
                code = 0
            finally:
                os._exit(code)
        if os.waitpid(maker, 0)[1] != 0:
            sys.exit("the material could not be made")
    for name in (
        "pipeline.train",
        "pipeline.estimate",
        "pipeline.compare",
        "report.page",
        "report.estimates",
    ):
        importlib.import_module(f"mcetm.{name}")
    sources = (
        settings, texts, arrays, stores, typed, plans, library, kept, sweeps, clumsy, containers, objects,
    )  # fmt: skip
    cases = [*runs.cases(made), *pages.cases(made), *(case for source in sources for case in source.cases())]
    cases = [case for case in cases if case.group.startswith(tuple(options.only.split("|")))]
    if options.again is not None:
        known = {(found["group"], found["name"]) for found in map(json.loads, options.again.open())}
        cases = [case for case in cases if (case.group, case.name) in known]
    random.Random(0).shuffle(cases)  # one of N is then of every kind
    cases = cases[options.first :: options.every]
    counts: dict[str, Counter[str]] = {}
    if keep is not None and keep.exists():  # of a trial that was stopped
        done = [json.loads(line) for line in keep.read_text().splitlines()]
        for found in done:
            counts.setdefault(found["group"].split(":")[0], Counter())[found["is"]] += 1
        known = {(found["group"], found["name"]) for found in done}
        cases = [case for case in cases if (case.group, case.name) not in known]
    began = time.monotonic()
    odd = []
    for number, found in enumerate(try_all(cases, place / "case", made)):
        counts.setdefault(found["group"].split(":")[0], Counter())[found["is"]] += 1
        if found["is"] not in ("refused", "fine"):
            odd.append(found)
            print(f"\r{found['is']}: {found['group']}: {found['name']}", file=sys.stderr)
        if keep is not None and found["is"] != "":
            with keep.open("a") as file:
                file.write(json.dumps(found) + "\n")
        print(f"\r{number + 1} of {len(cases)}, {time.monotonic() - began:.0f} s", end="", file=sys.stderr)
    total = sum(counts.values(), Counter())
    rows = {**counts, "all": total}
    record(
        "hostile_trial",
        {
            "cases": len(cases),
            "groups": {
                name: {"cases": sum(row.values()), **{k: row[k] for k in FOUND if row[k]}}
                for name, row in rows.items()
            },
        },
    )
    shutil.rmtree(place, ignore_errors=True)
    sys.exit(1 if odd else 0)


if __name__ == "__main__":
    main()
