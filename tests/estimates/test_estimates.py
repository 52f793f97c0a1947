"""What an estimate says, whether it is believed, and that it survives being written down."""

import io
import json
import re
from dataclasses import replace
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console

import mcetm
from mcetm import (
    Estimate,
    Estimates,
    EstimateSettings,
    Policy,
    PolicyEstimates,
    TrustRegion,
    UserError,
    World,
)
from mcetm.estimates import (
    BehaviourSettings,
    Candidate,
    DoublyRobustSettings,
    FQESettings,
    ModelBasedSettings,
    begin_plan,
    choose,
    load_estimates,
    with_measured,
)
from mcetm.estimates.plan import noise_of
from mcetm.estimates.verdicts import Evidence, ReturnScale, VerdictSettings, believe
from mcetm.report.estimates import draw_estimates, show_choice, show_estimates, show_plan
from tests.estimates.problems import HORIZON, Line, acting, line_log, reward, true_return

SMALL = EstimateSettings(
    fqe=FQESettings(replicas=2, critics=1, width=16, depth=1, batch_size=64, steps=400, learning_rate=1e-2),
    doubly_robust=DoublyRobustSettings(
        behaviour=BehaviourSettings(width=8, depth=1, steps=100), resamples=20
    ),
    model_based=ModelBasedSettings(starts=20, window=3, windows=50),
)
WORLD = World(
    Line(jnp.array([-0.01, 0.01]), beyond=0.45), reward, trust=TrustRegion(disagreement=jnp.array(0.05))
)
"""A good model that knows which actions the log has."""
LOG = line_log(60, width=0.4)
ALIKE, STEERS, FAR = acting(0.0, spread=0.2), acting(-0.3), acting(0.0, 3.0)
"""One acts like the log, one steers to the middle with such actions, one has actions that the log lacks."""


@pytest.fixture(scope="module")
def found() -> Estimates:
    policies = [Policy(network, {}) for network in (ALIKE, STEERS, FAR)]
    return mcetm.estimate(policies, LOG, world=WORLD, settings=SMALL)


def test_every_estimator_finds_the_known_return_within_its_interval(found: Estimates) -> None:
    truth = true_return(STEERS, LOG.obs[LOG.episode_starts]).mean()
    steers = {one.estimator: one for one in found.of_policies[1].of}
    for name in ("fqe", "model"):
        low, high = steers[name].interval or [0.0, 0.0]
        assert low <= truth <= high, name
        assert high - low < 4.0 * LOG.episode_returns.std()
    alike = {one.estimator: one for one in found.of_policies[0].of}
    assert alike["doubly-robust"].value is not None
    assert alike["doubly-robust"].details["effective_episodes"] > 10
    assert found.log_return == pytest.approx(LOG.episode_returns.mean(), rel=1e-5)
    intervals = [one.interval for each in found.of_policies for one in each.of if one.interval is not None]
    for low, high in intervals:
        assert HORIZON * LOG.reward.min() <= low <= high <= HORIZON * LOG.reward.max()
    assert f"undiscounted return of an episode of at most {HORIZON} steps" in found.quantity


def test_a_policy_whose_actions_the_log_does_not_have_is_not_believed(found: Estimates) -> None:
    uncovered = found.of_policies[2]
    assert not uncovered.believed
    assert not any(one.believed for one in uncovered.of)
    by_name = {one.estimator: one for one in uncovered.of}
    assert "unlike the log's" in by_name["fqe"].reasons[0]
    assert by_name["model"].details["steps_outside"] > 0.9
    refused = by_name["doubly-robust"]
    assert (refused.value, refused.interval) == (None, None)
    assert "refused: the weights are worth" in refused.reasons[0]
    assert "not believed" in uncovered.verdict


def test_one_episode_is_not_enough_to_believe_anything() -> None:
    few = replace(SMALL, estimators=("model", "doubly-robust"))
    log = line_log(3).head(HORIZON).with_metadata(source="a name\x1b[2J of anybody's")
    alone = mcetm.estimate(Policy(STEERS, {}), log, world=WORLD, settings=few).of_policies[0]
    assert not alone.believed
    assert alone.of[0].log == "a name\\x1b[2J of anybody's"
    assert "the log has one episode, too few to resample" in alone.of[0].reasons
    assert alone.of[1].reasons == ["the log has one episode, and cross-fitting needs two"]


def test_beyond_the_longest_episode_of_a_log_weights_correct_nothing() -> None:
    weighted = replace(SMALL, estimators=("doubly-robust",))
    whole, cut = (
        mcetm.estimate(Policy(ALIKE, {}), LOG, world=WORLD, settings=settings).of_policies[0].of[0]
        for settings in (weighted, replace(weighted, horizon=2 * HORIZON))
    )
    assert whole.believed
    assert cut.value is not None
    assert not cut.believed
    assert any("nothing in the log is long enough" in reason for reason in cut.reasons)


def test_rewards_that_depend_on_nothing_are_not_believed() -> None:
    log = line_log(300, width=0.4)
    shuffled = replace(log, reward=np.random.default_rng(0).permutation(log.reward))
    of_model = replace(SMALL, estimators=("model",))
    honest, wrong = (
        mcetm.estimate(Policy(STEERS, {}), each, world=WORLD, settings=of_model).of_policies[0].of[0]
        for each in (log, shuffled)
    )
    assert honest.believed
    assert not wrong.believed
    assert any("hardly depend" in reason for reason in wrong.reasons)
    assert wrong.value == pytest.approx(honest.value, rel=0.05), "nothing else tells them apart"


def test_members_that_agree_and_are_wrong_are_found_out_by_the_log() -> None:
    wrong = World(Line(jnp.full(3, 0.3)), reward, trust=TrustRegion(disagreement=jnp.array(0.05)))
    of_model = replace(SMALL, estimators=("model",))
    found = mcetm.estimate(Policy(STEERS, {}), LOG, world=wrong, settings=of_model).of_policies[0].of[0]
    assert found.details["spread_over_members"] == pytest.approx(0.0, abs=1e-6)
    assert found.details["steps_outside"] == 0.0
    assert not found.believed
    assert any("known to be wrong" in reason for reason in found.reasons)


def test_each_estimate_is_a_file_that_is_read_back_whole(found: Estimates, tmp_path: Path) -> None:
    one = found.of_policies[0]
    paths = one.save(tmp_path)
    assert [path.name for path in paths] == [
        "policy-0-fqe.json",
        "policy-0-model.json",
        "policy-0-doubly-robust.json",
    ]
    assert load_estimates(tmp_path) == (one,)
    content = json.loads(paths[0].read_text())
    for change, words in (
        ({"value": "much"}, "'value' should be a valid number"),
        ({"interval": [2.0, 1.0]}, "wrong order"),
        ({"value": None}, "a value and an interval, or neither"),
        ({"surprise": 1}, "'surprise' is not known there"),
    ):
        paths[0].write_text(json.dumps({**content, **change}))
        with pytest.raises(UserError, match=words):
            Estimate.load(paths[0])


def test_the_verdict_says_what_speaks_against_an_estimate() -> None:
    scale, rules = ReturnScale(0.0, 10.0, 50), VerdictSettings()
    assert believe(Evidence(1.0, 0.95, 1.0, 5.0), scale, rules)[0]
    for evidence, words in (
        (Evidence(0.2, 1.0, 0.0, 1.0), "80% of the policy's actions are unlike"),
        (
            Evidence(1.0, 1.0, 0.0, 1.0, surprise=1.8),
            "all together, unlike the log's: they surprise 1.8 times",
        ),
        (Evidence(1.0, 0.5, 0.0, 1.0), "50% of the steps of imagined episodes leave"),
        (Evidence(1.0, 1.0, -8.0, 1.0), "known to be wrong by 8"),
        (Evidence(1.0, 1.0, None, 1.0), "nothing in the log"),
        (Evidence(1.0, 1.0, 0.0, 30.0), "its interval is ± 30"),
        (Evidence(float("nan"), 1.0, 0.0, 1.0), "unlike"),
        (Evidence(1.0, 1.0, 0.0, 1.0, 0.02), "rewards hardly depend on what was seen and done"),
    ):
        believed, reasons = believe(evidence, scale, rules)
        assert not believed
        assert words in reasons[0]
    assert ReturnScale.of(np.array([100.0, 110.0])).stake == 5.25  # a twentieth of the mean
    assert ReturnScale.of(np.array([100.0, 110.0]), ends=True).stake == 105.0
    assert (
        "3 episodes, too few" in believe(Evidence(1.0, 1.0, 0.0, 1.0), ReturnScale(0.0, 10.0, 3), rules)[1][0]
    )


def changed(one: Estimate, value: float | None, half: float, *, believed: bool = True) -> Estimate:
    interval = None if value is None else [value - half, value + half]
    return one.model_copy(update={"value": value, "interval": interval, "believed": believed})


def test_estimators_that_disagree_are_shown_and_not_averaged(found: Estimates) -> None:
    fqe, model, _ = found.of_policies[0].of
    apart = PolicyEstimates("policy-0", (changed(fqe, 0.0, 1.0), changed(model, 5.0, 1.0)))
    assert not apart.believed
    assert "both cannot be right" in apart.verdict
    assert "0 [-1, 1]" in str(apart)
    assert "5 [4, 6]" in str(apart)
    alike = PolicyEstimates("policy-0", (changed(fqe, 4.5, 1.0), changed(model, 5.0, 0.5)))
    assert alike.believed
    assert alike.chosen == alike.of[1]


def candidates(found: Estimates) -> list[Candidate]:
    fqe = found.of_policies[0].of[0]
    made = (("low", 1.0, True), ("high", 3.0, True), ("dream", 9.0, False))
    return [
        Candidate(name, Path(name), PolicyEstimates(name, (changed(fqe, value, 0.5, believed=believed),)))
        for name, value, believed in made
    ]


def test_the_believed_policy_with_the_highest_estimate_is_chosen(found: Estimates) -> None:
    choice = choose(candidates(found))
    assert choice.picked is not None
    assert choice.picked.name == "high"
    assert [one.name for one in choice.candidates] == ["high", "low", "dream"]
    nothing = choose(candidates(found)[2:])
    assert nothing.picked is None
    assert "no policy is recommended" in nothing.notes[0]


def test_episodes_of_one_policy_are_expected_to_differ_as_imagined_ones_do(found: Estimates) -> None:
    of_policies = [Candidate(one.policy, Path(), one) for one in found.of_policies]
    imagined = [one.of[1].details["spread_of_episodes"] for one in found.of_policies]
    assert noise_of(of_policies) == pytest.approx(np.sqrt(np.mean(np.square(imagined))))
    without = [
        Candidate(one.name, Path(), PolicyEstimates(one.name, one.estimates.of[:1])) for one in of_policies
    ]
    assert noise_of(without) == found.of_policies[0].of[0].log_spread


def test_a_plan_takes_measured_returns_one_by_one(found: Estimates, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    plan = begin_plan(path, candidates(found), 4)
    assert plan.following == "dream", "what is not known may be the best, and only an episode can tell"
    plan = with_measured(plan, ["dream=-20"])
    plan.save(path)
    again = begin_plan(path, candidates(found), None)
    assert again == plan
    assert again.left == 3
    assert again.to_dict()["deploy"] == "high"
    done = with_measured(again, ["high=3", "high=3.1", "low=1"])
    assert done.following is None
    for measured, words in (
        (["who=1"], "no policy 'who'"),
        (["high=much"], "write it as POLICY=RETURN"),
        (["high=nan"], "write it as POLICY=RETURN"),
        (["low=1"] * 4, "All 4 episodes"),
    ):
        with pytest.raises(UserError, match=words):
            with_measured(again, measured)
    with pytest.raises(UserError, match="plan for 4 episodes, not 9"):
        begin_plan(path, candidates(found), 9)
    with pytest.raises(UserError, match="plan for other policies"):
        begin_plan(path, candidates(found)[:2], None)
    with pytest.raises(UserError, match="begin one with --budget"):
        begin_plan(tmp_path / "none.json", candidates(found), None)
    good = path.read_text()
    for name, number in (("spread", "1e-320"), ("noise", "1e300"), ("value", "-1e308")):
        path.write_text(re.sub(rf'"{name}": [^,}}\s]+', f'"{name}": {number}', good, count=1))
        with pytest.raises(UserError, match=r"plan\.json cannot be used"):
            begin_plan(path, candidates(found), None)
    path.write_text(good)
    said = io.StringIO()
    show_plan(again, Console(file=said, width=120))
    show_plan(done, Console(file=said, width=120))
    show_choice(choose(candidates(found)), Console(file=said, width=120))
    for words in ("Next episode (2 of 4)", "All 4 episodes are run. Deploy high", "Deploy high (high)"):
        assert words in said.getvalue()


def test_the_table_and_the_figure_show_all_of_it(found: Estimates, tmp_path: Path) -> None:
    said = io.StringIO()
    show_estimates(found, Console(file=said, width=160))
    for words in (
        "policy-1",
        "fitted Q evaluation",
        "model-based",
        "doubly robust",
        "the log's own",
        "believed",
    ):
        assert words in said.getvalue()
    draw_estimates(tmp_path / "estimate.png", [found])
    assert (tmp_path / "estimate.svg").stat().st_size > 1000


@pytest.mark.parametrize(
    ("policies", "words"),
    [([], "no policy"), ([Policy(STEERS, {}), None], ""), ("nowhere", "nowhere is not a run")],
)
def test_mistakes_are_one_sentence(policies: object, words: str) -> None:
    if words:
        with pytest.raises(UserError, match=words):
            mcetm.estimate(policies, LOG, settings=SMALL)  # pyright: ignore[reportArgumentType]
    else:
        with pytest.raises(UserError, match="Name the log"):
            mcetm.estimate(Policy(STEERS, {}))
