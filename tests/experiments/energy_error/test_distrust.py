"""Scores of one (s, a) against their definitions, rungs against the simulator, values against the log's."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float, PRNGKeyArray

import mcetm
from mcetm import Statistics, Transitions
from mcetm.agents import BC
from mcetm.envs import states_of, true_transitions
from mcetm.tasks import Recipe, RecipePart, get_task
from mcetm_experiments.energy_error import ladder
from mcetm_experiments.energy_error.distrust import SCORES, Subject
from mcetm_experiments.energy_error.ladder import ACTION_NOISE, DEPTHS, STATE_NOISE, rungs
from mcetm_experiments.energy_error.value import ValueConfig, evaluate_behaviour
from mcetm_experiments.shared.batched import in_batches
from tests.experiments.subjects import untrained


class FirstComponent(eqx.Module):
    """Stands still, and values a state by its first component."""

    def act(self, obs: Float[Array, " obs"], *, key: PRNGKeyArray) -> Float[Array, " action"]:
        return jnp.zeros(3)

    def next_value(self, obs: Float[Array, " obs"], *, key: PRNGKeyArray) -> Float[Array, ""]:
        return obs[0]


@pytest.fixture(scope="module")
def log() -> Transitions:
    return mcetm.collect("hopper", 400, "uniform", processes=1)


@pytest.fixture(scope="module")
def subject(log: Transitions) -> Subject:
    regressor, energy, threshold = untrained(log)
    parts = {"regressor": regressor, "energy": energy, "threshold": threshold}
    return Subject.of(log, 400, seed=0, valuer=FirstComponent(), count=3, **parts)


def test_scores_are_what_they_are_called(log: Transitions, subject: Subject) -> None:
    obs, action = jnp.asarray(log.obs[7]), jnp.asarray(log.action[7])
    key = jax.random.key(3)
    found = eqx.filter_jit(lambda s: s.look(obs, action, obs, key=key))(subject)
    scores = {name: float(score) for name, score in found["scores"].items()}
    assert set(scores) == set(SCORES)
    drawn = subject.energy.samples(obs, action, 3, key=jax.random.split(key, 5)[0])
    margin = np.asarray(drawn.energy).min(axis=1) - [1.0, 2.0]
    # Untrained corrections are 0: the least energy of a member is that of its anchor's mean.
    stds = np.asarray(eqx.filter_vmap(lambda m: m.preconditioner(obs, action))(subject.energy.members))
    least = np.log(np.sqrt(2 * np.pi) * stds / np.asarray(Statistics.of(log).change.std)).sum(axis=1)
    assert scores["MC-ETM energy"] == pytest.approx((least - [1.0, 2.0]).mean(), rel=1e-3)
    anchors = eqx.filter_vmap(lambda m: m.anchor.predict(obs, action)[0])(subject.energy.members)
    total = (stds**2 + np.var(anchors, axis=0, ddof=1)) / np.asarray(subject.change) ** 2
    expected = np.sqrt(np.sqrt(total.mean(axis=1)).prod())
    assert scores["MC-ETM expected error"] == pytest.approx(expected, rel=1e-3)
    # At the end of the chain that predicts, which begins at the mean and has nowhere lower to go.
    assert scores["MC-ETM terminal energy"] == pytest.approx(scores["MC-ETM energy"], abs=1e-3)
    np.testing.assert_allclose(found["truncated"]["minimum"], (margin > 0).mean())
    states = np.asarray(drawn.next_obs)
    assert scores["MC-ETM Q-penalty"] == pytest.approx(states[..., 0].mean(axis=1).std(ddof=1), rel=1e-3)
    spread = (states.mean(axis=1) / np.asarray(subject.change)).std(axis=0)
    assert scores["MC-ETM member spread"] == pytest.approx(np.sqrt((spread**2).mean()), rel=1e-3)
    means, stds = (np.asarray(x) for x in subject.regressor.of_members(obs, action))
    logs = np.log(stds / np.asarray(subject.change))
    assert scores["Gaussian log-std"] == pytest.approx(logs.mean(), abs=1e-4)
    total = ((stds**2).mean(axis=0) + means.var(axis=0, ddof=1)) / np.asarray(subject.change) ** 2
    assert scores["Gaussian total spread"] == pytest.approx(np.sqrt(total.mean()), rel=1e-3)
    assert scores["max-aleatoric (MOPO)"] == pytest.approx(np.linalg.norm(stds, axis=1).max(), rel=1e-4)
    apart = np.linalg.norm((means[0] - means[1]) / np.asarray(subject.change))
    assert scores["ensemble disagreement"] == pytest.approx(apart, rel=1e-3)
    assert scores["nearest neighbour"] == pytest.approx(0.0, abs=1e-5)  # a row of the log itself
    away = (means.mean(axis=0) - log.obs[7]) / np.asarray(subject.change)
    error = float(found["errors"]["Gaussian ensemble"]["error"])
    assert error == pytest.approx(np.sqrt((away**2).mean()), rel=1e-3)


def test_batches_cover_every_row_once_and_in_order() -> None:
    found = in_batches(lambda x: {"twice": 2 * x}, (np.arange(10),), 4)
    np.testing.assert_array_equal(found["twice"], 2 * np.arange(10))


class Lifted(eqx.Module):
    """A model under which the body rises by a thousandth at every step."""

    def sample(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], *, key: PRNGKeyArray
    ) -> Float[Array, " obs"]:
        return obs.at[0].add(1e-3)


def test_rungs_lead_away_from_the_data_and_have_true_next_states(
    log: Transitions, subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipes = {
        name: Recipe(name, name.split("-")[0], 400, (RecipePart(("uniform",)),))
        for name in ("hopper-medium", "hopper-random", "walker2d-random")
    }
    halves = (RecipePart(("uniform",)), RecipePart(("uniform",), weight=2.0))
    recipes["hopper-medium-expert"] = Recipe("hopper-medium-expert", "hopper", 400, halves)
    collected: list[tuple[RecipePart, ...]] = []
    collect = ladder.collect_recipe

    def noted(recipe: Recipe, **how: int) -> Transitions:
        collected.append(recipe.parts)
        return collect(recipe, **how)

    monkeypatch.setattr(ladder, "collect_recipe", noted)
    monkeypatch.setattr(ladder, "RECIPES", recipes)
    lifted = eqx.tree_at(lambda s: s.energy, subject, Lifted())
    task = get_task("hopper")
    found = list(rungs(task, log, log, lifted, dataset="hopper-medium", rows=60, batch_size=25, seed=0))
    names = [rung.name for rung in found]
    levels = 2  # neither the log's own level nor another task's
    assert len(found) == 1 + len(STATE_NOISE) + len(ACTION_NOISE) + levels + len(DEPTHS) + 1
    assert [rung.name for rung in found if rung.beside] == ["level expert half"] == names[-1:]
    assert collected == [recipes["hopper-random"].parts, halves, halves[1:]]
    holdout, by_name = found[0], dict(zip(names, found, strict=True))
    small = by_name["state noise 0.01"]
    assert len(small) == 60
    size = (small.obs - holdout.obs).std(axis=0)[5:]
    np.testing.assert_allclose(size / np.clip(log.infos["qvel"], -10, 10).std(axis=0), 0.01, rtol=0.4)
    for rung in found:
        assert not task.termination(rung.obs).any() if task.termination else True
        assert np.abs(rung.action).max() <= 1.0
        slow = (np.abs(rung.obs[:, 5:]) < 10.0).all(axis=1)
        ground_truth = true_transitions(task, *states_of(task, rung.obs[slow]), rung.action[slow])
        # States are rounded to what is seen of them, and contacts are stiff.
        assert np.median(np.abs(ground_truth.next_obs - rung.next_obs[slow])) < 1e-5
    louder = by_name["action noise 1.0"]
    np.testing.assert_array_equal(louder.obs, holdout.obs)
    assert np.abs(louder.action - holdout.action).mean() > 0.3
    for depth in DEPTHS:
        rung = by_name[f"rollout {depth}"]
        np.testing.assert_allclose(rung.obs[:, 0], holdout.obs[: len(rung), 0] + depth * 1e-3, atol=1e-4)
        assert (rung.action == 0.0).all()


def test_the_behaviours_value_is_that_of_the_log() -> None:
    # From −1 to 1 with reward 1, and from there to the end with reward 2.
    obs = np.tile([[-1.0], [1.0]], (100, 1)).astype(np.float32)
    ends = np.tile([False, True], 100)
    log = Transitions.from_arrays(
        obs, np.zeros((200, 1)), np.tile([1.0, 2.0], 100), np.ones_like(obs), ends, np.zeros(200, bool)
    )
    cloning = BC(width=8, batch_size=16, learning_rate=3e-4, steps=10)
    config = ValueConfig(cloning, width=16, discount=0.5, smoothing=0.05, batch_size=32, rate=1e-2, steps=400)
    low = jnp.full(1, -0.01)
    found = evaluate_behaviour(log, low, -low, config, seed=0)
    key = jax.random.key(0)
    values = [float(found.next_value(jnp.full(1, x), key=key)) for x in (-1.0, 1.0)]
    np.testing.assert_allclose(values, [2.0, 2.0], atol=0.1)
    assert float(found.act(jnp.ones(1), key=key)[0]) == pytest.approx(0.0, abs=0.011)
