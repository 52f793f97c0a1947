"""Training energies at the paper's settings: steps a second, and what its 100 epochs would take."""

from __future__ import annotations

from dataclasses import replace

import jax

from mcetm.dynamics import STANDARD, EnergySettings, fit_energy
from mcetm.pipeline import make_config
from mcetm_experiments.bench.backends import LABELS, backends
from mcetm_experiments.bench.clock import from_history
from mcetm_experiments.bench.eager import Eager, why_no_torch
from mcetm_experiments.bench.sheet import Sheet, Timed
from mcetm_experiments.bench.subjects import autoencoder, random_log
from mcetm_experiments.shared.models import ModelsConfig

_EPOCHS, _TRANSITIONS = 100, 1_000_000
_CHUNKS = 4


def run_energies(sheet: Sheet) -> None:
    """Gradient penalty and Adam, with the negatives of MC-ETM (30 + 20 steps) and of standard ETM (50 steps).

    All five members, and of MC-ETM one alone.
    """
    paper = ModelsConfig.of(make_config("paper-empo", dataset="halfcheetah-medium"))
    standard = replace(paper, energy=replace(STANDARD, count=16))  # as EMPO has it
    missing = why_no_torch()
    for models, members in ((paper, paper.energy.members), (standard, STANDARD.members), (paper, 1)):
        _measure(sheet, models, members, eager=missing is None and models is paper)
    if missing is not None:
        sheet.note(missing)


def _measure(sheet: Sheet, models: ModelsConfig, members: int, *, eager: bool) -> None:
    """The rows of one training: all backends for its chains, and the eager reference."""
    chunk = 20 if sheet.full and jax.default_backend() != "cpu" else (1 if sheet.full else 5)
    if not sheet.full:
        models = replace(models, energy=replace(models.energy, batch_size=32, count=4, width=32))
    log, config = random_log(), replace(models.energy, members=members, steps=_CHUNKS * chunk)
    manifold = config.negatives == "manifold"
    chains = f"{config.latent.steps} + {config.ambient.steps}" if manifold else f"{config.ambient.steps}"
    work = (
        f"a step of {members} × {config.batch_size:,} × {config.count}, {config.depth} × {config.width}, "
        f"{chains} steps, penalty"
    )

    def figures(seconds: float) -> dict[str, float]:
        steps = _EPOCHS * _TRANSITIONS / config.batch_size
        hours = {"hours for 100 epochs of 1 M": seconds * steps / 3600.0} if sheet.full else {}
        return {"steps/s": 1.0 / seconds, **hours}

    for backend in backends(models):

        def measure(config: EnergySettings = replace(config, backend=backend)) -> Timed:  # noqa: B008
            below = autoencoder(models, log) if manifold else None
            _, history = fit_energy(log, config, autoencoder=below, key=jax.random.key(0), chunk=chunk)
            chunks, compilation = from_history(history)
            return Timed(chunks.each(chunk), compilation, figures(chunks.median / chunk))

        sheet.row(work, LABELS[backend], measure)
    if eager:

        def reference() -> Timed:
            networks = Eager(members=members, width=config.width)
            seconds = networks.clock(lambda: networks.train_step(config.batch_size, config.count))
            return Timed(seconds, None, figures(seconds.median))

        sheet.row(work, Eager.NAME, reference)
