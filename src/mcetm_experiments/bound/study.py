"""The bound study: how often section 4.3 is true, how tight its bound is, and what the hybrid is good for.

Many random finite MDPs with data of varying coverage, in which everything can be computed exactly.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from mcetm import UserError
from mcetm.console import progress
from mcetm.files import write_json
from mcetm.pipeline import describe_environment
from mcetm_experiments.bound.figures import draw_bound
from mcetm_experiments.bound.finite import (
    GridCell,
    Learning,
    certificates,
    make_cell,
    returns,
    settled,
    statements,
)
from mcetm_experiments.bound.settings import BoundStudy
from mcetm_experiments.shared.keeping import kept
from mcetm_experiments.theory import FAMILIES

FEWEST = 4
"""Settings are chosen on one half of the MDPs and tested on the other."""
VARIANTS = {
    "main": Learning(),
    "members with one prior": Learning(prior="shared"),
    "conditional energy": Learning(energy="conditional"),
}


@dataclass(frozen=True)
class BoundConfig:
    """How many MDPs, and how much data of each."""

    mdps: int = 100
    """In each family, for each amount of data."""
    rows: tuple[int, ...] = (100, 400, 1600, 6400)
    """Amounts of data."""
    betas: tuple[float, ...] = (1.0, 4.0, 16.0, 64.0)
    """At which statements are counted."""
    levels: tuple[float, ...] = (1.0, 0.7, 0.4)
    """Levels of δ at which statements are counted."""
    variants: dict[str, Learning] = field(default_factory=lambda: dict(VARIANTS))
    """How models are learned, by name; the first is the one that is looked at closely."""


PRESETS = {
    "quick": lambda: BoundConfig(mdps=20),
    "full": BoundConfig,
}


def run_bound(settings: BoundStudy, config: BoundConfig | None = None) -> dict[str, Any]:
    """Measure every family with every amount of data; write `results.json` and the figures.

    Finished parts are kept in `out/parts`; a study that was stopped goes on after them.
    """
    out, seed = settings.out, settings.seed
    config = config or PRESETS[settings.preset]()
    config = config if settings.mdps is None else replace(config, mdps=settings.mdps)
    if config.mdps < FEWEST:
        raise UserError(f"The bound study needs at least {FEWEST} MDPs of each family, not {config.mdps}.")
    if seed < 0:
        raise UserError(f"The seed must not be negative, and it is {seed}.")
    setting = {"config": asdict(config), "seed": seed}
    variants: dict[str, Any] = {name: {} for name in config.variants}
    with progress("bound study", len(variants) * len(FAMILIES) * len(config.rows), unit="parts") as advance:
        for variant, learning in config.variants.items():
            for family in FAMILIES:
                parts = variants[variant].setdefault(family, {})
                for rows in config.rows:
                    file = f"{variant} {family} {rows}".replace(" ", "-") + ".json"

                    def make(family: str = family, rows: int = rows, learning: Learning = learning) -> dict:
                        return _measure(family, rows, config, learning, seed)

                    parts[str(rows)] = kept(out / "parts" / file, setting, make)
                    advance(1)
    results = {
        "study": "bound",
        "preset": settings.preset,
        **setting,
        "environment": describe_environment(),
        "seconds": sum(p["seconds"] for v in variants.values() for f in v.values() for p in f.values()),
        "variants": variants,
        "statements": _mean_statements([p for f in variants["main"].values() for p in f.values()]),
    }
    draw_bound(out, results)
    write_json(out / "results.json", results)
    return results


def _measure(family: str, rows: int, config: BoundConfig, learning: Learning, seed: int) -> dict[str, Any]:
    """Everything about one family and one amount of data; the statements are counted for the main variant."""
    start = time.perf_counter()
    # The same MDPs and data for every variant, others for every amount.
    cell = make_cell(family, config.mdps, rows, learning, seed=1_000_003 * seed + rows)
    bounds = certificates(cell)
    part = {
        "visited pairs": float((cell.ensemble.visits > learning.smoothing + 0.5).mean()),
        "certificates": _compare_certificates(bounds, learning),
        "returns": _compare_returns(returns(cell), learning),
    }
    if learning == config.variants["main"]:
        part |= {"by level": _by_level(bounds, learning), **_main_only(cell, config)}
    return {**part, "seconds": time.perf_counter() - start}


def _main_only(cell: GridCell, config: BoundConfig) -> dict[str, Any]:
    written = returns(cell, less=0.5, floored=False)
    return {
        "statements": statements(cell, config.betas, config.levels),
        "u settles": {"beta": config.betas, "share": settled(cell, config.betas, 0.7)},
        "returns as written, r of both signs": _compare_returns(written, cell.learning),
    }


def _by_level(bounds: dict[str, np.ndarray], learning: Learning) -> dict[str, Any]:
    """Quartiles over MDPs at each level of δ."""
    names = ("beta", "consistency", "truncation", "proved", "paper", "morel", "gap")
    at = (0.25, 0.5, 0.75)
    quartiles = {
        name: [
            _plain(
                dict(zip(("low", "median", "high"), np.quantile(row, at, method="inverted_cdf"), strict=True))
            )
            for row in bounds[name]
        ]
        for name in names
    }
    return {
        "level": learning.levels,
        "outside": bounds["outside"].mean(axis=1).tolist(),
        "valid beta": np.isfinite(bounds["beta"]).mean(axis=1).tolist(),
        **quartiles,
    }


def _halves(mdps: int) -> tuple[slice, slice]:
    """Where settings are chosen, and where they are tested."""
    return slice(0, mdps // 2), slice(mdps // 2, None)


def _compare_certificates(bounds: dict[str, np.ndarray], learning: Learning) -> dict[str, Any]:
    """Right-hand sides, each with the δ that is best on the first half, on the second half of the MDPs.

    Whoever truncates everything has a bound (γ) that needs no data; what exceeds it counts as that much.
    """
    trivial = bounds["trivial"]
    capped = {name: np.minimum(bounds[name], trivial) for name in ("proved", "paper", "morel")}
    chosen, tested = _halves(bounds["gap"].shape[1])
    compared: dict[str, Any] = {}
    tests: dict[str, np.ndarray] = {}
    untruncated = learning.levels.index(1.0)
    for name, values in (("hybrid", "proved"), ("paper", "paper"), ("MOReL", "morel"), ("MOBILE", "proved")):
        at = untruncated if name == "MOBILE" else int(capped[values][:, chosen].mean(axis=1).argmin())
        tests[name] = capped[values][at, tested]
        informs = tests[name] < trivial[at, tested] - 1e-9
        gap = bounds["gap"][at, tested]
        compared[name] = {
            "level": learning.levels[at],
            **_spread(tests[name]),
            "says something": float(informs.mean()),
        }
        if name in ("hybrid", "MOBILE"):
            compared[name]["valid beta"] = float(np.isfinite(bounds["beta"][at, tested]).mean())
            compared[name]["gap"] = _spread(gap)
            compared[name]["gap / bound"] = (
                float(np.median(gap[informs] / tests[name][informs])) if informs.any() else None
            )
    for baseline in ("paper", "MOBILE", "MOReL"):
        compared[f"hybrid − {baseline}"] = _paired(tests["hybrid"] - tests[baseline])
    return {
        **compared,
        "violated": int(bounds["violated"].sum()),
        "MOReL violated": int(bounds["morel violated"].sum()),
        "no OOD pair met": {
            "cases": int(bounds["unmet"].sum()),
            "unlike MOBILE": int(bounds["unlike mobile"].sum()),
        },
    }


def _compare_returns(found: dict[str, np.ndarray], learning: Learning) -> dict[str, Any]:
    """Each method with the settings that return most on the first half, on the second half of the MDPs."""
    grid = found["grid"]
    chosen, tested = _halves(grid.shape[-1])
    untruncated, unpenalised = learning.levels.index(1.0), learning.betas.index(0.0)
    allowed = {
        "model alone": ([untruncated], [unpenalised]),
        "penalty only": ([untruncated], range(len(learning.betas))),
        "truncation only": (range(len(learning.levels)), [unpenalised]),
        "hybrid": (range(len(learning.levels)), range(len(learning.betas))),
    }
    scores: dict[str, np.ndarray] = {"behaviour": found["behaviour"][tested]}
    compared: dict[str, Any] = {"behaviour": _spread(scores["behaviour"])}
    for name, (levels, betas) in allowed.items():
        pairs = [(level, beta) for level in levels for beta in betas]
        level, beta = max(pairs, key=lambda pair: grid[pair][chosen].mean())
        scores[name] = grid[level, beta, tested]
        compared[name] = {
            **_spread(scores[name]),
            "level": learning.levels[level],
            "beta": learning.betas[beta],
        }
    for baseline in ("penalty only", "truncation only"):
        compared[f"hybrid − {baseline}"] = _paired(scores["hybrid"] - scores[baseline])
    return compared


def _spread(values: np.ndarray) -> dict[str, float | None]:
    """Mean, standard deviation over MDPs, standard error of the mean."""
    std = values.std(ddof=1)
    return _plain({"mean": values.mean(), "std": std, "standard error": std / np.sqrt(len(values))})


def _paired(differences: np.ndarray) -> dict[str, float | None]:
    """The spread of differences, and the shares of MDPs in which they are above and below 0."""
    signs = {"above": (differences > 1e-9).mean(), "below": (differences < -1e-9).mean()}
    return _spread(differences) | _plain(signs)


def _mean_statements(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Shares over all families and amounts of data; at valid β, over the cases in which there is one."""
    summary: dict[str, Any] = {}
    for arm, first in parts[0]["statements"].items():
        arms = [part["statements"][arm] for part in parts]
        valid = "at a valid β"
        summary[arm] = {
            name: np.mean([a[name] for a in arms], axis=0).tolist() for name in first if name != valid
        }
        cases = [a[valid]["cases"] for a in arms]
        summary[arm][valid] = {
            "cases": int(np.sum(cases)),
            **{
                name: float(np.average([a[valid][name] or 0.0 for a in arms], weights=cases))
                for name in first[valid]
                if name != "cases" and np.sum(cases)
            },
        }
    return summary


def _plain(numbers: dict[str, float]) -> dict[str, float | None]:
    """Five digits, for people; JSON knows no infinity."""
    return {name: float(f"{n:.5g}") if np.isfinite(n) else None for name, n in numbers.items()}
