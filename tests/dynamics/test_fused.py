"""Chains as plain arrays are the chains of the model they came from."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mcetm import Statistics, Transitions
from mcetm.dynamics import fused
from mcetm.dynamics.energy import AnchoredEnergy, PlainEnergy
from mcetm.dynamics.gaussian import Gaussian, GaussianEnsemble, GaussianModel
from mcetm.dynamics.inference import REFINE, EnergyTransitionModel, InferenceSettings
from mcetm.dynamics.langevin import Langevin
from mcetm.dynamics.manifold import Autoencoder, AutoencoderSettings
from mcetm.dynamics.model import Samples
from mcetm.dynamics.space import Space, Variable
from mcetm.kernels import chains
from mcetm.nn.scaling import Scaling

STEPS = Langevin(steps=5, first=0.3, last=0.1, noise=1.0)


@cache
def _model(kind: str, variable: Variable = "next_obs", trunk: int = 0) -> EnergyTransitionModel:
    rng = np.random.default_rng(0)
    obs = rng.normal(1.0, 2.0, (50, 3)).astype(np.float32)
    action = rng.uniform(-1, 1, (50, 2)).astype(np.float32)
    following = obs + 0.3 * rng.standard_normal((50, 3), dtype=np.float32)
    data = Transitions.from_arrays(
        obs, action, np.zeros(50), following, np.zeros(50, bool), np.ones(50, bool)
    )
    statistics, space = Statistics.of(data), Space.of(data, variable)
    keys = jax.random.split(jax.random.key(0), 2)
    sizes = GaussianEnsemble(width=8, depth=2)
    gaussians = eqx.filter_jit(eqx.filter_vmap(lambda k: Gaussian(sizes, statistics, key=k)))(keys)
    regressor = GaussianModel(gaussians, jnp.arange(2))
    if kind == "anchored":
        made = eqx.filter_vmap(
            lambda k, g: AnchoredEnergy(g, width=8, depth=2, key=k), in_axes=(0, eqx.if_array(0))
        )(keys, gaussians)
        last = lambda m: m.network.layers[-1].weight  # noqa: E731
        members = eqx.tree_at(last, made, jax.random.normal(jax.random.key(1), last(made).shape))
        return EnergyTransitionModel(members, space, None, None, replace(REFINE, ambient=STEPS))
    make = lambda k: PlainEnergy(statistics, space, width=8, depth=2, trunk=trunk, key=k)  # noqa: E731
    members = eqx.filter_jit(eqx.filter_vmap(make))(keys)
    autoencoder = None
    if kind == "latent":
        autoencoder = Autoencoder(
            AutoencoderSettings(latent_dim=2, width=6, depth=2),
            Scaling.of(statistics.obs),
            key=jax.random.key(2),
        )
        codes = Scaling(jnp.array([0.1, -0.2]), jnp.array([0.5, 2.0]))
        autoencoder = eqx.tree_at(lambda a: a.code_scale, autoencoder, codes)
    return EnergyTransitionModel(
        members, space, regressor, autoencoder, InferenceSettings(latent=STEPS, ambient=STEPS)
    )


def _row() -> tuple[jax.Array, jax.Array]:
    return jnp.array([0.3, -0.2, 1.1]), jnp.array([0.5, -0.5])


class Reference:
    """The reference in the place of a kernel; it knows the shapes that it was given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.shapes: list[tuple[int, ...]] = []
        monkeypatch.setattr(fused, "kernel", lambda *_, **__: self)

    def __call__(self, problem: chains.Chains, moves: chains.Moves, *, key: jax.Array) -> jax.Array:
        self.shapes.append(problem.start.shape)
        return chains.sample(problem, moves, key=key)


def _draw(model: EnergyTransitionModel, obs: jax.Array, action: jax.Array, key: jax.Array) -> Samples:
    fused_model = replace(model, backend="fused")
    # A fresh function, which is traced with the kernel of the moment.
    return eqx.filter_jit(lambda obs, action, key: fused_model.draw(obs, action, 3, key=key))(
        obs, action, key
    )


CASES = [("plain", "next_obs", 0), ("plain", "boxed", 2), ("anchored", "change", 0), ("latent", "change", 0)]


@pytest.mark.parametrize(("kind", "variable", "trunk"), CASES)
def test_without_noise_both_backends_lead_to_the_same_states(
    kind: str, variable: Variable, trunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = _model(kind, variable, trunk)
    still = replace(model, config=replace(model.config, noise_factors=(0.0,), accept_only_lower=True))
    plain = jax.jit(lambda key: still.draw(*_row(), 3, key=key))(jax.random.key(3))
    kernel = Reference(monkeypatch)
    drawn = _draw(still, *_row(), jax.random.key(3))
    assert len(kernel.shapes) >= 1 + (kind == "latent"), "a call for each stage"
    np.testing.assert_allclose(drawn.next_obs, plain.next_obs, atol=1e-4)
    assert plain.energy is not None
    assert drawn.energy is not None
    np.testing.assert_allclose(drawn.energy, plain.energy, atol=1e-4)


def test_members_and_rows_are_gathered_for_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    model, (obs, action), kernel = _model("anchored"), _row(), Reference(monkeypatch)
    still = replace(model, config=replace(model.config, noise_factors=(0.0,)))
    keys = jax.random.split(jax.random.key(0), 4)
    rows = jnp.arange(4.0)[:, None] + obs
    draw = lambda o, k: _draw(still, o, action, k).next_obs  # noqa: E731
    together = jax.jit(jax.vmap(draw))(rows, keys)
    assert kernel.shapes[-1] == (2, 4, 3, 3)
    np.testing.assert_allclose(together[2], draw(rows[2], keys[2]), atol=1e-5)


def test_several_models_run_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    Reference(monkeypatch)
    models = [_model("plain"), _model("plain")]
    doubled = eqx.tree_at(
        lambda m: m.members.network.layers[0].weight, models[1], replace_fn=lambda w: 2.0 * w
    )
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), models[0], doubled)
    one = lambda m: _draw(m, *_row(), jax.random.key(0)).next_obs  # noqa: E731
    both = jax.vmap(one)(stacked)
    np.testing.assert_allclose(both[1], one(doubled), atol=1e-5)


def test_gradients_stop_at_the_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    model, (obs, action) = _model("plain", "change"), _row()
    Reference(monkeypatch)
    slope = jax.grad(lambda o: _draw(model, o, action, jax.random.key(0)).next_obs.sum())(obs)
    np.testing.assert_allclose(slope, 2.0 * 3.0 * jnp.ones(3), rtol=1e-5)


def test_no_kernel_serves_where_there_is_no_gpu() -> None:
    assert fused.kernel([200] * 4, 17) is None
