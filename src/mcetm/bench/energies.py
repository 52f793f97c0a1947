"""Training energies at the paper's settings: steps a second, and what its 100 epochs would take."""

from __future__ import annotations

from dataclasses import replace

import jax

from mcetm.bench.clock import from_history
from mcetm.bench.eager import Eager, why_no_torch
from mcetm.bench.sheet import Measured, Sheet
from mcetm.bench.subjects import autoencoder, random_log
from mcetm.dynamics import fit_energy
from mcetm.pipeline.presets import make_config

_EPOCHS, _TRANSITIONS = 100, 1_000_000
_CHUNKS = 4


def run_energies(sheet: Sheet) -> None:
    """Manifold negatives (30 + 20 steps), gradient penalty, Adam; all five members, and one alone."""
    models = make_config("paper-empo", dataset="halfcheetah-medium").models
    chunk = 20 if sheet.full and jax.default_backend() != "cpu" else (1 if sheet.full else 5)
    if not sheet.full:
        models = replace(models, energy=replace(models.energy, batch_size=32, count=4, width=32))
    log, config = random_log(), models.energy
    missing = why_no_torch()
    steps = _EPOCHS * _TRANSITIONS / config.batch_size
    for members in (config.members, 1):
        work = (
            f"a step of {members} × {config.batch_size:,} × {config.count}, {config.depth} × {config.width}, "
            f"{config.latent.steps} + {config.ambient.steps} steps, penalty"
        )

        def figures(seconds: float) -> dict[str, float]:
            hours = {"hours for 100 epochs of 1 M": seconds * steps / 3600.0} if sheet.full else {}
            return {"steps/s": 1.0 / seconds, **hours}

        def measure(members: int = members) -> Measured:
            chosen = replace(config, members=members, steps=_CHUNKS * chunk)
            _, history = fit_energy(
                log, chosen, autoencoder=autoencoder(models, log), key=jax.random.key(0), chunk=chunk
            )
            chunks, compilation = from_history(history)
            return Measured(chunks.each(chunk), compilation, figures(chunks.median / chunk))

        sheet.row(work, "plain JAX", measure)
        if missing is None:

            def reference(members: int = members) -> Measured:
                eager = Eager(members=members, width=config.width)
                seconds = eager.clock(lambda: eager.train_step(config.batch_size, config.count))
                return Measured(seconds, None, figures(seconds.median))

            sheet.row(work, Eager.NAME, reference)
    if missing is not None:
        sheet.note(missing)
