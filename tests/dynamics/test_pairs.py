"""The score of pairs: what is far is never trusted, fresh pairs of the log's kind nearly always."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mcetm import Transitions, UserError, World, collect
from mcetm.dynamics import PairScore, PairSettings, TrustRegion, fit_pairs
from mcetm.dynamics.pairs import limit_of, noisy
from mcetm.dynamics.plain_pairs import PlainPairScore
from mcetm.evaluation import auroc
from tests.dynamics.test_model import TOY

SMALL = PairSettings(
    width=32, autoencoder_width=32, autoencoder_steps=400, steps=400, batch_size=128, quantile=0.99
)
KEY = jax.random.key(0)
NEVER = jnp.asarray(jnp.inf)


def tank(steps: int, seed: int) -> Transitions:
    return collect("tank", steps, ["tank-operator", "uniform"], mix=True, seed=seed, processes=1)


def circle(rows: int = 3000, seed: int = 0) -> Transitions:
    """States on a circle, ten to an episode, with an action that is a function of them: a curve in space."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, rows)
    obs = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    ends = np.arange(rows) % 10 == 9
    return Transitions.from_arrays(
        obs, obs[:, :1] * obs[:, 1:], np.zeros(rows), obs, np.zeros(rows, bool), ends
    )


@cache
def fitted(kind: str, **changes: object) -> tuple[PairScore, Transitions]:
    """A score, and fresh data of the same kind."""
    log, fresh = (circle(), circle(seed=1)) if kind == "circle" else (tank(6000, 0), tank(3000, 1))
    train, holdout = log.split(0.1, seed=0)
    return fit_pairs(train, holdout, replace(SMALL, **changes), key=KEY), fresh


def scores(score: PairScore, obs: np.ndarray, action: np.ndarray) -> np.ndarray:
    return np.asarray(jax.vmap(score)(jnp.asarray(obs, jnp.float32), jnp.asarray(action, jnp.float32)))


@pytest.mark.parametrize("kind", ["circle", "tank"])
@pytest.mark.parametrize("spreads", [10.0, 100.0])
def test_far_away_is_never_trusted(kind: str, spreads: float) -> None:
    score, fresh = fitted(kind)
    rng = np.random.default_rng(0)
    pairs = np.concatenate([fresh.obs, fresh.action], axis=1)[:1000]
    size = pairs.std(axis=0)
    anywhere = rng.standard_normal(pairs.shape)
    anywhere /= np.linalg.norm(anywhere, axis=1, keepdims=True)
    column = np.eye(pairs.shape[1])[rng.integers(0, pairs.shape[1], len(pairs))]
    for direction in (anywhere, column, -column):
        moved = pairs + spreads * size * direction
        found = scores(score, moved[:, : fresh.obs_dim], moved[:, fresh.obs_dim :])
        assert np.mean(found > float(score.limit)) >= 0.99


def test_the_distance_from_the_manifold_grows_without_bound() -> None:
    score, fresh = fitted("tank")
    found = [
        float(
            jnp.median(
                jax.vmap(score.distance)(jnp.asarray(fresh.obs[:200]) + size, jnp.asarray(fresh.action[:200]))
            )
        )
        for size in (0.0, 10.0, 100.0, 1000.0)
    ]
    assert found[0] < float(score.reach) < found[1]
    assert found[2] == pytest.approx(10 * found[1], rel=0.3)
    assert found[3] == pytest.approx(10 * found[2], rel=0.1)


@pytest.mark.parametrize("kind", ["circle", "tank"])
def test_fresh_pairs_are_trusted_about_as_often_as_asked(kind: str) -> None:
    score, fresh = fitted(kind)
    alarms = np.mean(scores(score, fresh.obs, fresh.action) > float(score.limit))
    assert alarms <= 0.05, "one in a hundred was asked for; rows of an episode are no independent draws"


def test_the_surprise_of_fresh_pairs_is_one_on_average() -> None:
    score, fresh = fitted("circle")
    found = np.asarray(score.surprise(jnp.asarray(scores(score, fresh.obs, fresh.action))))
    assert found.mean() == pytest.approx(1.0, abs=0.3)  # a score of a fold knows less than the one of all
    assert found.min() == pytest.approx(1.0 - np.log(2.0))
    assert float(score.surprise(jnp.asarray(jnp.nan))) > 9.0
    assert np.all(np.diff(np.asarray(score.surprise(jnp.linspace(-9.0, 99.0, 50)))) >= 0.0)


def test_the_surprise_of_a_score_is_how_rare_it_is_to_a_policy_too() -> None:
    score, _ = fitted("circle")
    ladder = np.asarray(score.ladder)
    asked = np.linspace(ladder[0] + 1e-3, ladder[-1], 40)
    rare = np.log(PlainPairScore.of(score).one_in(asked))
    np.testing.assert_allclose(np.asarray(score.surprise(jnp.asarray(asked))), rare, rtol=1e-3)


def test_a_pair_beside_the_manifold_is_known_though_its_columns_are_usual() -> None:
    """No bounding box and no ellipsoid could: each column keeps its range, and so does the covariance."""
    score, fresh = fitted("circle")
    inner = 0.5 * fresh.obs
    usual, odd = scores(score, fresh.obs, fresh.action), scores(score, inner, fresh.action)
    assert auroc(usual, odd) > 0.95
    parts = jax.vmap(score.terms)(jnp.asarray(inner, jnp.float32), jnp.asarray(fresh.action))
    assert float(jnp.mean(parts["mahalanobis"])) == 0.0


@pytest.mark.parametrize(("changes", "terms"), [
    ({"negatives": "none"}, {"reconstruction", "mahalanobis"}),
    ({"distance": False, "negatives": "noise"}, {"odds"}),
])  # fmt: skip
def test_every_part_is_a_switch(changes: dict, terms: set[str]) -> None:
    train, holdout = circle(600).split(0.2, seed=0)
    quick = replace(SMALL, autoencoder_steps=20, steps=20, **changes)
    score = fit_pairs(train, holdout, quick, key=KEY)
    assert set(score.terms(jnp.zeros(2), jnp.zeros(1))) == terms
    assert np.isfinite(float(score(jnp.full(2, 1e6), jnp.zeros(1))))


def test_moves_along_the_manifold_stay_nearer_to_it_than_noise_of_their_size() -> None:
    score, fresh = fitted("circle")
    pairs = jax.vmap(score.inputs.pair)(jnp.asarray(fresh.obs[:500]), jnp.asarray(fresh.action[:500]))
    along = PairSettings(negatives="manifold", sigma=(0.5, 0.5000001))
    keys = jax.random.split(KEY, len(pairs))
    moved = jax.vmap(lambda pair, k: score.negative(pair, along, key=k))(pairs, keys)
    length = jnp.linalg.norm(moved - pairs, axis=1, keepdims=True)
    noise = jax.random.normal(KEY, pairs.shape)
    off = pairs + length * noise / jnp.linalg.norm(noise, axis=1, keepdims=True)
    distance = jax.vmap(score.off_manifold)
    assert float(jnp.median(length)) > 0.1
    assert float(jnp.mean(distance(moved))) < 0.7 * float(jnp.mean(distance(off)))


def test_noise_is_on_states_on_actions_or_on_both() -> None:
    moved = jax.vmap(lambda k: noisy(jnp.zeros(5), 3, (0.5, 1.0), key=k))(jax.random.split(KEY, 900))
    state, action = (np.any(np.asarray(part) != 0.0, axis=1) for part in (moved[:, :3], moved[:, 3:]))
    assert np.mean(state & action) == pytest.approx(1 / 3, abs=0.07)
    assert np.mean(state & ~action) == pytest.approx(1 / 3, abs=0.07)
    assert not np.any(~state & ~action)


def test_a_conformal_limit_is_exceeded_as_rarely_as_promised() -> None:
    rng = np.random.default_rng(0)
    rates = [np.mean(rng.normal(size=4000) > limit_of(rng.normal(size=99), 0.9)) for _ in range(300)]
    assert np.mean(rates) == pytest.approx(0.1, abs=0.01)
    assert limit_of(np.arange(10.0), 0.999) == 9.0, "more than so few can promise: the largest of them"


def test_a_log_with_fewer_episodes_than_folds_is_refused() -> None:
    train, holdout = circle(40).split(0.3, seed=0)
    with pytest.raises(UserError, match=r"4 episodes has no 7 folds \(world.pairs.folds\)"):
        fit_pairs(train, holdout, replace(SMALL, folds=7), key=KEY)


def test_a_world_is_asked_for_scores_and_errors_of_pairs() -> None:
    """The error to expect is the model's near the log, and does not fall with the distance from it."""
    score, fresh = fitted("circle")
    world = World(TOY, lambda o, a, s: s[0], trust=TrustRegion(NEVER, pairs=score))
    found = np.asarray(world.pair_score(fresh.obs[:6].reshape(2, 3, 2), fresh.action[:6].reshape(2, 3, 1)))
    np.testing.assert_allclose(
        found.ravel(), scores(score, fresh.obs[:6], fresh.action[:6]), rtol=1e-4, atol=1e-4
    )
    sizes = [0.0, 3.0, 10.0, 30.0, 100.0]
    errors = [np.median(world.expected_error(fresh.obs[:200] + size, fresh.action[:200])) for size in sizes]
    assert all(low < high for low, high in pairwise(errors))
    with pytest.raises(UserError, match="no trust region"):
        World(TOY, lambda o, a, s: s[0]).pair_score(fresh.obs, fresh.action)
