"""Train one policy with d3rlpy on a D4RL file, measure it, and write a line of JSON.

    DIR/bin/python benchmarks/outside.py FILE.hdf5 ENVIRONMENT ALGORITHM STEPS SEED

Runs in an environment of its own, with d3rlpy and MuJoCo and without mcetm; `against_d3rlpy.py` calls it. The
settings are those of `mcetm train --preset fast`: the authors', with standardised observations for all.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import gymnasium
import h5py
import numpy as np

EPISODES = 10


def main() -> None:
    """Train, play ten episodes, print."""
    path, environment, algo, steps, seed = sys.argv[1:6]
    import d3rlpy  # pyright: ignore[reportMissingImports]
    import torch  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(1)
    d3rlpy.seed(int(seed))
    with h5py.File(path) as file:
        log = {name: np.asarray(file[name]) for name in file if isinstance(file[name], h5py.Dataset)}
    dataset = d3rlpy.dataset.MDPDataset(
        log["observations"],
        log["actions"],
        log["rewards"],
        log["terminals"].astype(np.float32),
        timeouts=log["timeouts"].astype(np.float32),
    )
    device = "cuda:0" if torch.cuda.is_available() and "--cpu" not in sys.argv else "cpu"
    learner = settings(algo, int(steps)).create(device=device)
    times = [time.perf_counter()]
    learner.fit(
        dataset,
        n_steps=int(steps),
        n_steps_per_epoch=max(1, int(steps) // 10),
        logger_adapter=d3rlpy.logging.NoopAdapterFactory(),
        show_progress=False,
        epoch_callback=lambda *_: times.append(time.perf_counter()),
    )
    # The first tenth holds whatever is done once.
    rate = 0.9 * int(steps) / (times[-1] - times[1])
    returns = [] if "--speed" in sys.argv else play(learner, environment)
    print(json.dumps({"algo": algo, "seed": int(seed), "returns": returns, "rate": rate, "device": device}))


def settings(algo: str, steps: int) -> Any:
    """The algorithm of d3rlpy with the published settings."""
    from d3rlpy import algos, models, optimizers, preprocessing  # pyright: ignore[reportMissingImports]

    scaler = preprocessing.StandardObservationScaler()
    if algo == "td3bc":
        return algos.TD3PlusBCConfig(observation_scaler=scaler)
    if algo == "iql":
        return algos.IQLConfig(
            observation_scaler=scaler,
            reward_scaler=preprocessing.ReturnBasedRewardScaler(multiplier=1000.0),
            actor_optim_factory=optimizers.AdamFactory(
                lr_scheduler_factory=optimizers.CosineAnnealingLRFactory(T_max=steps)
            ),
        )
    encoder = models.VectorEncoderFactory([256, 256, 256])
    return algos.CQLConfig(
        observation_scaler=scaler,
        actor_encoder_factory=encoder,
        critic_encoder_factory=encoder,
        alpha_learning_rate=0.0,  # a fixed weight, 5
    )


def play(learner: Any, environment: str) -> list[float]:
    """Returns of deterministic episodes."""
    env = gymnasium.make(environment)
    returns = []
    for episode in range(EPISODES):
        obs, _ = env.reset(seed=episode)
        total, over = 0.0, False
        while not over:
            obs, reward, terminated, truncated, _ = env.step(learner.predict(obs[None].astype(np.float32))[0])
            total, over = total + float(reward), terminated or truncated
        returns.append(total)
    return returns


if __name__ == "__main__":
    main()
