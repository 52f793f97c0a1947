import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mcetm import Task, UserError, get_task
from mcetm.data import make_card, read_d4rl
from mcetm.envs import Share, collect, collect_shares
from mcetm.envs.simulate import Block, make_env
from mcetm.envs.simulator import Simulator
from mcetm.tasks import UniformPolicy
from tests.conftest import assert_same
from tests.tasks.test_policy import make

HOPPER = get_task("hopper")
UNIFORM = UniformPolicy(HOPPER.action_low, HOPPER.action_high)


def test_the_number_of_processes_changes_nothing() -> None:
    policy = make(obs_dim=11, action_dim=3, hidden=(32, 32))
    # Several blocks each: neither their order of arrival nor those begun in vain may matter.
    shares = [Share((policy,), 9_000), Share((UNIFORM, policy), 1_500)]
    one = collect_shares(HOPPER, shares, processes=1)
    other = collect_shares(HOPPER, shares, processes=3)
    assert_same(one, other)
    np.testing.assert_array_equal(one.infos["qpos"], other.infos["qpos"])


def test_exactly_the_wished_transitions_in_whole_episodes() -> None:
    log = collect_shares(HOPPER, [Share((UNIFORM,), 700), Share((UNIFORM,), 301)], processes=2)
    assert len(log) == 1001
    card = make_card(log)
    assert card.continuity.broken == 0
    assert card.rule_mismatches == 0
    # Uniform actions always make the hopper fall: only the last episode of each share is cut.
    assert card.truncations <= 2


def test_the_seed_decides() -> None:
    first, again, other = (
        collect_shares(HOPPER, [Share((UNIFORM,), 300)], seed=s, processes=1) for s in (1, 1, 2)
    )
    assert_same(first, again)
    assert not np.array_equal(first.obs[:100], other.obs[:100])


def test_episodes_of_a_lane_and_of_different_lanes_differ() -> None:
    log = collect_shares(HOPPER, [Share((UNIFORM,), 2000)], processes=1)
    starts = log.obs[log.episode_starts]
    assert len(np.unique(starts, axis=0)) == len(starts)


def test_the_stored_state_is_the_simulators_before_the_step() -> None:
    log = collect_shares(HOPPER, [Share((UNIFORM,), 200)], processes=1)
    obs = np.concatenate([log.infos["qpos"][:, 1:], np.clip(log.infos["qvel"], -10, 10)], axis=1)
    np.testing.assert_array_equal(obs.astype(np.float32), log.obs)
    env = make_env("Hopper-v4", {})
    env.reset(seed=0)
    for row in (0, 57, 199):
        env.unwrapped.set_state(log.infos["qpos"][row], log.infos["qvel"][row])
        following, reward, terminated, *_ = env.step(log.action[row])
        np.testing.assert_allclose(following, log.next_obs[row], rtol=1e-4, atol=1e-4)
        assert reward == pytest.approx(log.reward[row], rel=1e-3, abs=1e-3)
        assert terminated == log.terminated[row]
    env.close()


def test_provenance_says_who_collected_what() -> None:
    policy = make(obs_dim=11, action_dim=3)
    log = collect_shares(HOPPER, [Share((policy,), 50)], seed=5, processes=1, note="a remark")
    provenance = log.metadata.provenance
    assert provenance["task"] == "hopper"
    assert provenance["seed"] == 5
    assert provenance["shares"] == [{"steps": 50, "policies": [repr(policy)], "checksums": [policy.checksum]}]
    assert {"mcetm", "gymnasium", "mujoco", "numpy"} == set(provenance["versions"])
    assert provenance["note"] == "a remark"


def test_a_share_of_few_steps_does_not_simulate_many(monkeypatch: pytest.MonkeyPatch) -> None:
    simulated = []
    monkeypatch.setattr(Simulator, "run", _counting(Simulator.run, simulated))
    collect_shares(get_task("pendulum"), [Share((UniformPolicy((-2.0,), (2.0,)),), 300)], processes=2)
    assert sum(simulated) == 400  # two episodes of 200 steps


def _counting(run: Any, simulated: list[int]) -> Any:
    def counted(simulator: Simulator, block: Block) -> Any:
        for message, content in run(simulator, block):
            if message == "rows":
                simulated.append(len(content["reward"]))
            yield message, content

    return counted


def test_environments_of_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_worlds.py").write_text(
        "import gymnasium, numpy as np\n"
        "class Counter(gymnasium.Env):\n"
        "    observation_space = gymnasium.spaces.Box(-9, 9, (1,))\n"
        "    action_space = gymnasium.spaces.Box(-1, 1, (1,))\n"
        "    def reset(self, seed=None, options=None):\n"
        "        super().reset(seed=seed)\n"
        "        self.state = np.zeros(1)\n"
        "        return self.state, {}\n"
        "    def step(self, action):\n"
        "        self.state += 1\n"
        "        print('noise on standard output')\n"
        "        return self.state, 1.0, False, False, {}\n"
        "gymnasium.register('Counter-v0', entry_point='my_worlds:Counter')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    # The environment reuses its buffer and never ends: the task's limit cuts.
    task = Task(
        "counter", "my_worlds:Counter-v0", obs_dim=1, action_low=(-1.0,), action_high=(1.0,), time_limit=5
    )
    log = collect_shares(task, [Share((UniformPolicy((-1.0,), (1.0,)),), 20)], processes=1)
    np.testing.assert_array_equal(log.obs[:, 0], np.tile(np.arange(5), 4))
    np.testing.assert_array_equal(log.next_obs[:, 0], np.tile(np.arange(1, 6), 4))
    assert log.truncated.sum() == 4

    endless = replace(task, time_limit=None)
    assert (
        collect_shares(endless, [Share((UniformPolicy((-1.0,), (1.0,)),), 20)], processes=1).num_episodes == 1
    )
    wrong = replace(task, env_kwargs={"no_such_option": 1})
    with pytest.raises(UserError, match=r"cannot be made: .*no_such_option"):
        collect_shares(wrong, [Share((UniformPolicy((-1.0,), (1.0,)),), 20)], processes=1)


def test_collection_leaves_nothing_in_the_current_folder_and_imports_nothing_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pickle.py").write_text("raise SystemExit('the wrong pickle')")
    monkeypatch.chdir(tmp_path)
    cheetah = get_task("halfcheetah")
    collect_shares(
        cheetah, [Share((UniformPolicy(cheetah.action_low, cheetah.action_high),), 20)], processes=1
    )
    assert [path.name for path in tmp_path.iterdir()] == ["pickle.py"]


def test_nothing_to_collect_is_a_mistake() -> None:
    with pytest.raises(UserError, match="there are no shares"):
        collect_shares(HOPPER, [])
    with pytest.raises(UserError, match="'steps' should be a whole number from 1"):
        collect_shares(HOPPER, [Share((UNIFORM,), 0)])
    with pytest.raises(UserError, match="'processes' should be a whole number from 1"):
        collect_shares(HOPPER, [Share((UNIFORM,), 5)], processes=0)


class Locked:
    """A policy that holds what cannot leave its process."""

    checksum = "locked"

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def sample(self, obs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return np.zeros((len(obs), 3), np.float32)


def test_a_policy_that_cannot_travel_is_a_mistake() -> None:
    with pytest.raises(UserError, match="cannot be sent to the simulators"):
        collect(HOPPER, 5, Locked(), processes=1)


def test_a_task_that_does_not_fit_its_environment_is_a_mistake() -> None:
    with pytest.raises(UserError, match=r"has observations of shape \(11,\), but the task's have 10"):
        collect(replace(HOPPER, obs_dim=10), 5, processes=1)
    with pytest.raises(UserError, match=r"has actions of shape \(3,\), but the task's have 2"):
        collect(replace(HOPPER, action_low=(-1.0,) * 2, action_high=(1.0,) * 2), 5, processes=1)


def test_a_simulator_that_is_killed_is_reported_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(simulator: Simulator, block: Block) -> Any:
        simulator._process.kill()
        yield from original(simulator, block)

    original = Simulator.run
    monkeypatch.setattr(Simulator, "run", run)
    with pytest.raises(UserError, match="A simulator of Hopper-v4 was stopped by signal 9"):
        collect(HOPPER, 5, processes=1)


def test_an_environment_that_cannot_be_made_is_one_sentence() -> None:
    task = Task("none", "NoSuchThing-v0", obs_dim=1, action_low=(-1.0,), action_high=(1.0,), time_limit=5)
    with pytest.raises(UserError, match="NoSuchThing-v0 cannot be made"):
        collect_shares(task, [Share((UniformPolicy((-1.0,), (1.0,)),), 20)], processes=2)


def test_a_script_needs_no_main_guard_and_may_bring_its_own_policy(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import mcetm, numpy as np\n"
        "class Still:\n"
        "    checksum = 'still'\n"
        "    def sample(self, obs, rng):\n"
        "        return np.zeros((len(obs), 1), np.float32)\n"
        "print('once')\n"
        "print(len(mcetm.collect('pendulum', 30, Still(), processes=2)))\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert done.stdout == "once\n30\n"


def _living(marker: str) -> list[int]:
    """Worker processes that carry our marker in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (
                marker.encode() in (folder / "environ").read_bytes()
                and b"worker" in (folder / "cmdline").read_bytes()
            ):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


@pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="needs /proc to look for left-over processes"
)
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_stop_in_the_middle_leaves_no_file_and_no_process(tmp_path: Path, how: signal.Signals) -> None:
    out, marker = tmp_path / "data.hdf5", f"MARKER_{os.getpid()}_{how.value}"
    command = [sys.executable, "-m", "mcetm", "data", "collect", "--task", "hopper", "--steps", "900000"]
    with subprocess.Popen(
        [*command, "--out", str(out), "--processes", "2"],
        env={**os.environ, marker: "1"},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        deadline = time.monotonic() + 60
        while len(_living(marker)) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert len(_living(marker)) == 2, "the work has begun"
        time.sleep(0.5)
        process.send_signal(how)
        _, errors = process.communicate(timeout=60)
    if how == signal.SIGINT:
        assert process.returncode == 130
        assert errors.strip() == "mcetm: interrupted; nothing half-written was left behind."
    assert list(tmp_path.iterdir()) == []
    deadline = time.monotonic() + 20
    while _living(marker) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert _living(marker) == []


def test_our_files_carry_the_simulators_state(tmp_path: Path) -> None:
    collect_shares(HOPPER, [Share((UNIFORM,), 40)], processes=1).save(tmp_path / "data.hdf5")
    log = read_d4rl(tmp_path / "data.hdf5", infos=("qpos", "qvel"))
    assert log.infos["qpos"].shape == (40, 6)
    assert log.infos["qpos"].dtype == np.float64
