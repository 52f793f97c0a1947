"""Energies, negatives, training and inference as facts."""

from dataclasses import replace
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, PRNGKeyArray

from mcetm import Statistics, Transitions, UserError
from mcetm.dynamics.energy import AnchoredEnergy, Conditional, Energy, PlainEnergy
from mcetm.dynamics.etm import (
    ANCHORED,
    PAPER_EMPO,
    STANDARD,
    EnergySettings,
    energy_loss,
    fit_energy,
)
from mcetm.dynamics.gaussian import Gaussian, GaussianEnsemble, GaussianModel, fit_gaussian
from mcetm.dynamics.inference import REFINE, EnergyTransitionModel, InferenceSettings
from mcetm.dynamics.langevin import Langevin
from mcetm.dynamics.manifold import Autoencoder, AutoencoderSettings, fit_autoencoder, reconstruction
from mcetm.dynamics.negatives import Negatives, NoiseNegatives, ProposalNegatives, Row
from mcetm.dynamics.space import Space
from mcetm.dynamics.support import Support
from mcetm.nn.mlp import MLP
from mcetm.nn.scaling import InputScaling
from mcetm.training.batches import Batch


def circle_log(rows: int = 2000) -> Transitions:
    """A point that turns on a circle drawn in five dimensions: the states lie on a line, not in a volume."""
    rng = np.random.default_rng(0)
    angle, turn = rng.uniform(0, 2 * np.pi, rows), rng.uniform(-0.5, 0.5, rows)
    lift = rng.normal(size=(2, 5))

    def state(angle: np.ndarray) -> np.ndarray:
        return np.stack([np.cos(angle), np.sin(angle)], axis=1) @ lift

    noise = 0.02 * rng.normal(size=rows)
    ends = np.arange(rows) % 20 == 19
    return Transitions.from_arrays(
        state(angle), turn[:, None], np.zeros(rows), state(angle + turn + noise), np.zeros(rows, bool), ends
    )


def two_mode_log(rows: int = 4000) -> Transitions:
    """s' = ±1 with equal chance, whatever s and a."""
    rng = np.random.default_rng(0)
    obs = rng.uniform(-1, 1, (rows, 1))
    following = rng.choice([-1.0, 1.0], (rows, 1)) + 0.05 * rng.normal(size=(rows, 1))
    ends = np.ones(rows, bool)
    return Transitions.from_arrays(
        obs, np.zeros((rows, 1)), np.zeros(rows), following, np.zeros(rows, bool), ends
    )


LOG = circle_log()
STATISTICS = Statistics.of(LOG)
SPACE = Space.of(LOG)
ROW = jax.tree_util.tree_map(lambda x: x[3], Batch.of(LOG))
SEEN = Row(ROW.obs, ROW.action, SPACE.encode(ROW.obs, ROW.next_obs))
GAUSSIAN = Gaussian(GaussianEnsemble(width=16, depth=2), STATISTICS, key=jax.random.key(0))
SMALL = EnergySettings(members=2, count=4, width=16, depth=2, batch_size=32, steps=20,
                     latent=Langevin(steps=3), ambient=Langevin(steps=3))  # fmt: skip


def plain(seed: int = 0) -> PlainEnergy:
    return PlainEnergy(STATISTICS, SPACE, width=16, depth=2, activation="silu", key=jax.random.key(seed))


def test_an_anchored_energy_begins_as_its_anchors_negative_log_density() -> None:
    energy = AnchoredEnergy(GAUSSIAN, width=16, depth=2, key=jax.random.key(1))
    for shift in (0.0, 0.1, 3.0):
        value = energy(ROW.obs, ROW.action, ROW.next_obs + shift)
        assert float(value) == pytest.approx(
            float(GAUSSIAN.energy(ROW.obs, ROW.action, ROW.next_obs + shift))
        )


def test_an_anchor_is_never_trained() -> None:
    energy = AnchoredEnergy(GAUSSIAN, width=16, depth=2, key=jax.random.key(1))
    gradient = eqx.filter_grad(lambda e: e(ROW.obs, ROW.action, ROW.next_obs))(energy)
    assert not any(np.any(leaf) for leaf in jax.tree_util.tree_leaves(gradient.anchor))
    assert np.any(gradient.network.layers[-1].weight)


@pytest.mark.parametrize("kind", ["plain", "anchored"])
def test_gradients_with_respect_to_the_state_agree_with_differences(kind: str) -> None:
    energy: Energy = (
        plain() if kind == "plain" else AnchoredEnergy(GAUSSIAN, width=16, depth=2, key=jax.random.key(1))
    )
    at = lambda x: energy(ROW.obs, ROW.action, x)  # noqa: E731
    gradient = np.asarray(jax.grad(at)(ROW.next_obs))
    step = 1e-2
    for i in range(5):
        unit = jnp.zeros(5).at[i].set(step)
        difference = float(at(ROW.next_obs + unit) - at(ROW.next_obs - unit)) / (2 * step)
        assert difference == pytest.approx(gradient[i], rel=0.05, abs=0.02)


def test_the_last_bias_of_a_plain_energy_gets_no_gradient_from_info_nce() -> None:
    negatives = NoiseNegatives(SPACE, Langevin(steps=2))
    config = replace(SMALL, negatives="uniform", penalty=0.0)

    def loss(energy: PlainEnergy, config: EnergySettings) -> jax.Array:
        return energy_loss(energy, negatives, SPACE, ROW, config, key=jax.random.key(0))[0]

    without = eqx.filter_grad(lambda e: loss(e, config))(plain())
    assert float(jnp.abs(without.network.layers[-1].bias).max()) < 1e-6
    assert float(jnp.abs(without.network.layers[-1].weight).max()) > 1e-4
    pinned = eqx.filter_grad(lambda e: loss(e, replace(config, regulariser=1.0)))(plain())
    assert float(jnp.abs(pinned.network.layers[-1].bias).max()) > 1e-4


def test_the_penalty_has_a_gradient_for_the_parameters_above_the_margin_only() -> None:
    negatives = ProposalNegatives(GAUSSIAN, SPACE)

    def penalty(energy: PlainEnergy, margin: float) -> jax.Array:
        config = replace(SMALL, margin=margin)
        return energy_loss(energy, negatives, SPACE, ROW, config, key=jax.random.key(0))[1]["penalty"]

    for margin, moves in ((1e-4, True), (1e4, False)):
        gradient = eqx.filter_grad(lambda e, m=margin: penalty(e, m))(plain())
        assert bool(np.any(gradient.network.layers[0].weight)) == moves


def test_nothing_is_differentiated_through_the_chains() -> None:
    """The gradient of the loss is the one with the negatives held fixed."""
    negatives = NoiseNegatives(SPACE, Langevin(steps=3))
    config, energy, key = replace(SMALL, negatives="uniform"), plain(), jax.random.key(4)
    at = Conditional(energy, SPACE, ROW.obs, ROW.action)
    drawn = negatives(at, SEEN, config.count, key=key)

    class Fixed(Negatives):
        def __call__(self, energy: object, row: Row, count: int, *, key: jax.Array) -> jax.Array:
            return drawn

    grad = lambda n: eqx.filter_grad(lambda e: energy_loss(e, n, SPACE, ROW, config, key=key)[0])(energy)  # noqa: E731
    for a, b in zip(*(jax.tree_util.tree_leaves(grad(n)) for n in (negatives, Fixed())), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_an_autoencoder_finds_the_circle() -> None:
    train, holdout = LOG.split(0.2)
    config = AutoencoderSettings(latent_dim=2, width=32, batch_size=128, steps=2500)
    model, _ = fit_autoencoder(train, config, key=jax.random.key(0))
    measured = reconstruction(model, holdout)
    assert measured.ratio < 0.3, "it forgets far less than a step changes"
    codes = jax.vmap(model.encode)(Batch.of(train).next_obs)
    np.testing.assert_allclose(codes.mean(axis=0), 0.0, atol=1e-3)
    np.testing.assert_allclose(codes.std(axis=0), 1.0, rtol=1e-3)


@pytest.mark.parametrize("preset", [PAPER_EMPO, STANDARD, ANCHORED])
def test_every_recipe_trains_and_samples(preset: EnergySettings) -> None:
    config = replace(
        SMALL,
        kind=preset.kind,
        negatives=preset.negatives,
        activation=preset.activation,
        variable=preset.variable,
    )
    train, holdout = LOG.split(0.2)
    small = GaussianEnsemble(members=2, elites=2, width=16, depth=1, steps=20, batch_size=32)
    regressor, _ = fit_gaussian(train, holdout, small, key=jax.random.key(0))
    autoencoder = Autoencoder(AutoencoderSettings(latent_dim=2, width=16), SPACE.scale, key=jax.random.key(0))
    inference = InferenceSettings(latent=Langevin(steps=2), ambient=Langevin(steps=2))
    model, history = fit_energy(
        train,
        config,
        autoencoder=autoencoder,
        regressor=regressor,
        inference=inference,
        key=jax.random.key(1),
    )
    assert np.isfinite(history[-1]["loss"]).all()
    draw = eqx.filter_jit(model.samples)
    samples = draw(ROW.obs, ROW.action, 3, key=jax.random.key(2))
    assert samples.next_obs.shape == (2, 3, 5)
    assert samples.energy is not None
    # The energy is that of the returned state under the member that drew it.
    again = model.energy(ROW.obs, ROW.action, samples.next_obs)
    for i in range(2):
        np.testing.assert_allclose(samples.energy[i], again[i, :, i], rtol=1e-3, atol=1e-3)
    assert samples.aleatoric.shape == samples.epistemic.shape == (5,)
    again = draw(ROW.obs, ROW.action, 3, key=jax.random.key(2))
    np.testing.assert_array_equal(samples.next_obs, again.next_obs)
    assert eqx.filter_jit(model.sample)(ROW.obs, ROW.action, key=jax.random.key(0)).shape == (5,)


def test_missing_parts_are_named() -> None:
    with pytest.raises(UserError, match="need an autoencoder"):
        fit_energy(LOG, SMALL, key=jax.random.key(0))
    with pytest.raises(UserError, match="need a regressor"):
        fit_energy(LOG, replace(SMALL, kind="anchored", negatives="uniform"), key=jax.random.key(0))


def test_a_start_that_is_not_there_is_refused() -> None:
    members = eqx.filter_vmap(lambda k: PlainEnergy(STATISTICS, SPACE, width=8, depth=1, key=k))(
        jax.random.split(jax.random.key(0), 2)
    )
    with pytest.raises(UserError, match="start from noise"):
        EnergyTransitionModel(members, SPACE)


def test_descent_never_ends_above_its_start() -> None:
    regressor, _ = fit_gaussian(
        *LOG.split(0.2),
        GaussianEnsemble(members=2, elites=2, width=16, depth=1, steps=20),
        key=jax.random.key(0),
    )
    members = eqx.filter_vmap(lambda k: PlainEnergy(STATISTICS, SPACE, width=16, depth=2, key=k))(
        jax.random.split(jax.random.key(0), 2)
    )
    wild = Langevin(steps=3, first=5.0, last=5.0, noise=3.0, gradient_clip=None, move_clip=None)
    results = {}
    for descend in (True, False):
        config = InferenceSettings(latent=None, ambient=wild, accept_only_lower=descend)
        model = EnergyTransitionModel(members, SPACE, regressor, None, config)
        results[descend] = eqx.filter_jit(model.samples)(
            ROW.obs, ROW.action, 16, key=jax.random.key(1)
        ).energy
    assert bool((results[True] <= results[False] + 1e-5).all())
    assert bool((results[True] < results[False] - 1e-3).any())


def test_a_trunk_sees_the_pair_alone_and_is_evaluated_once_for_all_candidates() -> None:
    log = circle_log()
    statistics, space = Statistics.of(log), Space.of(log)
    energy = PlainEnergy(statistics, space, width=8, depth=1, trunk=2, key=jax.random.key(0))
    assert energy.trunk is not None
    assert energy.trunk.layers[0].weight.shape[1] == log.obs_dim + log.action_dim
    obs, action = jnp.asarray(log.obs[0]), jnp.asarray(log.action[0])
    at = jax.vmap(lambda s: energy(obs, action, s))
    candidates = jnp.asarray(log.next_obs[:50])
    products = str(jax.make_jaxpr(at)(candidates)).count("f32[50,8]")
    without = PlainEnergy(statistics, space, width=8, depth=3, key=jax.random.key(0))
    every = str(jax.make_jaxpr(jax.vmap(lambda s: without(obs, action, s)))(candidates)).count("f32[50,8]")
    assert products < every
    # (s, a) still matters: another pair has other energies.
    assert not np.allclose(at(candidates), jax.vmap(lambda s: energy(obs + 1.0, action, s))(candidates))


def test_each_member_takes_its_lowest_sample_or_prediction_from_starts_all_over_the_box() -> None:
    log = circle_log()
    space = Space.of(log)
    members = eqx.filter_vmap(lambda k: PlainEnergy(Statistics.of(log), space, width=8, depth=1, key=k))(
        jax.random.split(jax.random.key(0), 3)
    )
    still = InferenceSettings(start="uniform", latent=None, ambient=Langevin(steps=0))
    inputs = InputScaling.of(Statistics.of(log).obs, Statistics.of(log).action)
    network = MLP(log.obs_dim + log.action_dim, 1, width=8, depth=1, key=jax.random.key(2))
    model = EnergyTransitionModel(members, space, config=still, support=Support(network, inputs, weight=50.0))
    obs, action, key = jnp.asarray(log.obs[0]), jnp.asarray(log.action[0]), jax.random.key(1)

    def energies(count: int, key: PRNGKeyArray) -> tuple[Array, Array, Array]:
        """Of each member: at what it takes, at the lowest sample, and at its own prediction."""
        taken = jax.vmap(lambda s: model.energy(obs, action, s))(model.lowest(obs, action, count, key=key))
        sampled = cast(Array, model.samples(obs, action, count, key=key).energy).min(axis=1)
        return jnp.diagonal(taken), sampled, model.terminal(obs, action, key=key)

    taken, sampled, settled = jax.jit(jax.vmap(lambda k: energies(2, k)))(jax.random.split(key, 8))
    np.testing.assert_allclose(taken, jnp.minimum(sampled, settled), rtol=1e-4, atol=1e-5)
    assert 0.0 < float((settled < sampled).mean()) < 1.0
    drawn = model.samples(obs, action, 400, key=key)
    x = jax.vmap(lambda s: space.encode(obs, s))(drawn.next_obs.reshape(-1, log.obs_dim))
    share = (x - space.box.low) / (space.box.high - space.box.low)
    np.testing.assert_allclose(jnp.quantile(share, jnp.array([0.0, 0.5, 1.0]), axis=0)[1], 0.5, atol=0.06)
    assert float(share.min()) >= -1e-4
    assert float(share.max()) <= 1.0001
    assert float(share.max() - share.min()) > 0.95


def test_both_modes_are_sampled_where_a_gaussian_averages() -> None:
    log = two_mode_log()
    train, holdout = log.split(0.1)
    regressor, _ = fit_gaussian(
        train, holdout, GaussianEnsemble(members=2, elites=2, width=32, depth=1, steps=200, batch_size=128),
        key=jax.random.key(0),
    )  # fmt: skip
    config = EnergySettings(negatives="uniform", members=2, count=8, width=32, depth=2, activation="silu",
                          batch_size=64, steps=500, ambient=Langevin(steps=6))  # fmt: skip
    inference = InferenceSettings(start="noise", ambient=Langevin(steps=60, noise=0.5), latent=None)
    model, _ = fit_energy(train, config, inference=inference, key=jax.random.key(1))
    obs, action = jnp.array([0.2]), jnp.zeros(1)
    draw = eqx.filter_jit(model.samples)
    draws = np.asarray(draw(obs, action, 200, key=jax.random.key(2)).next_obs).ravel()
    near = np.minimum(np.abs(draws - 1), np.abs(draws + 1)) < 0.25
    assert near.mean() > 0.9, "almost every sample lies in a mode"
    assert 0.2 < (draws > 0).mean() < 0.8, "and both modes are found"
    assert abs(float(regressor.predict(obs, action)[0])) < 0.3, "the Gaussian predicts what never happens"


def test_other_rows_alone_can_train_an_energy() -> None:
    model, history = fit_energy(LOG, replace(SMALL, negatives="uniform", count=0, others=6, steps=300),
                                chunk=100, key=jax.random.key(0))  # fmt: skip
    # A random pick among seven is right one time in seven; the change of a turn tells much better.
    assert np.mean(history[-1]["accuracy"]) > 0.4
    assert model.config.start == "noise", "there is no regressor to start from"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"negatives": "uniform", "count": 0}, "at least one negative"),
        ({"kind": "anchored", "negatives": "proposal", "others": 2}, "density of every negative"),
        ({"negatives": "uniform", "others": 32}, "fewer than 32 other rows"),
    ],
)
def test_negatives_that_cannot_be_are_refused(changes: dict[str, Any], words: str) -> None:
    regressor = GaussianModel(eqx.filter_vmap(lambda k: Gaussian(GaussianEnsemble(), STATISTICS, key=k))(
        jax.random.split(jax.random.key(0), 1)), jnp.zeros(1, jnp.int32))  # fmt: skip
    with pytest.raises(UserError, match=words):
        fit_energy(LOG, replace(SMALL, **changes), regressor=regressor, key=jax.random.key(0))


def jump_log(rows: int = 8000) -> Transitions:
    """s' jumps from −0.5 to 0.5 where s + a crosses 0."""
    rng = np.random.default_rng(0)
    obs, action = rng.uniform(-1, 1, (rows, 1)), rng.uniform(-1, 1, (rows, 1))
    following = np.where(obs + action > 0, 0.5, -0.5) + 0.02 * rng.normal(size=(rows, 1))
    return Transitions.from_arrays(
        obs, action, np.zeros(rows), following, np.zeros(rows, bool), np.ones(rows, bool)
    )


def test_a_jump_is_predicted_where_a_regressor_draws_a_slope() -> None:
    train, holdout = jump_log().split(0.1)
    regressor, _ = fit_gaussian(
        train, holdout, GaussianEnsemble(members=3, elites=3, width=32, depth=2, steps=500, batch_size=128),
        key=jax.random.key(0),
    )  # fmt: skip
    config = EnergySettings(negatives="uniform", members=3, count=4, width=32, depth=2, activation="silu",
                          batch_size=64, steps=1200, ambient=Langevin(steps=6))  # fmt: skip
    inference = InferenceSettings(start="noise", latent=None, ambient=Langevin(steps=60, noise=0.1))
    model, _ = fit_energy(train, config, inference=inference, key=jax.random.key(1))
    obs = jnp.full((64, 1), 0.3)
    action = jnp.linspace(-0.4, -0.2, 64)[:, None]  # across the jump, at a = −0.3

    def off(predicted: jax.Array) -> np.ndarray:
        """Distance from the nearer of the two values that s' can have."""
        return np.asarray(jnp.minimum(jnp.abs(predicted - 0.5), jnp.abs(predicted + 0.5))).ravel()

    pick = lambda o, a, k: model.select(o, a, 8, key=k)  # noqa: E731
    chosen = eqx.filter_jit(jax.vmap(pick))(obs, action, jax.random.split(jax.random.key(2), 64))
    regressed = regressor.predict(obs, action)
    assert off(chosen).max() < 0.15, "always near one of the two values"
    assert off(regressed).max() > 0.3, "the regressor passes through states that never occur"
    assert (np.sign(np.asarray(chosen).ravel()) == np.sign(np.asarray(obs + action).ravel())).mean() > 0.85


def test_selection_weighs_members_by_their_precision() -> None:
    """Without corrections the lowest mean energy of Gaussian members is at their weighted mean."""
    sizes = GaussianEnsemble(width=16, depth=2)

    def make(key: jax.Array) -> AnchoredEnergy:
        return AnchoredEnergy(Gaussian(sizes, STATISTICS, key=key), width=8, depth=1, key=key)

    members = eqx.filter_vmap(make)(jax.random.split(jax.random.key(0), 3))
    bounds = jnp.array([[0.5], [-2.0], [-4.0]]) * jnp.ones(len(LOG.obs[0]))
    members = eqx.tree_at(lambda m: m.anchor.max_log_variance, members, bounds)
    model = EnergyTransitionModel(members, SPACE, config=replace(REFINE, ambient=Langevin(steps=1)))
    obs, action = jnp.asarray(LOG.obs[0]), jnp.asarray(LOG.action[0])
    means, stds = eqx.filter_vmap(lambda anchor: anchor.predict(obs, action))(members.anchor)
    chosen = eqx.filter_jit(lambda m: m.select(obs, action, 4, key=jax.random.key(1)))(model)
    weighted = (means / stds**2).sum(axis=0) / (1.0 / stds**2).sum(axis=0)
    np.testing.assert_allclose(chosen, weighted, rtol=1e-4)
    assert np.abs(weighted - means.mean(axis=0)).max() > 1e-3


def test_every_energy_model_samples_by_its_key_alone() -> None:
    """Also: a batch of states gets what each state gets by itself."""
    members = eqx.filter_vmap(lambda k: PlainEnergy(STATISTICS, SPACE, width=8, depth=1, key=k))(
        jax.random.split(jax.random.key(0), 2)
    )
    anchored = AnchoredEnergy(GAUSSIAN, width=8, depth=1, key=jax.random.key(0))
    anchored = jax.tree_util.tree_map(lambda x: x[None] if eqx.is_array(x) else x, anchored)
    short = Langevin(steps=3)
    noise = InferenceSettings(start="noise", latent=None, ambient=short)
    for model in (
        EnergyTransitionModel(members, SPACE, config=noise),
        EnergyTransitionModel(anchored, SPACE, config=REFINE),
    ):
        data, keys = Batch.of(LOG), jax.random.split(jax.random.key(3), 4)
        draw = eqx.filter_jit(lambda o, a, k, m=model: m.sample(o, a, key=k))
        together = eqx.filter_jit(jax.vmap(draw))(data.obs[:4], data.action[:4], keys)
        alone = jnp.stack([draw(data.obs[i], data.action[i], keys[i]) for i in range(4)])
        np.testing.assert_allclose(together, alone, rtol=1e-3, atol=1e-4)
        assert not np.allclose(alone[0], draw(data.obs[0], data.action[0], keys[1]))
