"""Random finite MDPs to test a theory on: Garnets, a chain with a cliff, a grid with a torn region."""

from __future__ import annotations

import numpy as np

from mcetm_experiments.theory.mdp import FiniteMDP


def garnet(
    count: int, *, states: int = 20, actions: int = 4, branching: int = 3, gamma: float = 0.9, seed: int = 0
) -> FiniteMDP:
    """MDPs without structure: every pair leads to a few random states; three rewards of ten are not 0."""
    rng = np.random.default_rng(seed)
    shape = (count, states, actions)
    chosen = rng.random((*shape, states)).argsort(axis=-1)[..., :branching]
    transition = np.zeros((*shape, states))
    np.put_along_axis(transition, chosen, rng.dirichlet(np.ones(branching), size=shape), axis=-1)
    reward = rng.random(shape) * (rng.random(shape) < 0.3)
    return FiniteMDP(transition, reward, np.full((count, states), 1 / states), gamma)


def cliff_chain(count: int, *, states: int = 16, gamma: float = 0.9, seed: int = 0) -> FiniteMDP:
    """A path that pays more the nearer it comes to an edge; whoever steps over it gets nothing ever after.

    Actions are left, stay and right. A step slips one further to the right with a probability that differs
    between MDPs, as does the steepness of the reward.
    """
    rng = np.random.default_rng(seed)
    slip, steepness = rng.uniform(0.02, 0.2, count), rng.uniform(1.0, 3.0, count)
    bottom = states - 1
    position = np.arange(bottom)
    transition = np.zeros((count, states, 3, states))
    for action, move in enumerate((-1, 0, 1)):
        aimed = np.clip(position + move, 0, bottom)
        transition[:, position, action, aimed] += 1 - slip[:, None]
        transition[:, position, action, np.clip(aimed + 1, 0, bottom)] += slip[:, None]
    transition[:, bottom, :, bottom] = 1.0
    reward = np.zeros((count, states, 3))
    reward[:, :bottom] = ((position / (bottom - 1)) ** steepness[:, None])[..., None]
    start = np.zeros((count, states))
    start[:, :4] = 0.25
    return FiniteMDP(transition, reward, start, gamma)


def torn_grid(count: int, *, side: int = 6, gamma: float = 0.9, seed: int = 0) -> FiniteMDP:
    """A grid with a discontinuous law of motion: in a random rectangle, steps go two cells the other way.

    The goal, a cell of the quarter opposite to the start, pays 1 for ever; a pit inside the rectangle keeps
    whoever enters and pays nothing. One step of twenty goes in a random direction.
    """
    rng = np.random.default_rng(seed)
    states = side * side
    row, column = np.divmod(np.arange(states), side)
    moves = np.array([(-1, 0), (1, 0), (0, -1), (0, 1)])

    def cell(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return np.clip(rows, 0, side - 1) * side + np.clip(columns, 0, side - 1)

    corner, size = rng.integers(1, side - 3, (count, 2)), rng.integers(2, 4, (count, 2))
    torn = np.ones((count, states), bool)
    for axis, place in enumerate((row, column)):
        torn &= (place >= corner[:, axis, None]) & (place < (corner + size)[:, axis, None])
    scale = np.where(torn, -2, 1)
    transition = np.zeros((count, states, 4, states))
    mdp, state = np.ogrid[:count, :states]
    for action in range(4):
        for direction, move in enumerate(moves):
            reached = cell(row + scale * move[0], column + scale * move[1])
            transition[mdp, state, action, reached] += 0.95 * (direction == action) + 0.05 / 4
    each = np.arange(count)
    pit = cell(*(corner + rng.integers(0, size)).T)
    goal = cell(*rng.integers(side // 2 + 1, side, (2, count)))
    for ending in (pit, goal):
        transition[each, ending] = 0.0
        transition[each, ending, :, ending] = 1.0
    reward = np.zeros((count, states, 4))
    reward[each, goal] = 1.0
    start = np.zeros((count, states))
    start[:, [0, 1, side, side + 1]] = 0.25
    return FiniteMDP(transition, reward, start, gamma)


FAMILIES = {"Garnet": garnet, "cliff chain": cliff_chain, "torn grid": torn_grid}
