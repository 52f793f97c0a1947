"""Near-manifold negatives beside those of an anchor: an InfoNCE term of their own."""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np
import pytest

from mcetm import AnchoredETM, GaussianEnsemble, UserError, collect, fit
from mcetm.dynamics import ANCHORED, AutoencoderSettings, Langevin, fit_energy, fit_gaussian

SMALL = GaussianEnsemble(members=2, elites=2, width=8, depth=1, steps=20, batch_size=32)


def test_hard_negatives_are_told_apart_and_need_a_manifold() -> None:
    train, holdout = collect("tank", 900, "uniform", processes=1).split(0.3)
    chain = Langevin(steps=2)
    settings = AnchoredETM(
        regressor=SMALL,
        autoencoder=AutoencoderSettings(width=8, depth=1, steps=20, batch_size=32),
        members=2, count=3, hard=3, width=8, depth=1, batch_size=32, steps=20, latent=chain, ambient=chain,
    )  # fmt: skip
    seen = []
    model = fit(settings, train, holdout=holdout, callbacks=[lambda metrics: seen.append(metrics)])
    assert np.isfinite(np.asarray(model.predict(holdout.obs[:4], holdout.action[:4]))).all()
    # Four candidates by chance: log 4. An anchor knows better from the start.
    assert 0.0 < np.mean(seen[-1]["hard_contrast"]) < np.log(4)
    regressor, _ = fit_gaussian(train, holdout, SMALL, key=jax.random.key(0))
    with pytest.raises(UserError, match="need an autoencoder"):
        fit_energy(train, replace(ANCHORED, hard=2), regressor=regressor, key=jax.random.key(0))
