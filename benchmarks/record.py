"""Print a benchmark's result and, with `--record`, keep it with all that is needed to read it later."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from mcetm.pipeline.environment import describe_host

RESULTS = Path(__file__).parent / "results"


def record(name: str, result: dict[str, Any], *, case: str | None = None) -> None:
    """Print; write `results/NAME[-CASE]-MACHINE.json` where `--record` is among the arguments.

    The machine is named by its accelerator where the result has one, else by its cores.
    """
    command = " ".join(["python", f"benchmarks/{name}.py", *sys.argv[1:]])
    content = {"benchmark": name, "command": command, **result, **describe_host()}
    where = content.get("device", "cpu").split()[-1].lower()
    where = f"{content['cores']}-cores" if where == "cpu" else where
    text = json.dumps(content, indent=1)
    print(text)
    if "--record" in sys.argv:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{'-'.join(part for part in (name, case, where) if part)}.json").write_text(text + "\n")
