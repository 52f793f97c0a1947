"""The contract that every transition model keeps, ours and a user's: batch axes, energies, disagreement."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from mcetm import EnergyModel, Samples, Statistics, TransitionModel, Transitions, UserError
from mcetm.dynamics import (
    Denoiser,
    DiffusionEnsemble,
    DiffusionModel,
    EnergyTransitionModel,
    Gaussian,
    GaussianEnsemble,
    GaussianModel,
    InferenceSettings,
    Langevin,
    PlainEnergy,
    Space,
)

RNG = np.random.default_rng(0)
LOG = Transitions.from_arrays(
    RNG.normal(size=(200, 2)),
    RNG.normal(size=(200, 1)),
    np.zeros(200),
    RNG.normal(size=(200, 2)) * [1.0, 5.0],
    np.zeros(200, bool),
    np.ones(200, bool),
)
STATISTICS = Statistics.of(LOG)
KEY = jax.random.key(7)


class Toy(TransitionModel):
    """What a user writes: members that drift along the action, each in its own measure, and noise."""

    drift: Array

    @property
    def num_members(self) -> int:
        return len(self.drift)

    def draw(self, obs: Array, action: Array, count: int, *, key: Array) -> Samples:
        means = obs + self.drift[:, None] * action
        return Samples(means[:, None] + 0.1 * jax.random.normal(key, (self.num_members, count, len(obs))))


TOY = Toy(jnp.array([0.0, 1.0, 3.0]))


class Bowls(EnergyModel):
    """E_i = ½ ‖s' − s‖² + i, sampled exactly."""

    @property
    def num_members(self) -> int:
        return 2

    def draw(self, obs: Array, action: Array, count: int, *, key: Array) -> Samples:
        drawn = obs + jax.random.normal(key, (2, count, len(obs)))
        return Samples(drawn, 0.5 * ((drawn - obs) ** 2).sum(axis=-1) + jnp.arange(2.0)[:, None])

    def energies(self, obs: Array, action: Array, next_obs: Array) -> Array:
        return 0.5 * ((next_obs - obs) ** 2).sum() + jnp.arange(2.0)


def gaussian() -> GaussianModel:
    make = lambda key: Gaussian(GaussianEnsemble(width=8, depth=1), STATISTICS, key=key)  # noqa: E731
    members = eqx.filter_jit(eqx.filter_vmap(make))(jax.random.split(jax.random.key(0), 4))
    return GaussianModel(members, jnp.array([0, 2, 3]))


def diffusion() -> DiffusionModel:
    sizes = DiffusionEnsemble(width=8, depth=1, sampler_steps=3)
    make = lambda key: Denoiser(sizes, STATISTICS, key=key)  # noqa: E731
    return DiffusionModel(eqx.filter_jit(eqx.filter_vmap(make))(jax.random.split(jax.random.key(0), 2)))


def energy() -> EnergyTransitionModel:
    space = Space.of(LOG)
    make = lambda key: PlainEnergy(STATISTICS, space, width=8, depth=1, key=key)  # noqa: E731
    members = eqx.filter_jit(eqx.filter_vmap(make))(jax.random.split(jax.random.key(0), 2))
    config = InferenceSettings(latent=None, ambient=Langevin(steps=2))
    return EnergyTransitionModel(members, space, gaussian(), config=config)


MODELS: dict[str, Callable[[], TransitionModel]] = {
    "gaussian": gaussian,
    "diffusion": diffusion,
    "energy": energy,
    "toy": lambda: TOY,
    "toy with energies": Bowls,
}


@pytest.fixture(scope="module", params=MODELS)
def model(request: pytest.FixtureRequest) -> TransitionModel:
    return MODELS[request.param]()


def pairs(*lead: int) -> tuple[np.ndarray, np.ndarray]:
    """States and actions as people have them: NumPy's, in double precision."""
    rng = np.random.default_rng(1)
    return rng.normal(size=(*lead, 2)), rng.normal(size=(*lead, 1))


ASKED: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "samples": (
        lambda m, o, a, k: m.samples(o, a, 3, key=k).next_obs,
        lambda m, o, a, k: m.draw(o, a, 3, key=k).next_obs,
    ),
    "predict": (
        lambda m, o, a, k: m.predict(o, a, key=k),
        lambda m, o, a, k: m.means(o, a, key=k).mean(axis=0),
    ),
    "disagreement": (
        lambda m, o, a, k: m.disagreement(o, a, key=k),
        lambda m, o, a, k: m.apart(o, a, key=k),
    ),
}
"""What people call, and what a model does for one pair."""
ALONE = {asked: eqx.filter_jit(own) for asked, (_, own) in ASKED.items()}


def shape_of(model: TransitionModel, asked: str) -> tuple[int, ...]:
    """Of one pair's answer."""
    return {"samples": (model.num_members, 3, 2), "predict": (2,), "disagreement": ()}[asked]


@pytest.mark.parametrize("asked", ASKED)
def test_one_pair_gets_what_the_model_does_for_it(model: TransitionModel, asked: str) -> None:
    public, own = ASKED[asked]
    obs, action = pairs()
    found = public(model, obs, action, KEY)
    assert found.shape == shape_of(model, asked)
    expected = own(model, jnp.asarray(obs, jnp.float32), jnp.asarray(action, jnp.float32), KEY)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("lead", [(4,), (2, 3)])
def test_a_batch_is_its_pairs_one_by_one(model: TransitionModel, asked: str, lead: tuple[int, ...]) -> None:
    public, _ = ASKED[asked]
    obs, action = pairs(*lead)
    found = public(model, obs, action, KEY)
    assert found.shape == (*lead, *shape_of(model, asked))
    keys = jax.random.split(KEY, int(np.prod(lead)))
    for place, key in zip(np.ndindex(lead), keys, strict=True):
        row = jnp.asarray(obs[place], jnp.float32), jnp.asarray(action[place], jnp.float32)
        np.testing.assert_allclose(found[place], ALONE[asked](model, *row, key), rtol=1e-4, atol=1e-5)


def of_pairs(model: TransitionModel) -> dict[str, Callable[..., Any]]:
    """Every public method that is asked about states and actions."""
    names = [name for name, _ in inspect.getmembers(type(model), callable) if not name.startswith("_")]
    methods = {name: getattr(model, name) for name in names}
    return {n: m for n, m in methods.items() if {"obs", "action"} <= {*inspect.signature(m).parameters}}


def test_every_public_method_takes_any_leading_axes(model: TransitionModel) -> None:
    methods = of_pairs(model)
    assert {"draw", "means", "spreads", "apart", "total_spread", "samples", "predict"} <= {*methods}
    for name, method in methods.items():
        wanted = inspect.signature(method).parameters

        def asked(*lead: int, method: Callable[..., Any] = method, wanted: Any = wanted) -> Any:
            obs, action = pairs(*lead)
            more = {"next_obs": obs, "count": 3, "key": KEY}
            return method(obs, action, **{name: value for name, value in more.items() if name in wanted})

        of_one, of_many = (
            [leaf.shape for leaf in jax.tree_util.tree_leaves(asked(*lead))] for lead in ((), (2, 1))
        )
        assert of_many == [(2, 1, *shape) for shape in of_one], name


def test_a_key_that_is_needed_is_asked_for() -> None:
    with pytest.raises(TypeError, match="needs key="):
        TOY.means(*pairs())


def test_every_row_has_noise_of_its_own() -> None:
    obs, action = np.zeros((3, 2)), np.zeros((3, 1))
    drawn = np.asarray(TOY.samples(obs, action, 2, key=KEY).next_obs)
    assert len(np.unique(drawn)) == drawn.size


def test_without_a_key_answers_are_the_same_every_time(model: TransitionModel) -> None:
    obs, action = pairs()
    first, again = (model.samples(obs, action, 2) for _ in range(2))
    np.testing.assert_array_equal(first.next_obs, again.next_obs)
    given = model.samples(obs, action, 2, key=jax.random.key(0))
    np.testing.assert_array_equal(first.next_obs, given.next_obs)
    np.testing.assert_array_equal(model.predict(obs, action), model.predict(obs, action))


def test_one_state_is_tried_with_many_actions() -> None:
    obs, action = pairs(5)
    found = TOY.predict(obs[0], action, key=KEY)
    np.testing.assert_allclose(found, TOY.predict(np.tile(obs[0], (5, 1)), action, key=KEY))


def test_an_empty_batch_has_an_empty_answer() -> None:
    assert TOY.samples(np.zeros((0, 2)), np.zeros((0, 1)), 4).next_obs.shape == (0, 3, 4, 2)


@pytest.mark.parametrize("asked", ASKED)
def test_batch_axes_that_do_not_fit_are_refused(model: TransitionModel, asked: str) -> None:
    public, _ = ASKED[asked]
    with pytest.raises(UserError, match=r"same batch axes, and have \(4, 2\), \(3, 1\)"):
        public(model, np.zeros((4, 2)), np.zeros((3, 1)), KEY)
    with pytest.raises(UserError, match="here one is a single number"):
        public(model, np.zeros(2), 0.3, KEY)


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize(("obs", "action"), [(3, 1), (2, 2), (1, 2), (2, 0)])
def test_a_wrong_width_is_refused_by_models_that_know_theirs(
    model: TransitionModel, asked: str, obs: int, action: int
) -> None:
    if model.widths is None:
        pytest.skip("takes any")
    words = f"is of states of 2 and actions of 1 numbers, and was given {obs} and {action}"
    for lead in ((), (4,)):
        with pytest.raises(UserError, match=words):
            ASKED[asked][0](model, np.zeros((*lead, obs)), np.zeros((*lead, action)), KEY)


def test_a_wrong_width_of_a_next_state_is_refused(model: TransitionModel) -> None:
    if model.widths is None or not isinstance(model, EnergyModel):
        pytest.skip("takes any")
    with pytest.raises(UserError, match="was given 2 and 1 and 3"):
        model.energy(np.zeros((4, 2)), np.zeros((4, 1)), np.zeros((4, 3)))


def test_energies_come_with_samples_or_not_at_all(model: TransitionModel) -> None:
    drawn = model.samples(*pairs(4), 3, key=KEY)
    assert isinstance(model, EnergyModel) == model.has_energy
    if not isinstance(model, EnergyModel):
        assert drawn.energy is None
        assert not hasattr(model, "energy")
        return
    assert drawn.energy is not None
    assert drawn.energy.shape == (4, model.num_members, 3)


@pytest.mark.parametrize("make", [energy, Bowls])
def test_the_energy_of_a_sample_is_its_members_energy_of_it(make: Callable[[], EnergyModel]) -> None:
    model = make()
    obs, action = pairs(4)
    drawn = model.samples(obs, action, 3, key=KEY)
    # States and actions of four pairs, for each of their samples.
    again = model.energy(obs[:, None, None], action[:, None, None], drawn.next_obs)
    assert again.shape == (4, model.num_members, 3, model.num_members)
    for member in range(model.num_members):
        found = cast(Array, drawn.energy)[:, member]
        np.testing.assert_allclose(again[:, member, :, member], found, rtol=1e-4, atol=1e-4)
    one = model.energy(obs[0], action[0], obs[0])
    assert one.shape == (model.num_members,)
    with pytest.raises(UserError, match="same batch axes"):
        model.energy(obs, action, np.zeros((3, 2)))


def test_a_model_must_say_how_it_draws() -> None:
    class Silent(TransitionModel):
        @property
        def num_members(self) -> int:
            return 1

    with pytest.raises(TypeError, match="draw"):
        Silent()  # pyright: ignore[reportAbstractUsage]


def test_what_a_model_does_not_say_is_found_from_its_samples() -> None:
    """Mean and spread of a member, each from a few samples: right on average."""
    obs, action = jnp.array([1.0, -1.0]), jnp.array([2.0])
    keys = jax.random.split(KEY, 500)
    means = jax.vmap(lambda k: TOY.means(obs, action, key=k))(keys)
    np.testing.assert_allclose(means.mean(axis=0), obs + TOY.drift[:, None] * action, atol=0.01)
    variances = jax.vmap(lambda k: TOY.spreads(obs, action, key=k) ** 2)(keys)
    np.testing.assert_allclose(variances.mean(axis=0), 0.1**2, rtol=0.1)


def test_a_model_needs_no_training_to_stand_where_settings_do() -> None:
    assert TOY.fit(LOG, holdout=LOG, seed=0) is TOY


def test_both_kinds_of_variance_make_the_whole() -> None:
    drawn = TOY.samples(*pairs(4), 6, key=KEY)
    whole = drawn.next_obs.reshape(4, -1, 2).var(axis=1)
    np.testing.assert_allclose(drawn.aleatoric + drawn.epistemic, whole, rtol=1e-4)


def test_deviation_and_spread_of_members() -> None:
    # Means at 0, 0 and (3, 4): the mean of all is (1, 4/3), and the last lies 10/3 from it.
    points = jnp.array([[0.0, 0.0], [0.0, 0.0], [3.0, 4.0]])
    drawn = Samples(jnp.stack([points, points], axis=1))
    assert float(drawn.deviation) == pytest.approx(10 / 3)
    assert float(drawn.member_spread) == pytest.approx(np.linalg.norm(np.asarray(points).std(axis=0)))
    alike = Samples(jnp.zeros((3, 2, 2)) + jnp.array([5.0, -1.0]))
    assert float(alike.deviation) == float(alike.member_spread) == 0.0


def test_a_gaussians_disagreement_is_the_largest_distance_between_two_elites() -> None:
    model, obs, action = gaussian(), jnp.array([0.3, -1.0]), jnp.array([0.5])
    means = np.asarray(model.of_members(obs, action)[0]) / np.asarray(STATISTICS.change.std)
    wanted = max(np.linalg.norm(a - b) for a in means for b in means)
    assert float(model.apart(obs, action, key=KEY)) == pytest.approx(wanted, rel=1e-4)
    assert model.num_members == len(means) == 3


def test_an_energy_models_disagreement_is_its_regressors() -> None:
    """So that a policy can ask it at every step: no chain is run."""
    obs, action = pairs(4)
    found = energy().disagreement(obs, action, key=KEY)
    np.testing.assert_allclose(found, gaussian().disagreement(obs, action), rtol=1e-5)


def test_disagreement_grows_with_what_members_differ_by_and_is_none_for_one_alone() -> None:
    obs = np.zeros((3, 2))
    near, far, farther = TOY.disagreement(obs, np.array([[0.0], [10.0], [20.0]]), key=KEY).tolist()
    assert near < 0.3
    # Members 0 and 2 differ by 3 a in each of two components.
    assert far == pytest.approx(30 * np.sqrt(2), rel=0.02)
    assert farther == pytest.approx(60 * np.sqrt(2), rel=0.02)
    assert float(Toy(jnp.ones(1)).disagreement(obs[0], np.ones(1))) < 1e-5


def test_disagreement_has_a_slope_even_where_members_agree() -> None:
    """Rollouts may be differentiated; a plain root would give a slope that is not a number."""
    same = GaussianModel(gaussian().members, jnp.array([1, 1]))
    slope = jax.grad(lambda a: same.apart(jnp.zeros(2), a, key=KEY))(jnp.ones(1))
    assert np.isfinite(slope).all()


def test_a_gaussians_spreads_are_of_all_members_elite_or_not() -> None:
    model, (obs, action) = gaussian(), pairs()
    given = jnp.asarray(obs, jnp.float32), jnp.asarray(action, jnp.float32)
    spreads = model.spreads(*given, key=KEY)
    assert spreads.shape == (4, 2)
    np.testing.assert_allclose(spreads[np.array([0, 2, 3])], model.of_members(*given)[1], rtol=1e-5)
