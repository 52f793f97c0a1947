"""What every model's training takes: a network of the user's own in the place of ours, and callbacks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from mcetm import AnchoredETM, ManifoldETM, TransitionModel, UserError
from mcetm.dynamics import (
    AutoencoderSettings,
    DiffusionEnsemble,
    EnergySettings,
    GaussianEnsemble,
    InferenceSettings,
    Langevin,
    PlainEnergy,
    fit_diffusion,
    fit_energy,
    fit_gaussian,
    fused,
)
from tests.dynamics.test_energy import LOG, SPACE, STATISTICS

KEY = jax.random.key(0)
TRAIN, HOLDOUT = LOG.split(0.2)
GAUSSIAN = GaussianEnsemble(members=2, elites=2, steps=20, batch_size=16, validate_every=10)
ENERGY = EnergySettings(
    negatives="uniform", members=2, count=3, batch_size=16, steps=20, ambient=Langevin(steps=2)
)
DIFFUSION = DiffusionEnsemble(members=2, steps=20, batch_size=16, sampler_steps=3)
INFERENCE = InferenceSettings(start="noise", latent=None, ambient=Langevin(steps=2))


class Residual(eqx.Module):
    """Two residual blocks between linear layers, each block with a LayerNorm before it."""

    first: eqx.nn.Linear
    blocks: tuple[eqx.nn.Linear, ...]
    norms: tuple[eqx.nn.LayerNorm, ...]
    last: eqx.nn.Linear

    def __init__(self, inputs: int, outputs: int, *, key: Array) -> None:
        keys = jax.random.split(key, 4)
        self.first = eqx.nn.Linear(inputs, 8, key=keys[0])
        self.blocks = tuple(eqx.nn.Linear(8, 8, key=k) for k in keys[1:3])
        self.norms = tuple(eqx.nn.LayerNorm(8) for _ in range(2))
        self.last = eqx.nn.Linear(8, outputs, key=keys[3])

    def __call__(self, x: Array) -> Array:
        x = self.first(x)
        for block, norm in zip(self.blocks, self.norms, strict=True):
            x = x + jax.nn.silu(block(norm(x)))
        return self.last(x)


EQUINOX: Callable[..., Any] = partial(eqx.nn.MLP, width_size=8, depth=2)
"""Its activation is a function among its arrays, and it has layers as ours has, but is not ours."""
FITS: dict[str, Callable[..., tuple[TransitionModel, list[dict[str, Any]]]]] = {
    "gaussian": lambda network, **more: fit_gaussian(
        TRAIN, HOLDOUT, GAUSSIAN, network=network, key=KEY, **more
    ),
    "energy": lambda network, **more: fit_energy(
        TRAIN, ENERGY, inference=INFERENCE, network=network, chunk=10, key=KEY, **more
    ),
    "diffusion": lambda network, **more: fit_diffusion(
        TRAIN, DIFFUSION, network=network, chunk=10, key=KEY, **more
    ),
}


def assert_draws(model: TransitionModel, network: type) -> None:
    drawn = model.samples(HOLDOUT.obs[:4], HOLDOUT.action[:4], 3, key=KEY)
    assert drawn.next_obs.shape == (4, 2, 3, 5)
    assert np.isfinite(drawn.next_obs).all()
    assert isinstance(model.members.network, network)  # pyright: ignore[reportAttributeAccessIssue]


def test_all_of_a_network_learns() -> None:
    """LayerNorms too: every array of the network has moved after a few steps."""
    few, many = (
        fit_gaussian(TRAIN, HOLDOUT, replace(GAUSSIAN, steps=steps), network=Residual, key=KEY)[0]
        for steps in (1, 20)
    )
    for before, after in zip(
        *(jax.tree_util.tree_leaves(model.members.network) for model in (few, many)), strict=True
    ):
        assert bool(jnp.any(before != after))


def test_no_kernel_takes_a_network_for_one_of_ours() -> None:
    """The fused sampler knows our MLP by its layers; the rest goes the plain way."""

    def members(network: Callable[..., Any] | None) -> PlainEnergy:
        make = partial(PlainEnergy, STATISTICS, SPACE, width=8, depth=2, network=network)
        return eqx.filter_vmap(lambda k: make(key=k))(jax.random.split(KEY, 2))

    assert fused.is_supported(members(None))
    for network in (Residual, EQUINOX):
        assert not fused.is_supported(members(network))


@pytest.mark.parametrize("kind", FITS)
def test_a_network_of_ones_own_trains_and_draws_and_loading_asks_for_it_again(
    kind: str, tmp_path: Path
) -> None:
    first, history = FITS[kind](Residual, folder=tmp_path)
    assert [line["step"] for line in history] == [10, 20]
    assert np.isfinite([line["loss"] for line in history]).all()
    assert_draws(first, Residual)
    again, _ = FITS[kind](Residual, folder=tmp_path)
    for a, b in zip(
        *(jax.tree_util.tree_leaves(eqx.filter(m, eqx.is_array)) for m in (first, again)), strict=True
    ):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(UserError, match=r"array '.*' is in only one\. A network of your own .*network="):
        FITS[kind](None, folder=tmp_path)


@pytest.mark.parametrize("kind", FITS)
def test_callbacks_hear_of_every_chunk_and_can_end_it(kind: str) -> None:
    heard: list[dict[str, Any]] = []
    model, history = FITS[kind](EQUINOX, callbacks=[heard.append, lambda line: line["step"] == 10])
    assert [line["step"] for line in history] == [10]
    assert heard == history
    assert np.isfinite(history[-1]["loss"]).all()
    assert_draws(model, eqx.nn.MLP)


def test_settings_pass_a_network_to_their_energies() -> None:
    sizes = ManifoldETM(
        members=2, count=2, steps=5, batch_size=16, regressor=replace(GAUSSIAN, width=8, depth=1),
        autoencoder=AutoencoderSettings(latent_dim=2, width=8, depth=1, steps=5, batch_size=16),
        latent=Langevin(steps=2), ambient=Langevin(steps=2), inference=INFERENCE,
    )  # fmt: skip
    model = sizes.fit(TRAIN, holdout=HOLDOUT, network=Residual)
    assert isinstance(model.members.network, Residual)  # pyright: ignore[reportAttributeAccessIssue]


def test_an_anchored_energy_refuses_a_network_before_anything_is_trained() -> None:
    heard: list[Any] = []
    with pytest.raises(UserError, match="begins as zero, which a network of your own cannot"):
        AnchoredETM().fit(TRAIN, holdout=HOLDOUT, network=Residual, stages=heard.append)  # pyright: ignore[reportArgumentType]
    assert heard == []
    regressor, _ = fit_gaussian(TRAIN, HOLDOUT, replace(GAUSSIAN, width=8, depth=1), key=KEY)
    config = replace(ENERGY, kind="anchored", negatives="proposal")
    with pytest.raises(UserError, match="begins as zero, which a network of your own cannot"):
        fit_energy(TRAIN, config, regressor=regressor, network=Residual, key=KEY)


def test_weight_decay_by_layer_refuses_a_network() -> None:
    with pytest.raises(UserError, match="layer by layer"):
        fit_gaussian(TRAIN, HOLDOUT, replace(GAUSSIAN, weight_decay=(1e-4,)), network=Residual, key=KEY)
