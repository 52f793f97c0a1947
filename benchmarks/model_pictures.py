"""Pictures of transition models, one for each page: what is different about that part."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import expit

import mcetm
from fork import EDGE, energies_of_fork, fork, fork_parts, outside_of_log
from mcetm import dynamics
from mcetm.dynamics.calibrate import held_out_energies
from mcetm.dynamics.energy import Conditional
from mcetm.nn.members import take_members
from pictures import BLUE, GREEN, GREY, ORANGE, PINK, picture
from upright import logs, pendulum

if TYPE_CHECKING:
    pass

AFTER = np.linspace(-1.4, 1.4, 141, dtype=np.float32)[:, None]
"""Next states of a cut."""
AT = 0.3
"""The state of the cut, where a coin decides between two next states."""
COLOURS = (BLUE, ORANGE, GREEN)


def draw_negatives() -> None:
    """Where negatives of one next state lie, from noise and near the manifold."""
    train, _ = mcetm.load_dataset("pendulum-mixed").split(0.1, seed=0)
    settings = dynamics.AutoencoderSettings(latent_dim=2, width=64, depth=3, steps=5000)
    autoencoder, _ = dynamics.fit_autoencoder(train, settings, key=jax.random.key(0))
    truth = jnp.asarray(train.next_obs[np.argmin(np.abs(train.next_obs - [0.5, 0.87, 1.0]).sum(axis=1))])
    count = 300
    keys = jax.random.split(jax.random.key(1), 3)
    low, high = train.next_obs.min(axis=0), train.next_obs.max(axis=0)
    noise = jax.random.uniform(keys[0], (count, 3), minval=low, maxval=high)
    sigma = jax.random.uniform(keys[1], (count, 1), minval=0.05, maxval=0.3)
    moved = autoencoder.encode(truth) + sigma * jax.random.normal(keys[2], (count, 2))
    near = jax.vmap(autoencoder.decode)(moved)
    off = lambda rows: np.abs(np.hypot(rows[:, 0], rows[:, 1]) - 1.0)  # noqa: E731
    apart = [float(np.median(off(rows))) for rows in (noise, near)]
    print("median distance from the circle, of noise and of moved codes:", apart)
    with picture("negatives", 9.0, 3.2) as drawn:
        axes = drawn.subplots(1, 3, width_ratios=(1, 1, 1.15))
        kinds = ((noise, ORANGE, "o", "from noise"), (near, GREEN, "^", "encode, perturb, decode"))
        for axis, (rows, color, marker, name) in zip(axes[:2], kinds, strict=True):
            axis.plot(*train.next_obs[:1500, :2].T, ".", color=GREY, markersize=1.5)
            axis.plot(*rows[:60, :2].T, marker, color=color, markersize=4, linestyle="none")
            axis.plot(*truth[:2], "*", color=PINK, markersize=13)
            axis.set(title=f"negatives {name}" if rows is noise else name, xlabel="cos θ", ylabel="sin θ")
            axis.set(xlim=(-1.25, 1.25), ylim=(-1.25, 1.25), aspect="equal")
        scale = train.next_obs.std(axis=0)
        for rows, color, marker, name in kinds:
            far = np.sqrt((((rows - truth) / scale) ** 2).mean(axis=1))
            axes[2].plot(far, off(rows), marker, color=color, markersize=3, linestyle="none", label=name)
        axes[2].axvline(0, color=PINK, linewidth=2, label="the next state of the log")
        axes[2].set(
            title="how far off", xlabel="distance from it, in spreads", ylabel="distance from the circle"
        )
        axes[2].set_ylim(-0.05, 1.45)
        axes[2].legend(fontsize=7, loc="upper right")


def draw_gaussian() -> None:
    """Means and spreads of a wave whose noise grows, with a gap in its log."""
    rng = np.random.default_rng(0)
    state = np.concatenate([rng.uniform(-1.0, 0.2, 1500), rng.uniform(0.6, 1.0, 500)])[:, None]
    noise = 0.03 + 0.12 * (state + 1.0)
    action = rng.uniform(-1.0, 1.0, state.shape)
    following = state + np.sin(3.0 * state) + noise * rng.normal(size=state.shape)
    rows = len(state)
    order = rng.permutation(rows)
    columns = [column[order] for column in (state, action, np.zeros(rows), following, np.zeros(rows, bool))]
    bounds = mcetm.Metadata(action_low=(-1.0,), action_high=(1.0,))
    log = mcetm.Transitions.from_arrays(*columns, truncated=np.ones(rows, bool), metadata=bounds)
    train, holdout = log.split(0.1, seed=0)
    settings = mcetm.GaussianEnsemble(members=5, elites=5, width=32, depth=2, steps=2000, batch_size=128)
    model: Any = mcetm.fit(settings, train, holdout=holdout, seed=0)
    states = np.linspace(-1.0, 1.3, 116, dtype=np.float32)[:, None]
    mean, std = (
        np.asarray(part)[..., 0] for part in jax.vmap(model.of_members)(states, np.zeros_like(states))
    )
    apart = mean.std(axis=1, ddof=1)
    with picture("gaussian", 5.0, 2.8) as drawn:
        left, right = drawn.subplots(1, 2)
        left.plot(log.obs[::4, 0], log.next_obs[::4, 0], ".", color=GREY, markersize=2)
        for i in range(mean.shape[1]):
            left.plot(states[:, 0], mean[:, i], color=ORANGE, linewidth=1)
            left.fill_between(
                states[:, 0],
                mean[:, i] - std[:, i],
                mean[:, i] + std[:, i],
                color=ORANGE,
                alpha=0.1,
                linewidth=0,
            )
        left.set(title="five members", xlabel="state s", ylabel="next state s'")
        right.plot(states[:, 0], 0.03 + 0.12 * (states[:, 0] + 1.0), color=GREY, label="true noise")
        right.plot(
            states[:, 0],
            std.mean(axis=1),
            color=ORANGE,
            linestyle="--",
            linewidth=2,
            label="spread they expect",
        )
        right.plot(states[:, 0], apart, color=BLUE, linewidth=2, label="how far they lie apart")
        right.set(title="two doubts", xlabel="state s", ylim=(0, 0.65))
        right.legend(fontsize=7.5, loc="upper left")
        for axis in (left, right):
            for low, high in ((0.2, 0.6), (1.0, 1.3)):
                axis.axvspan(low, high, color=GREY, alpha=0.15, linewidth=0)
    for at in (-0.5, 0.0, 0.4, 0.8, 1.3):
        i = int(np.argmin(np.abs(states[:, 0] - at)))
        print("at", at, "noise", 0.03 + 0.12 * (at + 1), "expected", std[i].mean(), "apart", apart[i])


def draw_diffusion() -> None:
    """Paths from noise to next states where a coin decides, and samples along the fork."""
    train, holdout, _ = fork_parts()
    settings = mcetm.DiffusionEnsemble(members=1, width=48, steps=2000)
    model: Any = mcetm.fit(settings, train, holdout=holdout, seed=0)
    member = take_members(model.members, 0)
    obs, action, levels = jnp.full(1, AT), jnp.zeros(1), member.levels()

    def path(noise: Any) -> Any:
        """The member's own sampler stopped after each of its levels, as a next state of the same coin."""
        stops = []
        x, before = jnp.sqrt(levels[0] ** 2 + 1.0) * noise, None
        logs_ = jnp.log(levels[:-1])
        for i in range(len(levels) - 2):
            here = member.denoise(x, levels[i], obs, action)
            guess = here
            if before is not None:
                guess = here + 0.5 * (logs_[i] - logs_[i + 1]) / (logs_[i - 1] - logs_[i]) * (here - before)
            stops.append(obs + member.change_scale.denormalize(x))
            keep = levels[i + 1] / levels[i]
            x, before = keep * x + (1.0 - keep) * guess, here
        stops.append(obs + member.change_scale.denormalize(x))
        stops.append(obs + member.change_scale.denormalize(member.denoise(x, levels[-2], obs, action)))
        return jnp.stack(stops)[:, 0]

    noise = jax.random.normal(jax.random.key(0), (40, 1))
    paths = np.asarray(jax.jit(jax.vmap(path))(noise))
    ends = np.asarray(jax.vmap(lambda n: member._integrate(n, obs, action))(noise))[:, 0]
    np.testing.assert_allclose(paths[:, -1], ends, atol=1e-4)
    states = np.linspace(-1.0, 1.2, 89, dtype=np.float32)[:, None]
    samples = np.asarray(model.samples(states, np.zeros_like(states), 8).next_obs)[:, 0, :, 0]
    branches = 0.5 * states + 0.6 * np.where(states < 0.0, 0.0, np.array([[-1.0, 1.0]]))
    off = np.abs(samples[..., None] - branches[:, None]).min(axis=-1)[states[:, 0] < EDGE]
    print("share of samples within 0.15 of a branch:", float((off < 0.15).mean()))
    print("share of upper ends:", float((ends > 0.15).mean()))
    with picture("diffusion", 5.0, 2.9) as drawn:
        left, right = drawn.subplots(1, 2, sharey=True)
        for each in paths:
            left.plot(range(len(each)), each, color=ORANGE if each[-1] > 0.15 else BLUE, linewidth=0.8)
        left.set(title=f"from noise, at s = {AT}", xlabel="step", ylabel="next state s'", ylim=(-1.7, 1.9))
        right.plot(train.obs[:400, 0], train.next_obs[:400, 0], ".", color=GREY, markersize=2)
        right.plot(
            np.repeat(states[:, 0], samples.shape[1]), samples.ravel(), ".", color=GREEN, markersize=2.5
        )
        right.set(title="samples along the fork", xlabel="state s")
        outside_of_log(right, 1.2)


@cache
def plain_fork() -> Any:
    """Three plain energies of the fork."""
    train, holdout, _ = fork_parts()
    settings = energies_of_fork(3, dynamics.SupportSettings(width=32, steps=2000))
    return mcetm.fit(settings, train, holdout=holdout, seed=0)


def draw_energies() -> None:
    """Plain and anchored energies of three members, of one pair and along the fork."""
    train, holdout, _ = fork_parts()
    plain = replace(plain_fork(), support=None)
    regressor = mcetm.GaussianEnsemble(members=3, elites=3, width=32, depth=2, steps=1500, batch_size=128)
    settings = mcetm.AnchoredETM(members=3, width=48, steps=1500, regressor=regressor)
    anchored: Any = mcetm.fit(settings, train, holdout=holdout, seed=0)
    states = np.linspace(-1.0, 1.2, 89, dtype=np.float32)[:, None]
    with picture("energies", 5.0, 4.4) as drawn:
        axes = drawn.subplots(2, 2, sharex="row")
        for i, (model, name) in enumerate(((plain, "plain"), (anchored, "anchored"))):
            cut = np.asarray(model.energy(np.full_like(AFTER, AT), np.zeros_like(AFTER), AFTER))
            least = _least_energies(model, states)
            for member, color in enumerate(COLOURS):
                axes[0, i].plot(
                    AFTER[:, 0], cut[:, member] - cut[:, member].min(), color=color, linewidth=1.5
                )
                axes[1, i].plot(states[:, 0], least[:, member], color=color, linewidth=1.5)
            apart, inside = np.ptp(least, axis=1), states[:, 0] < EDGE
            means = [float(apart[where].mean()) for where in (inside, ~inside)]
            print(name, "least energies of members lie apart by, in and beyond the log:", means)
            axes[0, i].set(title=name, xlabel=f"next state s', at s = {AT}", ylim=(-0.5, 10))
            axes[1, i].set(xlabel="state s", ylim=(least.min() - 1.0, least.max() + 0.15 * np.ptp(least)))
            outside_of_log(axes[1, i], 1.2)
        axes[0, 0].set_ylabel("above its least")
        axes[1, 0].set_ylabel("least energy")


def _least_energies(model: Any, states: np.ndarray) -> np.ndarray:
    """The least energy over next states, of each state and member."""
    grid = np.broadcast_to(AFTER, (len(states), *AFTER.shape))
    here = np.broadcast_to(states[:, None], grid.shape)
    return np.asarray(model.energy(here, np.zeros_like(here), grid)).min(axis=1)


def draw_manifold() -> None:
    """What decoding does off the circle, and open-loop predictions with a tube and without."""
    train, holdout = mcetm.load_dataset("pendulum-mixed").split(0.1, seed=0)
    settings = dynamics.AutoencoderSettings(latent_dim=2, width=64, depth=3, steps=5000)
    autoencoder, _ = dynamics.fit_autoencoder(train, settings, key=jax.random.key(0))
    tube = dynamics.Tube.of(autoencoder, holdout)
    model: Any = mcetm.fit(mcetm.GaussianEnsemble(width=32, steps=600), train, holdout=holdout, seed=0)
    step = jax.jit(jax.vmap(lambda o, a: model.means(o, a, key=jax.random.key(0)).mean(axis=0)))
    held = jax.jit(jax.vmap(tube))
    rng, count, horizon = np.random.default_rng(0), 64, 150
    start = holdout.obs[rng.choice(len(holdout), count, replace=False)]
    actions = rng.uniform(-2.0, 2.0, (horizon, count, 1)).astype(np.float32)
    off = {}
    for name, keep in (("as it is", lambda x: x), ("in the tube", held)):
        obs, found = jnp.asarray(start), []
        for action in actions:
            obs = keep(step(obs, action))
            found.append(float(jnp.median(jnp.abs(jnp.hypot(obs[:, 0], obs[:, 1]) - 1.0))))
        off[name] = found
        print(
            name, "median distance from the circle after 20, 50, 150 steps:", found[19], found[49], found[-1]
        )
    side = np.linspace(-1.8, 1.8, 13, dtype=np.float32)
    grid = np.stack([*np.meshgrid(side, side), np.zeros((13, 13), np.float32)], axis=-1).reshape(-1, 3)
    moved = np.asarray(held(grid))
    print("share of the grid that moves:", float((np.abs(moved - grid).max(axis=1) > 1e-3).mean()))
    with picture("manifold", 5.0, 2.8) as drawn:
        left, right = drawn.subplots(1, 2)
        left.plot(*train.next_obs[:1500, :2].T, ".", color=GREY, markersize=1.5)
        left.quiver(
            *grid[:, :2].T,
            *(moved - grid)[:, :2].T,
            color=BLUE,
            angles="xy",
            scale_units="xy",
            scale=1.0,
            width=0.006,
        )
        left.set(title="where the tube puts states", xlabel="cos θ", ylabel="sin θ", aspect="equal")
        left.set(xlim=(-2, 2), ylim=(-2, 2))
        for (name, values), color, style in zip(off.items(), (ORANGE, BLUE), ("--", "-"), strict=True):
            right.plot(range(1, horizon + 1), values, style, color=color, linewidth=2, label=name)
        right.set(title="150 imagined steps", xlabel="step", ylabel="distance from the circle", yscale="log")
        right.legend(fontsize=8)


def draw_sampling() -> None:
    """Where chains of both conventions end, beside exp(−E) itself."""
    model = replace(plain_fork(), support=None)
    member = take_members(model.members, 0)
    obs, action = jnp.full(1, AT), jnp.zeros(1)
    at = Conditional(member, model.space, obs, action)
    box = model.space.box
    low, high = float(box.low[0]), float(box.high[0])
    xs = np.linspace(low, high, 201)
    energy = np.asarray(jax.vmap(at)(jnp.asarray(xs[:, None], jnp.float32)))
    density = np.exp(-(energy - energy.min()))
    density /= np.trapezoid(density, xs)
    chains = {
        "paper, noise 1": dynamics.Langevin(
            steps=2000,
            first=0.003,
            last=0.003,
            convention="paper",
            noise=1.0,
            gradient_clip=None,
            move_clip=None,
        ),
        "EMPO's": dynamics.Langevin(steps=50),
    }
    with picture("sampling", 5.0, 2.8) as drawn:
        axes = drawn.subplots(1, 2, sharey=True)
        for axis, (name, chain), color in zip(axes, chains.items(), (BLUE, ORANGE), strict=True):
            starts = jax.random.uniform(jax.random.key(1), (2000, 1), minval=low, maxval=high)
            keys = jax.random.split(jax.random.key(2), len(starts))
            ends = np.asarray(
                jax.jit(jax.vmap(lambda s, k, chain=chain: chain(at, s, box=box, key=k)))(starts, keys)
            )[:, 0]
            counts, edges = np.histogram(ends, bins=60, range=(low, high), density=True)
            middles = 0.5 * (edges[1:] + edges[:-1])
            wanted = np.interp(middles, xs, density)
            print(
                name,
                "half the distance between the two laws:",
                float(0.5 * np.abs(counts - wanted).sum() * (edges[1] - edges[0])),
            )
            axis.bar(middles, counts, edges[1] - edges[0], color=color, alpha=0.5, label="ends of chains")
            axis.plot(xs, density, color=GREY, linewidth=2, label="exp(−E)")
            axis.set(title=f"{name}: {chain.steps} steps", xlabel="next state, in spreads", ylim=(0, 2.8))
        axes[0].set_ylabel("density")
        axes[0].legend(fontsize=8, loc="upper left")


def draw_support() -> None:
    """Energies at the models' own predictions along the fork, without a support and with one."""
    model = plain_fork()
    states = np.linspace(-1.0, 1.6, 105, dtype=np.float32)[:, None]
    with picture("support", 5.0, 2.8) as drawn:
        for axis, it, name in zip(
            drawn.subplots(1, 2),
            (replace(model, support=None), model),
            ("without", "with a support"),
            strict=True,
        ):
            least = _least_energies(it, states)
            for member, color in enumerate(COLOURS):
                axis.plot(states[:, 0], least[:, member], color=color, linewidth=1.5)
            inside, beyond = least[states[:, 0] < EDGE], least[states[:, 0] > EDGE + 0.3]
            print(name, "least energy, mean in the log and 0.3 beyond it:", inside.mean(), beyond.mean())
            axis.set(
                title=name, xlabel="state s", ylim=(least.min() - 0.5, least.max() + 0.15 * np.ptp(least))
            )
            outside_of_log(axis, 1.6)
        drawn.axes[0].set_ylabel("least energy of each member")
    print(
        "score of the support at 0.3 and 1.4:",
        [float(model.support(jnp.full(1, s), jnp.zeros(1))) for s in (0.3, 1.4)],
    )


def draw_limits() -> None:
    """How many held-out energies are above a limit, for each member; and what a false alarm costs."""
    train, holdout = mcetm.load_dataset("pendulum-mixed").split(0.1, seed=0)
    model: Any = mcetm.fit(mcetm.ManifoldETM(), train, holdout=holdout, seed=0)
    settings = dynamics.CalibrationSettings(quantile=0.999, samples=4, rows=3000)
    energies = np.sort(np.asarray(held_out_energies(model, holdout, settings, key=jax.random.key(0))), axis=1)
    share = 1.0 - np.arange(energies.shape[1]) / energies.shape[1]
    with picture("limits", 5.0, 2.9) as drawn:
        left, right = drawn.subplots(1, 2)
        for member, color in enumerate(COLOURS):
            left.plot(energies[member], share, color=color, linewidth=1.5)
            for quantile in (0.95, 0.999):
                limit = float(np.quantile(energies[member], quantile))
                left.plot(limit, 1.0 - quantile, "o", color=color)
                print("member", member, "quantile", quantile, "limit", limit)
        left.set(yscale="log", ylim=(3e-4, 1.2), xlabel="limit on the energy", ylabel="share above it")
        left.set_title("three members")
        rate = np.linspace(0.0, 0.1, 101)
        right.plot(100 * rate, 1.0 / (1.0 - 0.99 * (1.0 - rate)), color=PINK, linewidth=2)
        right.set(title="what it costs", xlabel="false alarms, %", ylabel="horizon in steps", ylim=(0, 105))


def draw_reward() -> None:
    """A learned reward beside the true one, and a learned end beside its rule."""
    train, holdout = logs()
    keys = jax.random.split(jax.random.key(0))
    reward, _ = dynamics.fit_reward(train, holdout, dynamics.HeadSettings(), key=keys[0])
    theta = np.linspace(0.0, np.pi, 121)
    obs = np.stack([np.cos(theta), np.sin(theta), np.zeros_like(theta)], axis=1).astype(np.float32)
    still = np.zeros((len(obs), 1), np.float32)
    guess = np.asarray(reward(obs, still, pendulum(obs, still).astype(np.float32)))
    seen = theta > 1.0
    print(
        "error of the reward where the log has angles, and where not:",
        np.abs(guess + theta**2)[seen].mean(),
        np.abs(guess + theta**2)[~seen].mean(),
    )
    log = fork()
    ended = log.next_obs[:, 0] > 0.75
    log = mcetm.Transitions.from_arrays(
        log.obs, log.action, log.reward, log.next_obs, ended, ~ended, metadata=log.metadata
    )
    rule, _ = dynamics.fit_termination(*log.split(0.2, seed=0), dynamics.HeadSettings(), key=keys[1])
    after = np.linspace(-1.0, 1.0, 161, dtype=np.float32)[:, None]
    odds = np.asarray(rule.log_odds(np.full_like(after, AT), np.zeros_like(after), after))
    print("ends beyond", float(after[np.argmax(odds > 0), 0]))
    with picture("reward", 5.0, 2.8) as drawn:
        left, right = drawn.subplots(1, 2)
        left.axvspan(0.0, 1.0, color=GREY, alpha=0.15, linewidth=0)
        left.text(0.5, -4.0, "not in\nthe log", ha="center", va="top", fontsize=8)
        left.plot(theta, -(theta**2), color=GREY, linewidth=2.5, label="true")
        left.plot(theta, guess, color=BLUE, linestyle="--", linewidth=2, label="learned")
        left.set(title="reward", xlabel="angle (0 is upright)", ylim=(-10.5, 0.8))
        left.legend(fontsize=8, loc="lower left")
        right.plot(
            after[:, 0], (after[:, 0] > 0.75).astype(float), color=GREY, linewidth=2.5, label="the rule"
        )
        right.plot(after[:, 0], expit(odds), color=BLUE, linestyle="--", linewidth=2, label="learned")
        right.set(title="chance of an end", xlabel="next state s'")
        right.legend(fontsize=8, loc="upper left")
