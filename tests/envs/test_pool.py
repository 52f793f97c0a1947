"""Blocks shared among processes are the same as simulated here."""

import threading
import time

import gymnasium
import numpy as np
import pytest

from mcetm.envs.pool import Pool
from mcetm.envs.simulate import Block, run_block
from mcetm.tasks.policy import UniformPolicy


def block(number: int, env_id: str = "Pendulum-v1") -> Block:
    return Block(env_id, {}, 3, 1, (UniformPolicy((-2.0,), (2.0,)),), 2, 1, (0, 0, number), 200)


def test_processes_change_nothing_but_the_time() -> None:
    blocks = [block(number) for number in range(3)]
    with Pool(2) as pool:
        rounds = [pool.run(blocks), pool.run(blocks[:1])]
    for rows, alone in zip(rounds[0] + rounds[1], [run_block(b) for b in [*blocks, blocks[0]]], strict=True):
        assert rows.keys() == alone.keys()
        for name, column in rows.items():
            np.testing.assert_array_equal(column, alone[name])


@pytest.mark.parametrize("wait", [0.0, 0.3, 1.0], ids=["at once", "while it starts", "at work"])
def test_processes_that_are_killed_lose_nothing(wait: float) -> None:
    blocks = [block(number) for number in range(6)]
    alone = [run_block(b) for b in blocks]
    with Pool(2) as pool:

        def kill() -> None:
            time.sleep(wait)
            for simulator in list(pool._simulators):
                simulator._process.kill()

        killer = threading.Thread(target=kill)
        killer.start()
        rounds = pool.run(blocks)
        killer.join()
        rounds += pool.run(blocks)  # some of its processes are dead by now
    for rows, expected in zip(rounds, alone + alone, strict=True):
        for name, column in rows.items():
            np.testing.assert_array_equal(column, expected[name])


def test_with_no_processes_to_be_had_it_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object, **__: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr("mcetm.envs.simulator.subprocess.Popen", none)
    with Pool(2) as pool:
        assert len(pool.run([block(0), block(1)])) == 2


def test_an_environment_that_only_this_process_knows_is_simulated_here() -> None:
    gymnasium.register("OnlyHere-v0", "gymnasium.envs.classic_control:PendulumEnv", max_episode_steps=7)
    try:
        with Pool(2) as pool:
            (rows,) = pool.run([block(0, "OnlyHere-v0")])
    finally:
        del gymnasium.registry["OnlyHere-v0"]
    assert len(rows["reward"]) == 14
