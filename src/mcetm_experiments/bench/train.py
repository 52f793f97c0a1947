"""`mcetm train` from start to end, stage by stage: the first time, and again with its programs compiled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mcetm.compilation import CHOICE
from mcetm.training import MetricsFile
from mcetm_experiments.bench.clock import Spread
from mcetm_experiments.bench.sheet import Sheet, Timed


def run_train(sheet: Sheet) -> None:
    """Preset `quick` on the embedded dataset, in processes of its own; at full size with its comparisons."""
    command = ["train", "--preset", "quick", *([] if sheet.full else ["--set", "baselines=[]"])]
    with TemporaryDirectory() as scratch:
        for variant in ("first start", "second start, programs kept"):
            folder = Path(scratch) / variant.split()[0]
            whole = f"mcetm {' '.join(command)}"
            found = sheet.row(
                whole, variant, lambda f=folder: _run([*command, "--out", str(f)], Path(scratch))
            )
            if found is None:
                continue
            stages = json.loads((folder / "seconds.json").read_text(encoding="utf-8"))
            for stage, seconds in stages.items():
                sheet.row(stage, variant, lambda s=seconds, f=folder, n=stage: _stage(s, f, n))
            left = found.seconds.median - sum(stages.values())
            sheet.row("imports, data and the rest", variant, lambda s=left: Timed(Spread.of([s])))


def _run(arguments: list[str], scratch: Path) -> Timed:
    began, used = time.monotonic(), _children()
    done = subprocess.run(  # noqa: S603 (our own interpreter and module)
        [sys.executable, "-m", "mcetm", *arguments],
        env={**os.environ, CHOICE: str(scratch / "programs")},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    # Processor time does not depend on what else the machine does.
    return Timed(Spread.of([time.monotonic() - began]), None, {"processor s": _children() - used})


def _children() -> float:
    """Processor seconds of all processes that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def _stage(seconds: float, folder: Path, name: str) -> Timed:
    """A stage with, for the run's own policy, the share of its rollouts after the first chunk compiled."""
    figures: dict[str, Any] = {}
    if name == "policy: MC-ETM":
        lines = MetricsFile(folder / "metrics.jsonl").read()[1:]
        share = sum(line["between_seconds"] for line in lines) / sum(line["seconds"] for line in lines)
        figures = {"share of rollouts": share}
    return Timed(Spread.of([seconds]), None, figures)
