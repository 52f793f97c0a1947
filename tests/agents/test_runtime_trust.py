"""Trust while a policy runs: how rare, which columns, what acts instead, and how much of a log is inside."""

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from rich.console import Console

from mcetm import Columns, Policy, Transitions, UserError, load_policy
from mcetm.agents.inside import inside_of
from mcetm.cli import main
from mcetm.dynamics import PairSettings, PlainPairScore, fit_pairs
from mcetm.dynamics.pairs import RUNGS
from mcetm.files import write_json
from mcetm.pipeline.config import plain_of
from mcetm.pipeline.presets import make_config
from mcetm.report.inside import show_inside
from tests.export.example import observations, scored_policy


def ring(rows: int = 3000, seed: int = 0) -> Transitions:
    """Observations on a circle and one number that never leaves its range; actions of their own."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, rows)
    obs = np.stack([np.cos(angle), np.sin(angle), rng.uniform(-1, 1, rows)], axis=1)
    ends = np.arange(rows) % 30 == 29
    action = rng.uniform(-1, 1, (rows, 2))
    return Transitions.from_arrays(obs, action, np.zeros(rows), obs, np.zeros(rows, bool), ends)


@pytest.fixture(scope="module")
def fitted() -> PlainPairScore:
    train, holdout = ring().split(0.3, seed=0)
    small = PairSettings(
        width=16, autoencoder_width=16, steps=150, autoencoder_steps=150, batch_size=64, folds=1
    )
    return PlainPairScore.of(fit_pairs(train, holdout, small, key=jax.random.key(0)))


def test_a_rarity_is_how_often_fresh_pairs_have_it(fitted: PlainPairScore) -> None:
    fresh = ring(20_000, seed=1)
    rarity = fitted.one_in(fitted(fresh.obs.astype("f4"), fresh.action.astype("f4")))
    assert rarity.min() >= 2
    assert rarity.max() <= fitted.unseen + 1 == 901
    for count in (5, 20, 100):
        assert np.mean(rarity >= count) == pytest.approx(1 / count, rel=0.4)
    assert np.all(np.diff(fitted.one_in(np.linspace(-50, 500, 200))) >= 0), (
        "a higher score is never less rare"
    )
    assert fitted.one_in(np.array(np.nan)) == 901
    assert float(fitted.one_in(np.array(fitted.limit))) == pytest.approx(200, rel=0.05)


def test_the_column_that_is_off_is_named(fitted: PlainPairScore) -> None:
    log = ring(200, seed=2)
    obs, action = log.obs.astype("f4"), log.action.astype("f4")
    obs[:, 2] += 40.0
    found = fitted.columns(obs, action)
    assert found.shape == (200, 5)
    assert (found.argmax(axis=1) == 2).mean() > 0.95
    action[:, 1] -= 60.0
    both = np.argsort(-fitted.columns(obs, action), axis=1)[:, :2]
    assert {2, 4} == set(both.ravel().tolist())


def test_a_policy_says_it_in_words() -> None:
    policy, obs = scored_policy(), observations()
    trust = policy.trust(obs)
    assert trust.one_in is not None
    assert trust.one_in.shape == trust.score.shape
    assert trust.columns is not None
    assert trust.columns.shape == (len(obs), 5)
    reasons = trust.because()
    assert all(why == () for why, good in zip(reasons, trust.trusted, strict=True) if good)
    assert set().union(*reasons) <= set(policy.names)
    assert policy.names[0] == "level of tank 1"
    one = policy.trust(obs[0])
    assert one.columns is not None
    assert one.columns.shape == (5,)
    assert str(one).startswith("as unusual as 1 in ")
    assert "(outside: " in str(policy.trust(1e3 * np.eye(3, dtype="f4")[0]))


def test_a_fallback_acts_where_the_policy_is_not_trusted() -> None:
    policy, obs = scored_policy(), observations()
    inside, plain = policy.trust(obs).trusted, policy(obs)
    assert 0 < inside.sum() < len(obs)
    still = policy(obs, fallback=[0.5, 2.0])
    np.testing.assert_array_equal(still[inside], plain[inside])
    np.testing.assert_array_equal(still[~inside], np.tile(np.array([0.5, 2.0], "f4"), ((~inside).sum(), 1)))
    other = policy(obs, fallback=lambda rows: rows[:, :2] * 0 + 1)
    np.testing.assert_array_equal(other[~inside], 1.0)
    far = np.flatnonzero(~inside)[0]
    np.testing.assert_array_equal(policy(obs[far], fallback=[0.5, 2.0]), np.array([0.5, 2.0], "f4"))
    with pytest.raises(UserError, match=r"fallback gives actions of the shape \(3,\)"):
        policy(obs, fallback=[1.0, 2.0, 3.0])
    with pytest.raises(UserError, match="not made of numbers"):
        policy(obs, fallback="still")
    with pytest.raises(UserError, match="an observation is not finite"):
        policy(np.full(3, np.nan), fallback=[0.5, 2.0])


@pytest.mark.parametrize("value", [2.1, -2.1, np.nan, np.inf, 1e39])
def test_a_fallback_keeps_to_the_bounds_of_the_policy(value: float) -> None:
    policy, obs = scored_policy(), observations()
    assert policy.network.bounds == ((-2.0, 0.0), (2.0, 10.0))
    inside = obs[policy.trust(obs).trusted]
    words = r"The fallback gives .* for action 0, which has to be from -2 to 2\."
    with pytest.raises(UserError, match=words):
        policy(obs, fallback=lambda rows: np.full((len(rows), 2), [value, 10.0]))
    with pytest.raises(UserError, match=words):  # before it is needed
        policy(inside, fallback=[value, 10.0])
    policy(obs, fallback=[-2.0, 10.0])
    policy(inside, fallback=lambda rows: pytest.fail("nobody was to be asked"))


def test_a_rarity_is_saved(tmp_path: Path) -> None:
    policy, obs = scored_policy(), observations()
    policy.save(tmp_path)
    again = load_policy(tmp_path).trust(obs)
    np.testing.assert_array_equal(again.one_in, policy.trust(obs).one_in)
    assert len(RUNGS) == len(policy.pairs.ladder)  # pyright: ignore[reportOptionalMemberAccess]


def policy_on_ring(fitted: PlainPairScore) -> Policy:
    return replace(scored_policy(trust=False), world=None, loaded=fitted)


def test_how_much_of_a_log_is_inside(fitted: PlainPairScore) -> None:
    policy, log = policy_on_ring(fitted), ring(600, seed=3)
    found = inside_of(policy, log)
    assert found.rows == 600
    assert found.logged is not None
    assert found.logged > 0.97
    assert found.expected == pytest.approx(0.995, abs=1e-3)
    assert len(found.episodes) == 20
    assert np.mean(found.episodes) == pytest.approx(found.policy)
    moved = replace(log, obs=log.obs + np.array([0.0, 0.0, 50.0], "f4"))
    away = inside_of(policy, moved)
    assert away.logged == away.policy == 0.0
    assert away.columns[0][0] == "Δp %s"
    said = io.StringIO()
    show_inside({"seed-0": away}, moved, Console(file=said, width=200))
    assert "seed-0: what is outside is so by Δp %s" in said.getvalue()
    narrow = Transitions.from_arrays(
        **{
            name: getattr(log, name)[:, :2] if name in ("obs", "next_obs") else getattr(log, name)
            for name in ("obs", "action", "reward", "next_obs", "terminated", "truncated")
        }
    )
    with pytest.raises(UserError, match="observations of 2 numbers, not 3"):
        inside_of(policy, narrow)
    with pytest.raises(UserError, match="no score of pairs in its files"):
        inside_of(scored_policy(trust=False), log)


def test_the_command_reads_a_policy_and_a_log(
    fitted: PlainPairScore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy_on_ring(fitted).save(tmp_path / "policy")
    ring(300, seed=4).save(tmp_path / "log.npz")
    assert main(["trust", str(tmp_path / "policy"), str(tmp_path / "log.npz")]) == 0
    assert "to be expected" in capsys.readouterr().out
    assert main(["trust", str(tmp_path / "policy"), str(tmp_path / "log.npz"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["policy"]["rows"] == 300
    assert main(["trust", str(tmp_path / "policy"), str(tmp_path / "none.npz")]) == 2


def test_the_columns_of_a_run_are_those_of_another_table_and_of_nothing_else(
    fitted: PlainPairScore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, run = ring(90, seed=5), tmp_path / "run"
    columns = Columns(obs=("x", "y", "z"), action=("u", "v"), reward="r", truncated="end")
    config = replace(make_config("quick", dataset="mine.csv", algo="bc"), columns=columns)
    write_json(run / "config.json", plain_of(config))
    policy_on_ring(fitted).save(run / "policy" / "seed-0")
    log.save(tmp_path / "log.npz")
    rows = np.column_stack([log.obs, log.action, log.reward, log.truncated])
    np.savetxt(tmp_path / "log.csv", rows, delimiter=",", header="x,y,z,u,v,r,end", comments="", fmt="%.6g")
    for name in ("log.npz", "log.csv"):
        assert main(["trust", str(run), str(tmp_path / name), "--json"]) == 0, name
        assert json.loads(capsys.readouterr().out)["seed-0"]["logged"] > 0.9


@pytest.mark.parametrize(
    ("obs", "words"),
    [
        ([np.nan, 0.0, 0.0], "an observation is not finite"),
        ([[0.0, 0.0, 0.0], [0.0, np.inf, 0.0]], r"an observation is not finite \(row 1\)"),
        ([0.0, 0.0], "takes observations of width 3"),
        (np.zeros((2, 2, 3)), "takes observations of width 3"),
        (1.0, "takes observations of width 3"),
    ],
)
def test_what_is_no_observation_is_refused_and_never_called_trusted(obs: Any, words: str) -> None:
    policy = scored_policy()
    for ask in (policy.trust, lambda rows: policy(rows, fallback=[0.0, 0.0])):
        with pytest.raises(UserError, match=words):
            ask(obs)
