"""Our estimates beside d3rlpy's fitted Q evaluation: the same logs, the same policies, the same true returns.

    python -m venv DIR && DIR/bin/pip install d3rlpy onnxruntime
    mcetm study estimates --logs tank-mixed --out studies/estimates
    python benchmarks/estimates_d3rlpy.py studies/estimates --python DIR/bin/python [--steps 10000] [--record]

Reads the parts of an estimates study, gives the same policies to d3rlpy, and compares how well each puts them
in order. d3rlpy's value is discounted, so errors are not compared: only order and regret.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from mcetm.data.files import write_file
from mcetm.estimates import LABELS
from mcetm_experiments.estimates.measures import measures
from mcetm_experiments.estimates.settings import EstimatesStudy
from mcetm_experiments.estimates.study import log_of, policies_of
from record import record

MEASURES = ("spearman", "regret_1", "regret_5")


def main() -> None:
    """Estimate with d3rlpy what is not there yet, and print both beside each other."""
    parser = argparse.ArgumentParser()
    parser.add_argument("study", type=Path, help="the folder of an estimates study")
    parser.add_argument("--python", required=True, help="an interpreter that has d3rlpy and onnxruntime")
    parser.add_argument("--steps", type=int, default=10_000, help="updates of each critic")
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    found: dict[str, Any] = {}
    for path in sorted((given.study / "parts").glob("*.json")):
        kept = json.loads(path.read_text())
        setting, part = kept["setting"], kept["result"]
        values = _outside(path, setting["log"], setting["seed"], given)
        found[path.stem] = compare(part["policies"], values)
        print(path.stem, json.dumps(found[path.stem]), flush=True)
    record("estimates_d3rlpy", {"updates": given.steps, "logs": found})


def compare(policies: dict[str, Any], outside: dict[str, float]) -> dict[str, dict[str, float]]:
    """Order and regret of each estimator, over the policies that did not collect the log."""
    names = [name for name, row in policies.items() if not row["collected"]]
    truth = np.array([policies[name]["true"] for name in names])
    error = np.array([policies[name]["error"] for name in names])
    ways = {"d3rlpy's fitted Q evaluation": [outside[name] for name in names]}
    for estimator in LABELS:
        values = [policies[name]["estimates"].get(estimator, {}).get("value") for name in names]
        if None not in values:
            ways[LABELS[estimator]] = values
    chosen = [policies[name]["estimates"].get(policies[name]["chosen"], {}).get("value") for name in names]
    if None not in chosen:
        ways["the one to go by"] = chosen
    scores = {way: measures(truth, error, np.array(values)) for way, values in ways.items()}
    return {way: {name: score[name] for name in MEASURES if name in score} for way, score in scores.items()}


def _outside(part: Path, log_name: str, seed: int, given: argparse.Namespace) -> dict[str, float]:
    """d3rlpy's value of each policy; what is done stays beside the study."""
    kept = given.study / "d3rlpy" / f"{part.stem}-{given.steps}.json"
    if kept.exists():
        return json.loads(kept.read_text())
    kept.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder:
        policies = policies_of(log_name, EstimatesStudy().lengths)
        files = [str(Path(folder) / f"{name}.onnx") for name in policies]
        for policy, file in zip(policies.values(), files, strict=True):
            policy.export(file)
        log = Path(folder) / "log.hdf5"
        write_file(log_of(log_name, seed), log)
        script = str(Path(__file__).with_name("outside_fqe.py"))
        command = [given.python, script, str(log), str(given.steps), str(seed), *files]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    values = {line["policy"]: line["value"] for line in lines}
    kept.write_text(json.dumps(values))
    return values


if __name__ == "__main__":
    main()
