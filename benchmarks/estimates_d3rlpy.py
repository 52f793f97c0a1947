"""Our estimates beside d3rlpy's fitted Q evaluation: the same logs, the same policies, the same true returns.

    python -m venv DIR && DIR/bin/pip install d3rlpy onnxruntime
    mcetm study estimates --seed 2 --out studies/estimates
    python benchmarks/estimates_d3rlpy.py studies/estimates/results.json --seed 2 --python DIR/bin/python

Reads the results of an estimates study, trains its policies again, checks that they earn what the study
says, and gives them to d3rlpy. d3rlpy's value V is discounted and has no horizon H. As a return it is read as
(1 - discount) H V: so many steps of its mean reward. That is unfair where the task can end early, so its
error is also measured against the discounted return of the same episodes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from mcetm import Policy
from mcetm.data.files import write_file
from mcetm.estimates import LABELS
from mcetm.evaluation.returns import episode_bounds, run_episodes
from mcetm.tasks import RECIPES, get_task
from mcetm_experiments.estimates.measures import measures
from mcetm_experiments.estimates.settings import EstimatesStudy
from mcetm_experiments.estimates.study import log_of, policies_of
from record import record

DISCOUNT = 0.99
"""d3rlpy's default."""
EPISODES = 50
MEASURES = ("absolute_error", "relative_error", "spearman", "regret_1", "regret_5")
Given = argparse.Namespace


def main() -> None:
    """Estimate with d3rlpy what is not there yet, and print both beside each other."""
    parser = argparse.ArgumentParser()
    parser.add_argument("study", type=Path, help="results.json of an estimates study")
    parser.add_argument("--seed", type=int, default=0, help="the study's --seed")
    parser.add_argument("--python", required=True, help="an interpreter that has d3rlpy and onnxruntime")
    parser.add_argument("--steps", type=int, default=10_000, help="updates of each critic")
    parser.add_argument("--logs", nargs="*", help="only these logs")
    parser.add_argument("--seeds", type=int, help="only so many seeds of each log")
    parser.add_argument("--kept", type=Path, default=Path("d3rlpy-values"), help="what is done is kept here")
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    found: dict[str, Any] = {}
    for name, log in json.loads(given.study.read_text())["logs"].items():
        if given.logs and name not in given.logs:
            continue
        policies = policies_of(name, EstimatesStudy().lengths)
        truth = {label: true_returns(name, policy) for label, policy in policies.items()}
        for i, part in enumerate(log["parts"][: given.seeds]):
            check(name, part["policies"], truth)
            values = outside(name, given.seed + i, policies, given)
            found[f"{name}-{given.seed + i}"] = compare(name, part["policies"], values, truth)
            print(name, given.seed + i, json.dumps(found[f"{name}-{given.seed + i}"], indent=1), flush=True)
    content = {"updates": given.steps, "discount": DISCOUNT, "episodes": EPISODES, "logs": found}
    if given.record:
        record("estimates_d3rlpy", content)


def true_returns(name: str, policy: Policy) -> tuple[float, float, float]:
    """Mean return, its error, and the mean discounted return, over the same episodes."""
    task = get_task(RECIPES[name].task)
    (rows,) = run_episodes(task, [policy.network], episodes=EPISODES, seed=1_000_000)
    whole, discounted = [], []
    for start, end in zip(*episode_bounds(rows), strict=True):
        reward = rows["reward"][start:end].astype(float)
        whole.append(reward.sum())
        discounted.append((DISCOUNT ** np.arange(len(reward)) * reward).sum())
    return float(np.mean(whole)), float(np.std(whole, ddof=1) / EPISODES**0.5), float(np.mean(discounted))


def check(name: str, rows: dict[str, Any], truth: dict[str, tuple[float, float, float]]) -> None:
    """The policies must be those of the study, as far as returns tell."""
    for label, (value, error, _) in truth.items():
        apart = abs(value - rows[label]["true"])
        if apart > 4 * np.hypot(error, rows[label]["error"]):
            raise SystemExit(f"{label} on {name} earns {value:g}, and in the study {rows[label]['true']:g}.")


def compare(
    name: str,
    policies: dict[str, Any],
    values: dict[str, float],
    found: dict[str, tuple[float, float, float]],
) -> dict[str, Any]:
    """Error, order and regret of each estimator, over the policies that did not collect the log."""
    names = [label for label, row in policies.items() if not row["collected"]]
    column = lambda of: np.array([of(label) for label in names], float)  # noqa: E731
    truth, error = column(lambda x: policies[x]["true"]), column(lambda x: policies[x]["error"])
    horizon = get_task(RECIPES[name].task).time_limit or 1000
    plain = column(lambda x: values[x])
    scores: dict[str, dict[str, float]] = {
        "d3rlpy's fitted Q evaluation": measures(truth, error, (1 - DISCOUNT) * horizon * plain)
    }
    for estimator in (*LABELS, "chosen"):
        picked = [estimator if estimator != "chosen" else policies[label]["chosen"] for label in names]
        ours = [policies[x]["estimates"].get(p, {}).get("value") for x, p in zip(names, picked, strict=True)]
        if None not in ours:
            scores[LABELS.get(estimator, "the one to go by")] = measures(truth, error, np.array(ours, float))
    own = measures(column(lambda x: found[x][2]), np.zeros(len(names)), plain)
    return {
        "of_all": {way: {m: score[m] for m in MEASURES if m in score} for way, score in scores.items()},
        "d3rlpy_against_discounted_returns": {m: own[m] for m in ("absolute_error", "relative_error")},
        "policies": {
            label: {
                "true": policies[label]["true"],
                "true_discounted": found[label][2],
                "d3rlpy": values[label],
            }
            for label in names
        },
    }


def outside(name: str, seed: int, policies: dict[str, Policy], given: Given) -> dict[str, float]:
    """d3rlpy's value of each policy; what is done is kept."""
    kept = given.kept / f"{name}-{seed}-{given.steps}.json"
    if kept.exists():
        return json.loads(kept.read_text())
    with TemporaryDirectory() as folder:
        files = [str(Path(folder) / f"{label}.onnx") for label in policies]
        for policy, file in zip(policies.values(), files, strict=True):
            policy.export(file)
        log = Path(folder) / "log.hdf5"
        write_file(log_of(name, seed), log)
        script = str(Path(__file__).with_name("outside_fqe.py"))
        command = [given.python, script, str(log), str(given.steps), str(seed), *files]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    values = {line["policy"]: line["value"] for line in lines}
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(values))
    return values


if __name__ == "__main__":
    main()
