"""`mcetm.fit` and `mcetm.evaluate`, as a person calls them in a notebook."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mcetm
from mcetm import Transitions, UserError
from mcetm.agents import fit as agent_stage
from mcetm.agents.fit import action_bounds
from mcetm.dynamics import GaussianEnsemble, HeadSettings, PairSettings
from tests.agents.test_agents import LOG, world
from tests.dynamics.test_fit import Residual
from tests.export.example import assert_exports

TINY: dict[str, Any] = {"width": 8, "depth": 1, "batch_size": 16, "steps": 4}
GAUSSIAN = GaussianEnsemble(members=2, elites=2, **TINY)
SMALL = mcetm.WorldSettings(
    reward=HeadSettings(width=8, depth=1, batch_size=16, steps=4),
    pairs=PairSettings(width=8, autoencoder_width=8, batch_size=16, steps=4, autoencoder_steps=4, folds=1),
)
BC = mcetm.BC(**TINY)


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Transitions]:
    """Two episodes of the pendulum; the current folder is an empty one, and stays empty."""
    collected = mcetm.collect("pendulum", 400, "uniform", processes=1)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    yield collected
    assert list((tmp_path / "here").iterdir()) == [], "nothing is written unless asked"


def test_model_world_agent_evaluation_and_trust_without_a_folder(tmp_path: Path, log: Transitions) -> None:
    train, holdout = log.split(0.5, seed=0)
    model = mcetm.fit(GAUSSIAN, train, holdout=holdout, seed=0)
    around = mcetm.World.of(model, train, holdout=holdout, config=SMALL, seed=0)
    learner = mcetm.SAC(width=8, batch_size=16, steps=4)
    agent = mcetm.fit(mcetm.MCETM(learner=learner, samples=2), train, world=around, seed=5, seeds=2)
    assert agent.seeds == (5, 6)
    assert [policy.about["seed"] for policy in agent.policies] == [5, 6]
    found = mcetm.evaluate(agent.policies, "pendulum", episodes=2)
    assert len(found.of_policies) == 2
    assert str(found).startswith("pendulum: return -")
    assert found.score is not None
    assert str(found).endswith(f"over 2 policies, score {found.score:.1f} (2 episodes each)")
    trust = agent.policies[0].trust(holdout.obs[:5])
    assert trust.score.shape == (5,)
    assert agent.policies[0].trust(holdout.obs[0]).score.shape == ()
    assert_exports(agent.policies[0], holdout.obs[:9], tmp_path / "exported")
    assert trust.limit == pytest.approx(float(around.trust.pair_limit))  # pyright: ignore[reportOptionalMemberAccess]


def test_a_folder_that_is_asked_for_is_gone_on_with(tmp_path: Path, log: Transitions) -> None:
    first, again = (mcetm.fit(BC, log, folder=tmp_path / "kept") for _ in range(2))
    assert (tmp_path / "kept" / "metrics.jsonl").is_file()
    assert first.history == again.history
    obs = log.obs[:3]
    np.testing.assert_array_equal(first.policies[0](obs), again.policies[0](obs))
    with pytest.raises(UserError, match="belongs to another configuration: 'width' was 8 and is now 9"):
        mcetm.fit(mcetm.BC(**{**TINY, "width": 9}), log, folder=tmp_path / "kept")


def test_a_folder_changes_no_number(tmp_path: Path, log: Transitions) -> None:
    kept, not_kept = (mcetm.fit(BC, log, seed=3, folder=place) for place in (tmp_path / "kept", None))
    np.testing.assert_array_equal(kept.policies[0](log.obs), not_kept.policies[0](log.obs))
    assert_exports(kept.policies[0], log.obs[:9], tmp_path / "exported")


def test_callbacks_get_metrics_and_may_stop_an_agent() -> None:
    seen: list[dict[str, Any]] = []
    rollout = mcetm.agents.RolloutSettings(batch=8, horizon=2, every=5, retain=2, parallel=8)
    algorithm = mcetm.MOPO(learner=mcetm.SAC(width=8, batch_size=16, steps=50), rollout=rollout)

    def watch(metrics: dict[str, Any]) -> bool:
        seen.append(metrics)
        return metrics["step"] >= 10

    agent = mcetm.fit(algorithm, LOG, world=world(), seeds=2, callbacks=[watch])
    assert [line["step"] for line in seen] == [5, 10], "of 50"
    assert np.shape(seen[0]["q"]) == (2,)
    assert seen[0]["rollout_length"][0] == pytest.approx(2.0)
    assert [line["step"] for line in agent.history] == [5, 10]
    assert agent.learner is not None
    assert np.asarray(agent.learner.done).tolist() == [10.0, 10.0]
    assert agent.policies[1](np.zeros(1)).shape == (1,)


def test_a_callback_may_watch_without_a_word() -> None:
    seen: list[int] = []
    agent = mcetm.fit(BC, LOG, callbacks=[lambda metrics: seen.append(metrics["step"])])
    assert seen == [4]
    assert agent.history[-1]["step"] == 4


class BegunError(Exception):
    """A training that should not have begun."""


def test_requests_that_make_no_sense_are_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def begin(*_: object, **__: object) -> None:
        raise BegunError

    monkeypatch.setattr(agent_stage, "train_loop", begin)
    monkeypatch.setattr(agent_stage, "fit_bc", begin)
    asked: Any = mcetm.fit
    for options, words in (
        ({"seeds": 0}, "'seeds' should be a whole number from 1 to 10,000, not 0."),
        ({"seeds": -2}, "'seeds' should be a whole number from 1 to 10,000, not -2."),
    ):
        with pytest.raises(UserError) as refused:
            asked(BC, LOG, **options)
        assert words in str(refused.value)
        assert "\n" not in str(refused.value)
    for options in ({"seeds": 2}, {"world": world()}):
        with pytest.raises(UserError, match="A model is trained once and in no world"):
            asked(GAUSSIAN, LOG, **options)
    with pytest.raises(UserError, match=r"MOBILE learns in a model of the world; give it one \(world=\)"):
        asked(mcetm.MOBILE(), LOG)


def test_settings_are_checked_where_they_are_made() -> None:
    for make, words in (
        (lambda: mcetm.SAC(batch_size=0), "batch_size"),
        (lambda: mcetm.SAC(discount=2.0), "discount"),
        (lambda: mcetm.MOBILE(penalti=1.0), "did you mean 'MOBILE.penalty'"),  # pyright: ignore[reportCallIssue]
        (lambda: mcetm.ManifoldETM(width=0), "width"),
        (lambda: mcetm.MCETM(learner="sac"), "learner"),  # pyright: ignore[reportArgumentType]
    ):
        with pytest.raises(UserError, match=words):
            make()
    with pytest.raises(UserError, match="takes its settings by name"):
        mcetm.MOBILE(1.0)  # pyright: ignore[reportCallIssue]


def test_evaluations_of_one_policy_and_of_several() -> None:
    (policy,) = mcetm.fit(BC, mcetm.collect("pendulum", 400, "uniform", processes=1)).policies
    alone = mcetm.evaluate(policy, "pendulum", episodes=2, seed=1)
    assert alone.std is None
    assert "±" not in str(alone)
    several = mcetm.evaluate([policy, policy], mcetm.get_task("pendulum"), episodes=2, seed=1, processes=2)
    assert several.std == 0.0
    assert several.means.tolist() == [alone.mean, alone.mean], "all meet the same starts"
    assert "± 0 over 2 policies" in str(several)
    for arguments, words in (
        (([], "pendulum"), "There is no policy to evaluate."),
        ((policy, "pendulm"), "did you mean 'pendulum'?"),
        ((policy, "hopper"), "observations of width 3"),
    ):
        with pytest.raises(UserError) as refused:
            mcetm.evaluate(*arguments)
        assert words in str(refused.value)
    with pytest.raises(UserError, match="Episodes must be at least 1 and at most 100,000, not 0"):
        mcetm.evaluate(policy, "pendulum", episodes=0)


LEARNER = mcetm.SAC(width=8, batch_size=16, steps=4)
"""Its sizes do not matter for networks that are not ours."""
AGENTS: dict[str, Any] = {
    "bc": BC,
    "iql": mcetm.IQL(batch_size=16, steps=4),
    "td3bc": mcetm.TD3BC(learner=mcetm.TD3(batch_size=16, steps=4)),
    "cql": mcetm.CQL(learner=LEARNER),
    "edac": mcetm.EDAC(learner=LEARNER),
    "mobile": mcetm.MOBILE(learner=LEARNER, samples=2),
}


@pytest.mark.parametrize("name", AGENTS)
def test_actor_and_critics_take_a_network_of_ones_own(name: str, log: Transitions) -> None:
    around = world() if name == "mobile" else None
    data = LOG if name == "mobile" else log
    agent = mcetm.fit(AGENTS[name], data, world=around, seeds=2, network=Residual)
    assert isinstance(agent.actors.network, Residual)
    assert agent.learner is None or isinstance(agent.learner.critics.networks, Residual)
    first, second = (policy(data.obs[:3]) for policy in agent.policies)
    assert first.shape == (3, data.action_dim)
    assert not np.allclose(first, second), "each seed has its own"
    low, high = action_bounds(data)
    assert ((first >= np.asarray(low)) & (first <= np.asarray(high))).all()
    noisy = agent.policies[0](data.obs[:3], rng=np.random.default_rng(0))
    assert not np.allclose(first, noisy)


def test_a_network_of_ones_own_is_evaluated_and_asked_for_again(log: Transitions, tmp_path: Path) -> None:
    place = tmp_path / "agent"
    agent = mcetm.fit(BC, log, folder=place, network=Residual)
    found = mcetm.evaluate(agent.policies, "pendulum", episodes=2)
    again = mcetm.fit(BC, log, folder=place, network=Residual)
    assert mcetm.evaluate(again.policies, "pendulum", episodes=2).mean == found.mean
    with pytest.raises(UserError, match=r"array '.*' is in only one"):
        mcetm.fit(BC, log, folder=place)
    with pytest.raises(UserError, match="cannot be written down as plain layers; keep the folder"):
        agent.policies[0].save(tmp_path / "policy")
    assert not (tmp_path / "policy").exists()


def test_a_policy_is_saved_where_asked_and_read_back(log: Transitions, tmp_path: Path) -> None:
    policy = mcetm.fit(BC, log, seed=3).policies[0]
    policy.save(tmp_path / "policy")
    again = mcetm.load_policy(tmp_path / "policy")
    np.testing.assert_array_equal(again(log.obs[:5]), policy(log.obs[:5]))
    assert again.about["algorithm"] == "behaviour cloning"
    assert again.about["seed"] == 3
    again.save(tmp_path / "copy")
    assert [f.read_bytes() for f in sorted((tmp_path / "copy").iterdir())] == [
        f.read_bytes() for f in sorted((tmp_path / "policy").iterdir())
    ]


def test_what_a_caller_passes_is_looked_at_before_anything_is_trained() -> None:
    log = mcetm.Transitions.from_arrays(np.zeros((30, 3)), np.zeros((30, 1)))
    with pytest.raises(UserError, match="no rewards, and this job needs them"):
        mcetm.fit(mcetm.IQL(steps=5), log)
    with pytest.raises(UserError, match="should make what can be called; it made NoneType"):
        mcetm.fit(BC, log, network=lambda *a, **k: None)
