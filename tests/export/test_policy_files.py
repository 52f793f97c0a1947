"""Every exported file says what the NumPy policy says, run by the program that it is for."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mcetm import Policy, UserError, load_policy, read_policy
from tests.export.example import ABOUT, observations, scored_policy

Answer = tuple[np.ndarray, np.ndarray | None]
CC = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
HUGE = np.array([[3e38, 1.0, 1.0], [-1e30, 1e30, 1e30], [1e25, 0.0, 0.0]], np.float32)


def with_python(policy: Policy, obs: np.ndarray, folder: Path) -> Answer:
    """Without packages, without the user's environment: the standard library alone."""
    (folder / "python").mkdir()
    files = policy.export(folder / "python" / "plant policy.npz")
    assert [path.name for path in files] == ["plant policy.npz", "plant policy.py"]
    lines = "\n".join(" ".join(map(repr, row)) for row in obs.tolist())
    command = [sys.executable, "-S", "-I", str(files[1])]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True, cwd="/", env={})
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    if policy.pairs is None:
        assert all(a["score"] is None and a["trusted"] is False for a in answers)
        return np.array([a["action"] for a in answers]), None
    for answer in answers:
        assert answer["limit"] == policy.pairs.limit
        assert answer["trusted"] == (answer["score"] <= policy.pairs.limit)
    return np.array([a["action"] for a in answers]), np.array([a["score"] for a in answers])


PROGRAM = """
#include <stdio.h>
#include "p.h"
int main(void) {
  float obs[P_OBS_DIM], action[P_ACTION_DIM], score = 0.0f;
  if (p_check() != 0) return 3;
  while (fread(obs, sizeof obs, 1, stdin) == 1) {
    int failed = p_act(obs, action ARGUMENT);
    fwrite(&failed, sizeof failed, 1, stdout);
    fwrite(action, sizeof action, 1, stdout);
    fwrite(&score, sizeof score, 1, stdout);
  }
  return 0;
}
"""


def compiled(policy: Policy, folder: Path, *options: str, suffix: str = "c") -> Path:
    if CC is None:
        pytest.skip("there is no C compiler on this machine")
    policy.export(folder / "p.h")
    source = folder / f"main.{suffix}"
    source.write_text(PROGRAM.replace("ARGUMENT", "" if policy.pairs is None else ", &score"))
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wdouble-promotion", "-Wshadow", "-Werror"]
    subprocess.run([CC, *strict, *options, str(source), "-o", str(folder / "main"), "-lm"], check=True)
    return folder / "main"


def with_c(policy: Policy, obs: np.ndarray, folder: Path) -> Answer:
    program = compiled(policy, folder, "-std=c99", "-O2")
    done = subprocess.run([program], input=obs.tobytes(), capture_output=True, check=True)
    kind = np.dtype([("failed", "<i4"), ("action", "<f4", 2), ("score", "<f4")])
    found = np.frombuffer(done.stdout, kind)
    assert len(found) == len(obs)
    assert not found["failed"].any()
    return found["action"], None if policy.pairs is None else found["score"]


def with_onnx(policy: Policy, obs: np.ndarray, folder: Path) -> Answer:
    onnx, runtime = (pytest.importorskip(name) for name in ("onnx", "onnxruntime"))
    (path,) = policy.export(folder / "policy.onnx")
    onnx.checker.check_model(str(path), full_check=True)
    session = runtime.InferenceSession(path)
    found = session.run(None, {"obs": obs})
    if policy.pairs is None:
        (action,) = found
        return action, None
    action, score, limit = found
    assert limit == np.float32(policy.pairs.limit)
    alone = session.run(["action", "trust_score"], {"obs": obs[:1]})
    np.testing.assert_allclose(alone[0], action[:1], rtol=1e-5)
    assert alone[1].shape == (1,)
    return action, score


READER = """
import sys, jax, numpy as np
from jax import export
found = export.deserialize(open(sys.argv[1], "rb").read()).call(np.load(sys.argv[2]))
np.savez(sys.argv[3], **found)
assert "mcetm" not in sys.modules
"""


def with_jax(policy: Policy, obs: np.ndarray, folder: Path) -> Answer:
    pytest.importorskip("flatbuffers")
    path, _ = policy.export(folder / "policy.stablehlo")
    np.save(folder / "obs.npy", obs)
    arguments = [path, folder / "obs.npy", folder / "found.npz"]
    subprocess.run([sys.executable, "-I", "-c", READER, *map(str, arguments)], check=True, cwd="/")
    with np.load(folder / "found.npz") as stored:
        found = dict(stored)
    if policy.pairs is None:
        assert set(found) == {"action"}
        return found["action"], None
    assert found["trust_limit"] == np.float32(policy.pairs.limit)
    return found["action"], found["trust_score"]


CONSUMERS: dict[str, Callable[[Policy, np.ndarray, Path], Answer]] = {
    "python": with_python,
    "c": with_c,
    "onnx": with_onnx,
    "jax": with_jax,
}


def assert_same(policy: Policy, consumer: str, folder: Path) -> None:
    obs = observations()
    action, score = CONSUMERS[consumer](policy, obs, folder)
    np.testing.assert_allclose(action, policy(obs), rtol=1e-5, atol=2e-5)
    if policy.pairs is None:
        assert score is None
        return
    wanted = policy.trust(obs)
    assert score is not None
    np.testing.assert_allclose(score, wanted.score, rtol=1e-4, atol=1e-4)
    clear = np.abs(wanted.score - wanted.limit) > 1e-3
    np.testing.assert_array_equal((score <= wanted.limit)[clear], wanted.trusted[clear])
    assert 10 < wanted.trusted.sum() < len(obs) - 10


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_the_file_says_what_the_policy_says(consumer: str, tmp_path: Path) -> None:
    """Near, far, extreme and held-out observations."""
    assert_same(scored_policy(), consumer, tmp_path)


@pytest.mark.parametrize("odds", ["gelu", "relu", "tanh", None])
@pytest.mark.parametrize("consumer", ["python", "c", "onnx"])
def test_every_kind_of_score_is_exported(consumer: str, odds: str | None, tmp_path: Path) -> None:
    assert_same(scored_policy(odds), consumer, tmp_path)


@pytest.mark.parametrize("consumer", ["python", "c", "onnx"])
def test_a_score_without_distances_is_exported(consumer: str, tmp_path: Path) -> None:
    policy = replace(scored_policy(far=False), about=dict(ABOUT))
    obs = observations()
    score = CONSUMERS[consumer](policy, obs, tmp_path)[1]
    assert score is not None
    np.testing.assert_allclose(score, policy.trust(obs).score, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_a_policy_without_a_score_is_exported_alone(consumer: str, tmp_path: Path) -> None:
    assert_same(scored_policy(trust=False), consumer, tmp_path)


@pytest.mark.parametrize("consumer", ["c", "onnx"])
def test_a_saved_policy_exports_the_same_file(consumer: str, tmp_path: Path) -> None:
    scored_policy().save(tmp_path / "saved")
    name = {"c": "p.h", "onnx": "p.onnx"}[consumer]
    (first,) = scored_policy().export(tmp_path / "a" / name)
    (second,) = load_policy(tmp_path / "saved").export(tmp_path / "b" / name)
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("consumer", ["c", "onnx"])
def test_what_is_too_far_for_any_number_is_not_trusted(consumer: str, tmp_path: Path) -> None:
    policy = scored_policy()
    action, score = CONSUMERS[consumer](policy, HUGE[2:], tmp_path)
    assert np.isfinite(action).all()
    assert score is not None
    assert not (score <= policy.trust(HUGE[2:]).limit).any()


def test_the_header_refuses_what_is_not_a_number(tmp_path: Path) -> None:
    program = compiled(scored_policy(), tmp_path, "-std=c11", "-O3")
    odd = np.array([[np.nan, 0, 0], [0, np.inf, 0], [0, 0, -np.inf]], np.float32)
    done = subprocess.run([program], input=odd.tobytes(), capture_output=True, check=True)
    assert (np.frombuffer(done.stdout, "<i4").reshape(3, -1)[:, 0] == -1).all()


def test_the_header_is_c_plus_plus_too(tmp_path: Path) -> None:
    if shutil.which("g++") is None:
        pytest.skip("there is no C++ compiler on this machine")
    compiled(scored_policy(), tmp_path, "-std=c++11", "-x", "c++")


def test_the_header_needs_nothing_but_functions_of_float(tmp_path: Path) -> None:
    """What a controller's linker has to find; memory, files and double precision are not among it."""
    if shutil.which("nm") is None:
        pytest.skip("there is no nm on this machine")
    compiled(scored_policy("gelu"), tmp_path, "-std=c99", "-O2", "-c")
    said = subprocess.run(["nm", "-u", tmp_path / "main"], capture_output=True, text=True, check=True).stdout
    needed = {line.split()[-1].partition("@")[0] for line in said.splitlines()}
    own = {"fread", "fwrite", "stdin", "stdout", "__stack_chk_fail", "_GLOBAL_OFFSET_TABLE_"}
    assert needed - own <= {"expf", "log1pf", "sqrtf", "tanhf"}
    assert "tanhf" in needed


@pytest.mark.parametrize("odds", ["silu", None])
def test_a_header_finds_out_that_its_numbers_are_not_kept(odds: Any, tmp_path: Path) -> None:
    """`p_check` on a machine, or after an edit, that changes what the policy says."""
    program = compiled(scored_policy(odds), tmp_path)
    header = (tmp_path / "p.h").read_text()
    subprocess.run([program], input=b"", check=True)
    for scale in ("static inline void p_relu(float *x, int count) {", "static inline float p_score("):
        body = {"void": "\n  x[0] += 0.5f;", "float": ""}[scale.split()[2]]
        broken = header.replace(scale, scale + body)
        broken = broken if body else header.replace("  return score;", "  return score + 0.1f;")
        (tmp_path / "p.h").write_text(broken)
        assert broken != header
        subprocess.run([str(CC), tmp_path / "main.c", "-o", tmp_path / "main", "-lm"], check=True)
        assert subprocess.run([program], input=b"", check=False).returncode == 3


def test_the_header_falls_back_by_itself(tmp_path: Path) -> None:
    """Onto the last action, kept in the same array; with a limit of the program's own."""
    if CC is None:
        pytest.skip("there is no C compiler on this machine")
    scored_policy().export(tmp_path / "p.h")
    (tmp_path / "hold.c").write_text(
        '#include <stdio.h>\n#define P_TRUST_LIMIT 5.0f\n#include "p.h"\nint main(void) {\n'
        "  float obs[P_OBS_DIM], last[P_ACTION_DIM] = {7.0f, 8.0f};\n"
        '  while (scanf("%f %f %f", &obs[0], &obs[1], &obs[2]) == 3) {\n'
        "    int outside = p_act_or(obs, last, last);\n"
        '    printf("%d %.6g %.6g\\n", outside, (double)last[0], (double)last[1]);\n  }\n'
        "  return 0;\n}\n"
    )
    subprocess.run([CC, tmp_path / "hold.c", "-o", tmp_path / "hold", "-lm"], check=True)
    rows = np.concatenate([HUGE, [[np.nan, 0.0, 0.0]], observations()[:60], HUGE]).astype(np.float32)
    lines = "\n".join(" ".join(map(repr, row)) for row in rows.tolist())
    said = subprocess.run([tmp_path / "hold"], input=lines, capture_output=True, text=True, check=True).stdout
    last, held = np.array([7.0, 8.0]), []
    for row, line in zip(rows, said.splitlines(), strict=True):
        trusted = bool(np.isfinite(row).all()) and scored_policy().trust(row).score <= 5.0
        last = scored_policy()(row) if trusted else last
        held.append(not trusted)
        outside, *action = map(float, line.split())
        assert outside == (not trusted)
        np.testing.assert_allclose(action, last, rtol=1e-4, atol=1e-4)
    assert 10 < sum(held) < len(held) - 10


def test_the_header_does_not_compile_where_nothing_is_not_a_number(tmp_path: Path) -> None:
    if CC is None:
        pytest.skip("there is no C compiler on this machine")
    scored_policy().export(tmp_path / "p.h")
    done = subprocess.run(
        [CC, "-ffast-math", "-fsyntax-only", "-x", "c", tmp_path / "p.h"], capture_output=True, text=True
    )
    assert done.returncode != 0
    assert "compile without -ffast-math" in done.stderr


def test_the_python_file_refuses_what_is_not_an_observation(tmp_path: Path) -> None:
    program = scored_policy().export(tmp_path / "plain.npz")[1]
    for line in ("1 2", "1 2 nan", "1 2 3 4"):
        done = subprocess.run(
            [sys.executable, "-S", "-I", program], input=line, capture_output=True, text=True
        )
        assert done.returncode == 1
        assert "an observation is 3 finite numbers" in done.stderr


def metadata_of(path: Path) -> dict:
    if path.suffix == ".onnx":
        onnx = pytest.importorskip("onnx")
        found = {entry.key: entry.value for entry in onnx.load(path).metadata_props}
        text = ("data_checksum", "mcetm", "algorithm", "exported_by", "policy_checksum")
        return {name: value if name in text else json.loads(value) for name, value in found.items()}
    if path.suffix == ".npz":
        with np.load(path) as stored:
            return json.loads(bytes(stored["about"]).decode())
    return json.loads(path.with_name(f"{path.name}.json").read_text())


@pytest.mark.parametrize("suffix", ["npz", "onnx", "stablehlo"])
def test_what_is_known_of_a_policy_travels_with_it(suffix: str, tmp_path: Path) -> None:
    found = metadata_of(scored_policy().export(tmp_path / f"policy.{suffix}")[0])
    for name in ("obs_names", "obs_mean", "obs_std", "data_checksum", "mcetm"):
        assert found[name] == ABOUT[name]
    assert (found["action_low"], found["action_high"]) == ([-2.0, 0.0], [2.0, 10.0])
    examples, policy = found["examples"], scored_policy()
    np.testing.assert_allclose(examples["action"], policy(examples["obs"]), rtol=1e-6)
    np.testing.assert_allclose(examples["trust_score"], policy.trust(examples["obs"]).score, rtol=1e-5)
    # Rarer than one of the 999 pairs that the score was counted with, nothing is known.
    assert found["trust_rarity"] == {
        str(n): pytest.approx(i - 2.0, abs=1e-6) for i, n in enumerate((2, 5, 10, 20, 50, 100, 200, 500))
    }


def test_what_is_known_of_a_policy_is_in_its_header(tmp_path: Path) -> None:
    if CC is None:
        pytest.skip("there is no C compiler on this machine")
    scored_policy().export(tmp_path / "p.h")
    (tmp_path / "names.c").write_text(
        '#include <stdio.h>\n#include "p.h"\nint main(void) {\n'
        "  const char *names[] = P_OBS_NAMES;\n"
        "  const float low[] = P_ACTION_LOW, std[] = P_OBS_STD;\n"
        '  for (int i = 0; i < P_OBS_DIM; ++i) printf("%s\\n", names[i]);\n'
        '  printf("%g %g %s %g\\n", low[0], std[2], P_DATA_CHECKSUM, P_TRUST_LIMIT);\n  return 0;\n}\n'
    )
    subprocess.run([CC, tmp_path / "names.c", "-o", tmp_path / "names", "-lm"], check=True)
    said = subprocess.run(
        [tmp_path / "names"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert said == [*ABOUT["obs_names"], f"-2 3 {'ab' * 32} 6"]


@pytest.mark.parametrize("name", ["policy", "policy.pt", "policy.json", "policy.onnx.gz"])
def test_a_suffix_that_nothing_writes_is_one_sentence(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"one of \.npz, \.h, \.onnx, \.stablehlo"):
        scored_policy().export(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_program_of_the_users_own_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "policy.py").write_text("print('mine')\n")
    with pytest.raises(UserError, match="would be replaced"):
        scored_policy().export(tmp_path / "policy.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["policy.py"]
    with pytest.raises(UserError, match="Python's own module 'json'"):
        scored_policy().export(tmp_path / "json.npz")
    for _ in range(2):  # an export of ours may be written again
        scored_policy().export(tmp_path / "second.npz")


def test_an_exported_npz_is_not_taken_for_a_behaviour_policy(tmp_path: Path) -> None:
    path = scored_policy().export(tmp_path / "policy.npz")[0]
    with pytest.raises(UserError, match="not a tanh-Gaussian policy"):
        read_policy(path)


def test_stablehlo_without_flatbuffers_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r'pip install "mcetm\[export\]"'):
        scored_policy().export(tmp_path / "policy.stablehlo")


def test_names_of_files_become_names_in_c(tmp_path: Path) -> None:
    for name, word in {"Tank-2 v1": "tank_2_v1_act", "7": "policy_7_act", "äö": "policy_act"}.items():
        (path,) = scored_policy().export(tmp_path / f"{name}.h")
        assert f"int {word}(" in path.read_text()
