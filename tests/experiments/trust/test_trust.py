"""The trust study: what it measures is what it says, and it goes on where it was stopped."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import PRNGKeyArray
from rich.console import Console

from mcetm import GaussianEnsemble, World, WorldSettings, load_dataset
from mcetm.dynamics import PairSettings, Samples, TransitionModel
from mcetm_experiments.trust import study, visited
from mcetm_experiments.trust.figures import show_trust
from mcetm_experiments.trust.settings import TrustStudy
from mcetm_experiments.trust.study import directions, run_trust
from mcetm_experiments.trust.visited import on_visited, visitors

PAIRS = PairSettings(width=16, autoencoder_width=16, steps=60, autoencoder_steps=60, batch_size=64, folds=1)
SMALL = SimpleNamespace(
    world=WorldSettings(pairs=PAIRS), model=GaussianEnsemble(width=8, steps=20, batch_size=64)
)


@pytest.mark.parametrize("kind", ["direction", "column"])
def test_far_pairs_lie_as_far_as_said(kind: str) -> None:
    found = directions((50, 4), kind, np.random.default_rng(0))
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0)
    assert ((found != 0.0).sum(axis=1) == (1 if kind == "column" else 4)).all()


def test_the_study_measures_every_score_and_keeps_its_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study, "make_config", lambda *a, **k: SMALL)
    settings = TrustStudy(
        logs=("tank-mixed",), rows=1500, seeds=1, visited=0, models=("gaussian",), out=tmp_path
    )
    results = run_trust(settings)
    found = results["logs"]["tank-mixed"]
    assert found["rows"] == 1500
    for name in ("pair score", "disagreement", "nearest neighbour"):
        aurocs = [found["scores"][name]["auroc"][f"{size:g}"]["mean"] for size in results["noise"]]
        assert aurocs[-1] > 0.65, "three spreads are seen by anybody"
        assert aurocs[0] < aurocs[-1]
        assert 0.0 <= found["scores"][name]["false_alarms"]["mean"] <= 1.0
    assert min(found["scores"]["pair score"]["outside"]["direction 100"]["seeds"]) > 0.99
    interval = found["scores"]["pair score"]["false_alarms_interval"]
    alarms = found["scores"]["pair score"]["false_alarms"]["mean"]
    assert 0.0 <= interval["low"]["mean"] <= alarms <= interval["high"]["mean"] <= 1.0
    # What lies 100 spreads off is cut by a distance: the odds are bounded.
    cut = {term: share["mean"] for term, share in found["cut_by"]["direction 100"].items()}
    assert max(cut["reconstruction"], cut["mahalanobis"]) > 0.99
    errors = [found["expected_error"]["gaussian"][size] for size in ("3", "10", "30", "100")]
    assert errors == sorted(errors), "the error to expect does not fall with the distance"
    assert json.loads((tmp_path / "results.json").read_text())["study"] == "trust"
    said = io.StringIO()
    show_trust(results, Console(file=said, width=200))
    assert "nearest neighbour" in said.getvalue()
    # A second run finds its parts: nothing is measured again.
    monkeypatch.setattr(study, "measure", None)
    assert run_trust(settings)["logs"] == results["logs"]


class Still(TransitionModel):
    """Predicts that nothing changes."""

    @property
    def num_members(self) -> int:
        return 1

    def draw(self, obs: Any, action: Any, count: int, *, key: PRNGKeyArray) -> Samples:
        return Samples(jnp.broadcast_to(obs, (1, count, *obs.shape)))


def test_a_score_is_measured_by_the_large_errors_where_policies_go(monkeypatch: pytest.MonkeyPatch) -> None:
    log = load_dataset("tank-mixed").head(900)
    assert visitors(log) == ("tank-operator",)
    home, away = log.head(450), log.select_episodes([log.num_episodes - 1])
    monkeypatch.setattr(visited, "collect", lambda *a, **k: away)
    after = {obs.tobytes(): following for obs, following in zip(log.obs, log.next_obs, strict=True)}

    def moves(obs: np.ndarray, action: np.ndarray) -> np.ndarray:
        change = np.stack([after[row.tobytes()] - row for row in obs])
        return np.sqrt((change**2).mean(axis=1))

    scores = {"the error itself": moves, "nothing": lambda obs, action: np.zeros(len(obs))}
    world = World(Still(), lambda obs, action, following: jnp.zeros(()))
    found = on_visited(world, scores, home, ["tank-operator"], rows=200, seed=0)["tank-operator"]
    assert found["auroc"] == {"the error itself": 1.0, "nothing": 0.5}
    assert found["spearman"]["the error itself"] == pytest.approx(1.0)
    assert 0.0 < found["large"] < 1.0
