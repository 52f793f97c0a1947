"""Pictures of algorithms on the fork: MOBILE's charge, EMPO's chains, RAMBO's adversary, COMBO's values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

import mcetm
from fork import EDGE, Promise, fork_parts, outside_of_log
from mcetm import dynamics
from mcetm.agents.cql import Conservative
from mcetm.agents.rollout import Experience, RolloutSettings
from pictures import BLUE, GREEN, GREY, ORANGE, first_seed, picture

STATES = np.linspace(-1.0, 1.2, 89, dtype=np.float32)[:, None]


class Alike(Promise):
    """A critic to which both branches are worth the same."""

    def next_value(self, obs: Any, *, key: Any, entropy: bool = False) -> Any:
        """What it believes."""
        return 100.0 + 80.0 * jnp.abs(obs[0])


def bare_world(
    model: mcetm.TransitionModel, reward: Any = lambda obs, action, next_obs: jnp.zeros(())
) -> mcetm.World:
    """A world around a model that nothing ends and that trusts everything."""
    return mcetm.World(model, reward)


def charges(algorithm: Any, free: Any, learner: Any) -> np.ndarray:
    """By how much an algorithm lowers targets along the fork, a mean of 512 draws."""
    world, action = bare_world(fork_parts()[2]), jnp.zeros(1)

    def one(obs: Any, key: Any) -> Any:
        after = world.imagine(obs, action, algorithm.view, key=key)
        value = learner.next_value(after.next_obs, key=key)
        row = Experience(obs, action, after)
        return (
            free.target(learner, row, value, key=key)[0] - algorithm.target(learner, row, value, key=key)[0]
        )

    keys = jax.random.split(jax.random.key(0), 512)
    return np.asarray(jax.jit(jax.vmap(jax.vmap(one, (None, 0)), (0, None)))(STATES, keys)).mean(axis=1)


def draw_mobile() -> None:
    """MOPO and MOBILE with two critics: one to which the branches differ, one to which they do not."""
    mobile, mopo = mcetm.MOBILE(penalty=1.0, value_floor=0.0), mcetm.MOPO(penalty=60.0)
    with picture("mobile", 5.0, 2.8) as drawn:
        axes = drawn.subplots(1, 2, sharey=True)
        for axis, learner, name in zip(
            axes, (Promise(), Alike()), ("right is worth more", "both worth the same"), strict=True
        ):
            found = {
                "MOPO": charges(mopo, replace(mopo, penalty=0.0), learner),
                "MOBILE": charges(mobile, replace(mobile, penalty=0.0), learner),
            }
            for (label, values), color, style in zip(found.items(), (ORANGE, BLUE), ("--", "-"), strict=True):
                axis.plot(STATES[:, 0], values, style, color=color, linewidth=2, label=label)
                print(
                    name,
                    label,
                    "charges at -0.5, 0.4, 1.1:",
                    np.interp((-0.5, 0.4, 1.1), STATES[:, 0], values),
                )
            axis.set(title=name, xlabel="state s", ylim=(0, 50))
            outside_of_log(axis, 1.2)
        axes[0].set_ylabel("taken off the target")
        axes[0].legend(loc="upper left", fontsize=8)


def draw_empo() -> None:
    """Where chains end: ours, and with the step sizes of the authors' code."""
    train, holdout, _ = fork_parts()
    regressor = mcetm.GaussianEnsemble(members=2, elites=2, steps=50)
    settings = mcetm.StandardETM(width=48, steps=1500, variable="next_obs", regressor=regressor)
    ours = cast(Any, mcetm.fit(settings, train, holdout=holdout, seed=0))
    official = dynamics.Langevin(steps=30, noise=0.5, gradient_clip=0.5)
    theirs = replace(ours, config=replace(ours.config, ambient=official))
    with picture("empo", 5.0, 2.9) as drawn:
        axes = drawn.subplots(1, 2, sharey=True)
        for axis, model, name in zip(
            axes, (ours, theirs), ("chains that arrive", "empo-official"), strict=True
        ):
            drawn_states = np.asarray(model.samples(STATES, np.zeros_like(STATES), 4).next_obs)
            branches = 0.5 * STATES + 0.6 * np.where(STATES < 0.0, 0.0, np.array([[-1.0, 1.0]]))
            inside = STATES[:, 0] < EDGE
            off = np.abs(drawn_states[..., None] - branches[:, None, None, None]).min(axis=-1)[inside]
            print(
                name,
                "median distance from a branch:",
                float(np.median(off)),
                "beyond 0.2:",
                float((off > 0.2).mean()),
            )
            axis.plot(train.obs[:400, 0], train.next_obs[:400, 0], ".", color=GREY, markersize=2)
            for member, color in enumerate((BLUE, ORANGE, GREEN)):
                rows = drawn_states[:, member, :, 0]
                axis.plot(
                    np.repeat(STATES[:, 0], rows.shape[1]), rows.ravel(), ".", color=color, markersize=2.5
                )
            axis.set(title=name, xlabel="state s", ylim=(-1.4, 1.7))
            outside_of_log(axis, 1.2)
        axes[0].set_ylabel("next state s'")


def paid_fork() -> tuple[mcetm.Transitions, mcetm.Transitions, mcetm.World]:
    """The fork where a step earns its next state, with a world of the same Gaussian members."""
    train, holdout, model = fork_parts()

    def paid(log: mcetm.Transitions) -> mcetm.Transitions:
        parts = (log.obs, log.action, log.next_obs[:, 0], log.next_obs, log.terminated, log.truncated)
        return mcetm.Transitions.from_arrays(*parts, metadata=log.metadata)

    return paid(train), paid(holdout), bare_world(model, lambda obs, action, next_obs: next_obs[0])


LEARNER = mcetm.SAC(width=32, discount=0.8, steps=3000)


def draw_rambo() -> None:
    """The model before and after an adversary of a large weight."""
    train, _, world = paid_fork()
    looks = ((0.0, ORANGE, "--"), (0.5, BLUE, "-"))
    with picture("rambo", 4.6, 3.0) as drawn:
        axis = drawn.subplots()
        axis.plot(train.obs[:500, 0], train.next_obs[:500, 0], ".", color=GREY, markersize=2, alpha=0.6)
        for weight, color, style in looks:
            model: Any = world.model
            if weight:
                algorithm = mcetm.RAMBO(
                    adversarial=weight, clone=mcetm.BC(width=32, steps=300), learner=LEARNER
                )
                model = cast(Any, mcetm.fit(algorithm, train, world=world, seeds=1).worlds[0]).model
            means = np.asarray(model.predict(STATES, np.zeros_like(STATES)))[:, 0]
            print(
                "weight", weight, "mean at -0.5, 0.3, 1.1:", np.interp((-0.5, 0.3, 1.1), STATES[:, 0], means)
            )
            axis.plot(STATES[:, 0], means, style, color=color, linewidth=2, label=f"w = {weight:g}")
        axis.set(xlabel="state s", ylabel="mean next state", ylim=(-1.4, 1.9))
        outside_of_log(axis, 1.2)
        axis.legend(loc="upper left", fontsize=8)


def draw_combo() -> None:
    """Values along the fork, with and without the conservative term."""
    train, _, world = paid_fork()
    with picture("combo", 4.6, 3.0) as drawn:
        axis = drawn.subplots()
        for weight, color, style in ((0.0, ORANGE, "--"), (0.5, GREEN, "-."), (5.0, BLUE, "-")):
            learner = replace(LEARNER, actor_first=True)
            rollout = RolloutSettings(real_share=0.5)
            algorithm = mcetm.COMBO(
                conservative=Conservative(weight=weight), learner=learner, rollout=rollout
            )
            agent = mcetm.fit(algorithm, train, world=world, seeds=1)
            own = first_seed(agent)
            value = np.asarray(own.critics.of_rows(STATES, jax.vmap(own.actor.mode)(STATES))).min(axis=0)
            print(
                "weight", weight, "value at -0.5, 0.3, 1.1:", np.interp((-0.5, 0.3, 1.1), STATES[:, 0], value)
            )
            axis.plot(STATES[:, 0], value, style, color=color, linewidth=2, label=f"weight {weight:g}")
        axis.set(xlabel="state s", ylabel="value of the policy's action")
        outside_of_log(axis, 1.2)
        axis.legend(loc="upper left", fontsize=8)
