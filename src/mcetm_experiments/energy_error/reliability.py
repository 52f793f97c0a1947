"""From scores and errors on every rung to numbers: correlations, AUROC, risk and coverage, false alarms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from mcetm.evaluation import auroc, excess_risk, false_alarms, pearson, risk_area, risk_coverage, spearman
from mcetm_experiments.energy_error.distrust import IN_UNITS, MODELS, SCORES

RATES = (0.1, 0.05, 0.01)
"""Shares of known held-out rows that a threshold is to reject."""
COVERAGES = tuple(round(0.05 * i, 2) for i in range(1, 21))
"""Accepted shares at which the risk is kept."""

Looks = dict[str, dict[str, Any]]
"""What `look_at` returns."""


def measure(
    looks: Looks,
    rung: Int[np.ndarray, " rows"],
    count: int,
    known: Looks,
    *,
    rate: float,
    beside: Sequence[int] = (),
) -> dict[str, Any]:
    """All numbers of one training; rung 0 of `count` is held-out data, `known` further held-out rows.

    δ of every score is the value that a share `rate` of the known rows exceeds. What is pooled leaves out the
    rungs that stand beside the ladder.
    """
    ladder = ~np.isin(rung, beside)
    errors = {model: np.asarray(looks["errors"][model]["error"], np.float64) for model in MODELS}
    squares = {model: np.asarray(looks["errors"][model]["mse"], np.float64) for model in MODELS}
    return {
        "rows": np.bincount(rung, minlength=count),
        "errors": {model: _by_rung(error, rung, count) for model, error in errors.items()},
        "expected": {
            name: _ratios(np.asarray(looks["scores"][name], np.float64), errors[SCORES[name]], rung, count)
            for name in IN_UNITS
        },
        "truncated": {
            rule: _by_rung(np.asarray(share, np.float64), rung, count)
            for rule, share in looks["truncated"].items()
        },
        "scores": {
            name: _measure_score(
                np.asarray(looks["scores"][name], np.float64),
                errors[model],
                squares[model],
                rung,
                count,
                ladder,
                np.asarray(known["scores"][name], np.float64),
                rate,
            )
            for name, model in SCORES.items()
            if name in looks["scores"]
        },
    }


def _measure_score(
    score: Float[np.ndarray, " rows"],
    error: Float[np.ndarray, " rows"],
    square: Float[np.ndarray, " rows"],
    rung: Int[np.ndarray, " rows"],
    count: int,
    ladder: Bool[np.ndarray, " rows"],
    known: Float[np.ndarray, " known"],
    rate: float,
) -> dict[str, Any]:
    at = [rung == i for i in range(count)]
    delta = float(np.quantile(known, 1.0 - rate))
    rejected = score > delta
    alone = {
        "pearson": [pearson(score[rows], error[rows]) for rows in at],
        "spearman": [spearman(score[rows], error[rows]) for rows in at],
        # Held-out rows against themselves: ½.
        "auroc": [auroc(score[at[0]], score[rows]) for rows in at],
        "rejected": _by_rung(rejected.astype(np.float64), rung, count),
        "false alarms": [false_alarms(known, score[at[0]], nominal) for nominal in RATES],
    }
    off = auroc(score[at[0]], score[ladder & ~at[0]])
    score, error, square, rejected = (column[ladder] for column in (score, error, square, rejected))
    coverage, risk = risk_coverage(score, error)
    return {
        "delta": delta,
        **alone,
        "pooled": {
            "pearson": pearson(score, error),
            "pearson of MSE": pearson(score, square),
            "pearson of logs": pearson(_logarithm(score), _logarithm(error)),
            "spearman": spearman(score, error),
            "auroc": off,
            "area": risk_area(score, error),
            "excess": excess_risk(score, error),
            "error of accepted": _mean(error[~rejected]),
            "error of rejected": _mean(error[rejected]),
        },
        "risk": np.interp(COVERAGES, coverage, risk),
    }


def _logarithm(values: Float[np.ndarray, " rows"]) -> Float[np.ndarray, " rows"]:
    """Of what is in units; what has values below 0, an energy or a log-spread, is a logarithm already."""
    if (values < 0.0).any():
        return values
    return np.log(np.maximum(values, np.finfo(np.float32).tiny))


def _by_rung(values: Float[np.ndarray, " rows"], rung: Int[np.ndarray, " rows"], count: int) -> list[float]:
    return [_mean(values[rung == i]) for i in range(count)]


def _ratios(
    expected: Float[np.ndarray, " rows"],
    error: Float[np.ndarray, " rows"],
    rung: Int[np.ndarray, " rows"],
    count: int,
) -> list[float]:
    """Expected error by the error that was found, medians of each rung."""
    at = [rung == i for i in range(count)]
    return [float(np.median(expected[r]) / np.median(error[r])) if r.any() else float("nan") for r in at]


def _mean(values: Float[np.ndarray, " rows"]) -> float:
    return float(values.mean()) if len(values) else float("nan")


def shown_rows(
    looks: Looks, rung: Int[np.ndarray, " rows"], most: int, *, seed: int
) -> dict[str, Sequence[Any]]:
    """Some rows for the figure: rung, errors of both models, all scores; as many digits as can be seen."""
    chosen = np.random.default_rng(seed).permutation(len(rung))[:most]
    columns = {model: looks["errors"][model]["error"] for model in MODELS} | looks["scores"]
    few = {name: [float(f"{x:.4g}") for x in np.asarray(column)[chosen]] for name, column in columns.items()}
    return {"rung": rung[chosen].tolist(), **few}
