"""How unlike a log's own pairs (s, a) one is: the manifold of pairs, and what near-manifold negatives add.

A model is right near its data and anything elsewhere, and its members cannot be asked: far away they may
agree. So pairs get a score of their own, from forward passes only. For x = (s, a) in spreads of the log it is

    score(x) = b tanh(v / b) + 4 b max(0, d(x) / ρ − 1) + 4 b max(0, m(x) / μ − 1)

d is the root mean square error with which an autoencoder of pairs gives x back. Codes are drawn into the ball
that holds the log's own, so that the decoder's image is compact and d grows with the distance from it. m is
the Mahalanobis distance, which sees what a manifold with long tails does not. ρ and μ are what hardly any
fresh pair of the log's kind exceeds: both terms are 0 near the log and know what is far. v(x, d) is the
log-odds that x is not of the log, learned against pairs beside those of the log: moved along the manifold
(encode, perturb, decode: the paper's hard negatives, carried over from s' to the condition) and off it
(noise). It knows what is near, and is bounded: far from all negatives it means nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from mcetm.data.normalize import Statistics
from mcetm.data.transitions import Transitions
from mcetm.dynamics.batching import batched
from mcetm.dynamics.manifold import Autoencoder, AutoencoderSettings
from mcetm.errors import UserError
from mcetm.nn.members import take_members
from mcetm.nn.mlp import MLP, Activation
from mcetm.nn.scaling import InputScaling, Scaling
from mcetm.settings import Fraction, Positive, Rate, Switch, settings
from mcetm.training import minimise
from mcetm.training.batches import Batch

FEW_EPISODES = 100
"""Held-out episodes below which limits are found over folds of all episodes."""
_FOLDS = 5
_NEARLY_ALL = 0.999
_RIDGE = 1e-3
_NO_LIMIT = float(np.finfo(np.float32).max)
RUNGS = (2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
"""A score's rarity is told on these steps: as unusual as one in so many pairs of the log."""


@settings
class PairSettings:
    """How pairs are scored, and where the limit lies. Sizes are for a laptop."""

    negatives: Literal["manifold", "noise", "both", "none"] = "both"
    """What v learns to tell pairs of the log from; `none` leaves v out."""
    distance: Switch = True
    """Count distances: how badly the autoencoder gives a pair back, and Mahalanobis'. Without them far away
    may look near."""
    quantile: Fraction = 0.995
    """Share of held-out pairs that is trusted."""
    folds: Positive | None = None
    """Fit a score without each fold of episodes, and find the limit on what each has not seen. 1: the
    held-out episodes alone. None: 5 where these are few (fewer than 100), else 1."""
    latent_share: Fraction = 0.7
    """Codes of the autoencoder, as a share of the columns of a pair."""
    autoencoder_width: Positive = 64
    """Units of each hidden layer of encoder and decoder."""
    autoencoder_depth: Positive = 2
    """Hidden layers of encoder and decoder each."""
    autoencoder_steps: Positive = 3000
    """Updates of the autoencoder."""
    sigma: tuple[Rate, Rate] = (0.05, 1.0)
    """Least and largest move of a code, in its spreads; sizes are drawn evenly by their logarithm."""
    noise: tuple[Rate, Rate] = (0.03, 2.0)
    """Least and largest noise on a pair, in spreads of the log."""
    bound: Rate = 5.0
    """b: |v| counts at most so much."""
    width: Positive = 64
    """Units of each hidden layer of v."""
    depth: Positive = 2
    """Hidden layers of v."""
    activation: Activation = "silu"
    """Between layers of v."""
    batch_size: Positive = 256
    """Pairs of a minibatch."""
    learning_rate: Rate = 4e-3
    """Of Adam; it falls to 0 over the steps."""
    steps: Positive = 2000
    """Updates of v."""


class PairScore(eqx.Module):
    """High where a pair is unlike those of the log."""

    inputs: InputScaling
    autoencoder: Autoencoder
    """Of standardised pairs."""
    radius: Float[Array, ""]
    """Of the ball that codes of the log lie in."""
    usual: Float[Array, ""]
    """The median of d over the log."""
    whitening: Float[Array, "columns columns"]
    """Takes standardised pairs to a covariance of 1."""
    odds: MLP | None = None
    """v, of a pair and of how unusual its d is; None leaves it out."""
    bound: float = eqx.field(static=True, default=5.0)
    """b."""
    far: bool = eqx.field(static=True, default=True)
    """Whether d and m count."""
    limit: Float[Array, ""] = eqx.field(default_factory=lambda: jnp.asarray(_NO_LIMIT))
    """The score above which a pair is not trusted."""
    reach: Float[Array, ""] = eqx.field(default_factory=lambda: jnp.asarray(_NO_LIMIT))
    """ρ: the d beyond which hardly any fresh pair of the log's kind is."""
    extent: Float[Array, ""] = eqx.field(default_factory=lambda: jnp.asarray(_NO_LIMIT))
    """μ: the same for m."""
    ladder: Float[Array, " rungs"] = eqx.field(default_factory=lambda: jnp.full(len(RUNGS), _NO_LIMIT))
    """The scores that a fresh pair of the log is above once in so many times as `RUNGS` says."""
    unseen: Float[Array, ""] = eqx.field(default_factory=lambda: jnp.ones(()))
    """How many pairs the ladder was found with: nothing rarer than one among them is known."""

    @property
    def widths(self) -> tuple[int, int]:
        """Of observations and actions."""
        return self.inputs.widths

    @batched
    def __call__(self, obs: Float[Array, " obs"], action: Float[Array, " action"]) -> Float[Array, ""]:
        """The score of pairs, for any leading batch axes."""
        return sum(self._terms(obs, action).values(), jnp.zeros(()))

    def surprise(self, score: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
        """log(one in how many) of a score, whose mean over fresh pairs of the log is 1.

        The ladder begins at the median. Scores below it have the mean of what they would have,
        2 ∫ s exp(−s) ds from 0 to log 2.
        """
        rungs = jnp.log(jnp.asarray(RUNGS, jnp.float32))
        found = jnp.interp(score, self.ladder, jnp.minimum(rungs, jnp.log1p(self.unseen)))
        found = jnp.where(score <= self.ladder[0], 1.0 - jnp.log(2.0), found)
        # A score that is no number is as rare as any.
        return jnp.where(jnp.isnan(score), rungs[-1], found)

    @batched
    def terms(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"]
    ) -> dict[str, Float[Array, ""]]:
        """What the score is the sum of, for any leading batch axes."""
        return self._terms(obs, action)

    @batched
    def distance(self, obs: Float[Array, " obs"], action: Float[Array, " action"]) -> Float[Array, ""]:
        """How far pairs are from the manifold: d, in spreads of the log, root mean square over columns."""
        return self.off_manifold(self.inputs.pair(obs, action))

    @batched
    def mahalanobis(self, obs: Float[Array, " obs"], action: Float[Array, " action"]) -> Float[Array, ""]:
        """How far pairs are from the middle of the log: m."""
        return self._from_middle(self.inputs.pair(obs, action))

    def _terms(self, obs: Array, action: Array) -> dict[str, Float[Array, ""]]:
        pair = self.inputs.pair(obs, action)
        found: dict[str, Array] = {}
        if self.odds is not None:
            found["odds"] = self.bound * jnp.tanh(self.odds(self.seen_by_odds(pair))[0] / self.bound)
        if self.far:
            beyond = lambda found, most: 4.0 * self.bound * jnp.maximum(0.0, found / most - 1.0)  # noqa: E731
            found["reconstruction"] = beyond(self.off_manifold(pair), self.reach)
            found["mahalanobis"] = beyond(self._from_middle(pair), self.extent)
        return found

    def _from_middle(self, pair: Float[Array, " columns"]) -> Float[Array, ""]:
        return jnp.linalg.norm(self.whitening @ pair)

    def off_manifold(self, pair: Float[Array, " columns"]) -> Float[Array, ""]:
        """The error d of a standardised pair."""
        given_back = self.autoencoder.decode(self.code(pair))
        # The tiny constant keeps the root differentiable.
        return jnp.sqrt(((given_back - pair) ** 2).mean() + 1e-12)

    def code(self, pair: Float[Array, " columns"]) -> Float[Array, " latent"]:
        """The code of a standardised pair, inside the ball."""
        return self.inside(self.autoencoder.encode(pair))

    def inside(self, code: Float[Array, " latent"]) -> Float[Array, " latent"]:
        """A code, or the nearest to it inside the ball."""
        length = jnp.sqrt((code**2).sum() + 1e-12)
        return code * jnp.minimum(1.0, self.radius / length)

    def seen_by_odds(self, pair: Float[Array, " columns"]) -> Float[Array, " more"]:
        """What v sees of a standardised pair."""
        return jnp.append(pair, jnp.log1p(self.off_manifold(pair) / self.usual))

    def negative(
        self, pair: Float[Array, " columns"], config: PairSettings, *, key: PRNGKeyArray
    ) -> Float[Array, " columns"]:
        """A standardised pair beside one of the log: along the manifold, off it, or either."""
        pick_key, along_key, noise_key = jax.random.split(key, 3)
        along = self._along(pair, config, key=along_key)
        off = noisy(pair, self.inputs.obs.mean.shape[0], config.noise, key=noise_key)
        if config.negatives == "both":
            return jnp.where(jax.random.bernoulli(pick_key), along, off)
        return along if config.negatives == "manifold" else off

    def _along(self, pair: Array, config: PairSettings, *, key: PRNGKeyArray) -> Float[Array, " columns"]:
        """The pair, moved by what a move of its code changes: the decoder's own error would give it away."""
        size_key, noise_key = jax.random.split(key)
        code = self.code(pair)
        moved = code + _size(config.sigma, key=size_key) * jax.random.normal(noise_key, code.shape)
        moved = self.inside(moved)
        return pair + self.autoencoder.decode(moved) - self.autoencoder.decode(code)


def noisy(
    pair: Float[Array, " columns"], obs_dim: int, sizes: tuple[float, float], *, key: PRNGKeyArray
) -> Float[Array, " columns"]:
    """A standardised pair with noise on the state, on the action or on both, each of a size of its own."""
    size_key, part_key, noise_key = jax.random.split(key, 3)
    drawn = _size(sizes, (2,), key=size_key)
    kept = jax.random.randint(part_key, (), 0, 3)  # 0: the state stays, 1: the action, 2: neither
    drawn = jnp.where(jnp.arange(2) == kept, 0.0, drawn)
    state = jnp.arange(pair.shape[0]) < obs_dim
    return pair + jnp.where(state, drawn[0], drawn[1]) * jax.random.normal(noise_key, pair.shape)


def _size(bounds: tuple[float, float], shape: tuple[int, ...] = (), *, key: PRNGKeyArray) -> Array:
    low, high = np.log(bounds)
    return jnp.exp(jax.random.uniform(key, shape, minval=low, maxval=high))


def fit_pairs(
    train: Transitions,
    holdout: Transitions,
    config: PairSettings | None = None,
    *,
    key: PRNGKeyArray,
    folder: Path | None = None,
) -> PairScore:
    """The score of a log's pairs, with a limit that fresh pairs of its kind exceed as rarely as asked.

    With one fold the limit is a quantile over the held-out pairs. With several, a score is fitted without
    each fold of all episodes and applied to that fold; the one that is returned is fitted to all of them.
    """
    config = config or PairSettings()
    episodes = train.num_episodes + holdout.num_episodes
    folds = config.folds or (min(_FOLDS, episodes) if holdout.num_episodes < FEW_EPISODES else 1)
    if folds == 1:
        log, unseen, seen = train, [holdout], np.arange(len(train))[None]
    else:
        log = train.join(holdout)
        unseen, seen = _in_folds(log, folds)
    scores = _fit(log, jnp.asarray(seen), config, key=key, folder=folder)
    each = [take_members(scores, i) for i in range(len(unseen))]
    # One limit for all: a fold's own would depend on the few episodes that it has not seen.
    quantile = lambda of: jnp.asarray(  # noqa: E731
        limit_of(
            np.concatenate([_over_rows(of(s), part) for s, part in zip(each, unseen, strict=True)]),
            config.quantile,
        )
    )
    reach, extent = quantile(lambda s: s.distance), quantile(lambda s: s.mahalanobis)
    each = [replace(score, reach=reach, extent=extent) for score in each]
    fresh = np.concatenate([_over_rows(s, part) for s, part in zip(each, unseen, strict=True)])
    return replace(
        take_members(scores, -1),
        limit=jnp.asarray(limit_of(fresh, config.quantile)),
        reach=reach,
        extent=extent,
        ladder=jnp.asarray([limit_of(fresh, 1.0 - 1.0 / rung) for rung in RUNGS]),
        unseen=jnp.asarray(float(len(fresh))),
    )


def _fit(
    log: Transitions,
    seen: Int[Array, "members rows"],
    config: PairSettings,
    *,
    key: PRNGKeyArray,
    folder: Path | None,
) -> PairScore:
    """One score for each set of rows, on a leading axis."""
    statistics = Statistics.of(log)
    inputs = InputScaling.of(statistics.obs, statistics.action)
    columns = log.obs_dim + log.action_dim
    sizes = AutoencoderSettings(
        latent_dim=max(1, round(config.latent_share * columns)),
        width=config.autoencoder_width,
        depth=config.autoencoder_depth,
        batch_size=config.batch_size,
        learning_rate=config.learning_rate,
        steps=config.autoencoder_steps,
    )
    code_key, odds_key, first_key, second_key = jax.random.split(key, 4)
    unit = Scaling(jnp.zeros(columns), jnp.ones(columns))
    more: dict[str, Any] = {"members": True, "schedule": "cosine", "depends_on": {"pairs": asdict(config)}}
    place = lambda name: None if folder is None else folder / name  # noqa: E731

    def draw(data: tuple[Batch, Array], key: PRNGKeyArray) -> Float[Array, "batch columns"]:
        batch, rows = data
        drawn = batch.take(rows[jax.random.randint(key, (config.batch_size,), 0, rows.shape[0])])
        return jax.vmap(inputs.pair)(drawn.obs, drawn.action)

    def reconstruct(model: Autoencoder, data: Any, key: PRNGKeyArray) -> tuple[Array, dict[str, Array]]:
        return (jax.vmap(model.residual)(draw(data, key)) ** 2).mean(), {}

    manifolds, _ = minimise(
        reconstruct,
        eqx.filter_vmap(lambda k: Autoencoder(sizes, unit, key=k))(jax.random.split(code_key, len(seen))),
        log,
        sizes,
        key=first_key,
        own=seen,
        folder=place("autoencoder"),
        label="manifold of pairs",
        **more,
    )
    scores = _with_ranges(manifolds, inputs, Batch.of(log), seen, config)
    if config.negatives == "none":
        return scores

    def discriminate(odds: MLP, data: Any, key: PRNGKeyArray) -> tuple[Array, dict[str, Array]]:
        batch, (rows, score) = data
        draw_key, move_key = jax.random.split(key)
        pairs = draw((batch, rows), draw_key)
        keys = jax.random.split(move_key, len(pairs))
        negatives = jax.vmap(lambda pair, k: score.negative(pair, config, key=k))(pairs, keys)
        v = lambda rows: jax.vmap(lambda pair: odds(score.seen_by_odds(pair))[0])(rows)  # noqa: E731
        return jax.nn.softplus(v(pairs)).mean() + jax.nn.softplus(-v(negatives)).mean(), {}

    make = partial(MLP, columns + 1, 1, width=config.width, depth=config.depth, activation=config.activation)
    odds, _ = minimise(
        discriminate,
        eqx.filter_vmap(lambda k: make(key=k))(jax.random.split(odds_key, len(seen))),
        log,
        config,
        key=second_key,
        own=(seen, scores),
        folder=place("odds"),
        label="pairs against their negatives",
        **more,
    )
    return eqx.tree_at(lambda s: s.odds, scores, odds, is_leaf=lambda part: part is None)


@eqx.filter_jit
def _with_ranges(
    manifolds: Autoencoder,
    inputs: InputScaling,
    data: Batch,
    seen: Int[Array, "members rows"],
    config: PairSettings,
) -> PairScore:
    """Standardise the codes of each, and note how long they are and how well pairs are given back."""

    def of_rows(model: Autoencoder, rows: Int[Array, " rows"]) -> PairScore:
        own = data.take(rows)
        pairs = jax.vmap(inputs.pair)(own.obs, own.action)
        wide = (pairs.shape[1], pairs.shape[1])
        codes = jax.vmap(model.encoder)(pairs)
        scale = Scaling(codes.mean(axis=0), jnp.maximum(codes.std(axis=0), 1e-6))
        lengths = jnp.linalg.norm(jax.vmap(scale.normalize)(codes), axis=1)
        score = PairScore(
            inputs,
            eqx.tree_at(lambda m: m.code_scale, model, scale),
            jnp.quantile(lengths, _NEARLY_ALL),
            jnp.ones(()),
            jnp.linalg.inv(jnp.linalg.cholesky(jnp.cov(pairs.T).reshape(wide) + _RIDGE * jnp.eye(*wide))),
            bound=config.bound,
            far=config.distance,
        )
        off = jnp.maximum(jax.lax.map(score.off_manifold, pairs, batch_size=4096), 1e-6)
        return replace(score, usual=jnp.median(off))

    return eqx.filter_vmap(of_rows)(manifolds, seen)


@eqx.filter_jit
def _over_batch(one: Callable[[Array, Array], Array], data: Batch) -> Array:
    return jax.lax.map(lambda row: one(row.obs, row.action), data, batch_size=4096)


def _over_rows(one: Callable[[Array, Array], Array], log: Transitions) -> Float[np.ndarray, " rows"]:
    """A number for every pair of a log."""
    return np.asarray(_over_batch(one, Batch.of(log)))


def limit_of(scores: Float[np.ndarray, " rows"], quantile: float) -> float:
    """The ⌈(n + 1) q⌉-th smallest: a fresh pair is above it with probability at most 1 − q (conformal)."""
    place = math.ceil((len(scores) + 1) * quantile)
    return float(np.sort(scores)[min(place, len(scores)) - 1])


def _in_folds(log: Transitions, folds: int) -> tuple[list[Transitions], Int[np.ndarray, "sets rows"]]:
    """Episodes dealt out in turn; and for each fold the rows outside it, then all rows, all of one length."""
    if log.num_episodes < folds:
        raise UserError(f"A log of {log.num_episodes} episodes has no {folds} folds (world.pairs.folds).")
    fold = np.repeat(np.arange(log.num_episodes) % folds, log.episode_lengths)
    rows = [*(np.flatnonzero(fold != i) for i in range(folds)), np.arange(len(log))]
    parts = [log.select_episodes(np.arange(i, log.num_episodes, folds)) for i in range(folds)]
    return parts, np.stack([np.resize(some, len(log)) for some in rows])
