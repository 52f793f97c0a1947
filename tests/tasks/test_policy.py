import itertools
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from scipy import integrate

from mcetm import UserError, read_policy
from mcetm.tasks import TanhGaussianPolicy, UniformPolicy


def arrays(
    obs_dim: int = 3, action_dim: int = 2, hidden: tuple[int, ...] = (8, 6), seed: int = 0
) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    widths = [obs_dim, *hidden]
    result = {}
    for i, (below, above) in enumerate(itertools.pairwise(widths)):
        result[f"fc{i}/weight"], result[f"fc{i}/bias"] = (
            rng.normal(size=(above, below)),
            rng.normal(size=above),
        )
    for head in ("last_fc", "last_fc_log_std"):
        result[f"{head}/weight"] = 0.1 * rng.normal(size=(action_dim, widths[-1]))
        result[f"{head}/bias"] = rng.normal(size=action_dim)
    return result


def make(**options: Any) -> TanhGaussianPolicy:
    return TanhGaussianPolicy.from_arrays(arrays(**options), source="the test")


OBS = np.random.default_rng(1).normal(size=(5, 3)).astype(np.float32)


def test_it_is_the_network_it_says_it_is() -> None:
    a = arrays()
    hidden = np.maximum(OBS @ a["fc0/weight"].T + a["fc0/bias"], 0)
    hidden = np.maximum(hidden @ a["fc1/weight"].T + a["fc1/bias"], 0)
    np.testing.assert_allclose(
        make().mode(OBS), np.tanh(hidden @ a["last_fc/weight"].T + a["last_fc/bias"]), rtol=1e-4, atol=1e-6
    )


def test_samples_have_the_density_it_states() -> None:
    policy = make(action_dim=1)
    obs = OBS[:1]

    def density(action: float) -> float:
        return float(np.exp(policy.log_prob(obs, np.array([[action]], np.float32)))[0])

    mass, _ = integrate.quad(density, -1, 1, limit=200)
    assert mass == pytest.approx(1.0, abs=1e-3)
    below, _ = integrate.quad(density, -1, 0.2, limit=200)
    samples = policy.sample(np.repeat(obs, 40_000, axis=0), np.random.default_rng(0))
    assert np.mean(samples < 0.2) == pytest.approx(below, abs=0.01)


def test_randomness_comes_from_the_generator_alone() -> None:
    policy = make()
    first, second = (policy.sample(OBS, np.random.default_rng(7)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, policy.sample(OBS, np.random.default_rng(8)))


def test_uniform_actions_fill_the_box() -> None:
    policy = UniformPolicy((-2.0, 0.0), (2.0, 1.0))
    actions = policy.sample(np.zeros((20_000, 3), np.float32), np.random.default_rng(0))
    np.testing.assert_allclose(actions.min(axis=0), [-2, 0], atol=0.01)
    np.testing.assert_allclose(actions.max(axis=0), [2, 1], atol=0.01)
    np.testing.assert_allclose(actions.mean(axis=0), [0, 0.5], atol=0.03)


def test_both_kinds_of_file_hold_the_same_policy(tmp_path: Path) -> None:
    content = arrays()
    np.savez(tmp_path / "policy.npz", **content)
    with h5py.File(tmp_path / "data.hdf5", "w") as file:
        for name, array in content.items():
            file.create_dataset(f"metadata/policy/{name}", data=array)
        file.create_dataset("metadata/policy/nonlinearity", data=np.bytes_("relu"))
    first, second = read_policy(tmp_path / "policy.npz"), read_policy(tmp_path / "data.hdf5")
    assert first.checksum == second.checksum
    assert (first.obs_dim, first.action_dim) == (3, 2)
    np.testing.assert_array_equal(first.mode(OBS), second.mode(OBS))


def test_tanh_networks_of_any_depth() -> None:
    content: dict[str, Any] = arrays(hidden=(4, 5, 6)) | {"nonlinearity": b"tanh"}
    policy = TanhGaussianPolicy.from_arrays(content, source="the test")
    hidden: Any = OBS
    for i in range(3):
        hidden = np.tanh(hidden @ content[f"fc{i}/weight"].T + content[f"fc{i}/bias"])
    expected = np.tanh(hidden @ content["last_fc/weight"].T + content["last_fc/bias"])
    np.testing.assert_allclose(policy.mode(OBS), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"last_fc/bias": None}, "it has no array 'last_fc/bias'"),
        ({"fc1/weight": np.zeros((6, 9))}, "its layers do not fit each other"),
        ({"fc0/bias": np.full(8, np.nan)}, "'fc0' holds NaN"),
        ({"last_fc/bias": np.zeros((2, 2))}, "'last_fc' has shapes"),
        ({"nonlinearity": b"gelu"}, "unknown nonlinearity 'gelu'"),
        (
            {"last_fc_log_std/weight": np.zeros((3, 6)), "last_fc_log_std/bias": np.zeros(3)},
            "differ in shape",
        ),
    ],
)
def test_what_is_no_policy_is_refused(change: dict[str, Any], sentence: str) -> None:
    content = {k: v for k, v in (arrays() | change).items() if v is not None}
    with pytest.raises(UserError, match=sentence):
        TanhGaussianPolicy.from_arrays(content, source="the file")


def test_files_without_a_policy_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    with pytest.raises(UserError, match="is not a tanh-Gaussian policy"):
        read_policy(tmp_path / "other.npz")
    with h5py.File(tmp_path / "data.hdf5", "w") as file:
        file.create_dataset("observations", data=np.zeros(3))
    with pytest.raises(UserError, match="holds no behaviour policy"):
        read_policy(tmp_path / "data.hdf5")
    (tmp_path / "policy.csv").write_text("1,2")
    with pytest.raises(UserError, match="is not a policy"):
        read_policy(tmp_path / "policy.csv")
