"""Estimate policies with d3rlpy's fitted Q evaluation on a D4RL file, and write a line of JSON for each.

    DIR/bin/python benchmarks/outside_fqe.py FILE.hdf5 STEPS SEED POLICY.onnx …

Runs in an environment of its own, with d3rlpy and onnxruntime and without mcetm; `estimates_d3rlpy.py` calls
it. The settings are d3rlpy's defaults, with standardised observations.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np


def main() -> None:
    """Train a critic for each policy, and print what it says of the first states."""
    path, steps, seed, *policies = sys.argv[1:]
    import d3rlpy  # pyright: ignore[reportMissingImports]
    import torch  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(1)
    with h5py.File(path) as file:
        log = {name: np.asarray(file[name]) for name in file if isinstance(file[name], h5py.Dataset)}
    dataset = d3rlpy.dataset.MDPDataset(
        log["observations"],
        log["actions"],
        log["rewards"],
        log["terminals"].astype(np.float32),
        timeouts=log["timeouts"].astype(np.float32),
    )
    mean, std = log["observations"].mean(axis=0), log["observations"].std(axis=0) + 1e-6
    ended = (log["terminals"] + log["timeouts"]).astype(bool)
    first = log["observations"][np.concatenate([[True], ended[:-1]])]
    for name in policies:
        d3rlpy.seed(int(seed))
        policy = _Policy(name, mean, std)
        scaler = d3rlpy.preprocessing.StandardObservationScaler(mean=mean, std=std)
        critic = d3rlpy.ope.FQE(algo=policy, config=d3rlpy.ope.FQEConfig(observation_scaler=scaler))
        critic.fit(
            dataset,
            n_steps=int(steps),
            n_steps_per_epoch=int(steps),
            logger_adapter=d3rlpy.logging.NoopAdapterFactory(),
            show_progress=False,
        )
        values = critic.predict_value(first, policy.actions(first))
        print(json.dumps({"policy": Path(name).stem, "value": float(values.mean())}), flush=True)


class _Policy:
    """What d3rlpy's estimator asks of an algorithm: actions at observations that it has standardised."""

    def __init__(self, path: str, mean: np.ndarray, std: np.ndarray) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self._mean, self._std = mean, std
        self.impl = self

    def actions(self, obs: np.ndarray) -> np.ndarray:
        """At observations as they are in the log."""
        return np.asarray(self._session.run(["action"], {"obs": obs.astype(np.float32)})[0])

    def predict_best_action(self, obs: Any) -> Any:
        """At standardised observations, as tensors."""
        import torch  # pyright: ignore[reportMissingImports]

        return torch.from_numpy(self.actions(obs.numpy() * self._std + self._mean))


if __name__ == "__main__":
    main()
