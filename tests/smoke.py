"""Whether a built distribution works where nothing else is installed, and how large that is.

    python tests/smoke.py dist/mcetm-0.1.0-py3-none-any.whl            # all that a user does first
    python tests/smoke.py --sizes dist/mcetm-0.1.0-py3-none-any.whl    # megabytes of each package as well

Needs the standard library alone: it makes an environment of its own, of the Python that runs it, in a
folder that is removed at the end. The release workflow runs it before anything is published.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

SMALL = [
    "algorithm.learner.steps=100",
    "algorithm.learner.width=16",
    "model.steps=50",
    "model.width=16",
    "world.reward.steps=50",
    "world.calibration.rows=200",
    "evaluation.every=100",
    "evaluation.episodes=2",
]
COMMANDS: list[tuple[list[str], int, str]] = [
    (["--version"], 0, "mcetm "),
    (["--help"], 0, "Begin with: mcetm train"),
    (["data", "inspect", "pendulum-mixed"], 0, "pendulum-mixed"),
    (["train", "--algo", "mopo", "--seeds", "1", "--out", "run", "--set", *SMALL], 0, "run/report.html"),
    (["export", "run", "--to", "npz"], 0, "wrote policy.npz and policy.py"),
    (["export", "run", "--to", "h"], 0, "wrote policy.h"),
    (["export", "run", "--to", "onnx"], 0, "wrote policy.onnx"),
    (["evaluate", "run", "--episodes", "2"], 0, "return"),
    (["study", "list"], 0, "energy-error"),
    # What is an extra is asked for in a sentence.
    (["export", "run", "--to", "stablehlo"], 2, 'pip install "mcetm[export]"'),
    (["train", "--log", "tensorboard", "--out", "other"], 2, 'pip install "mcetm[tensorboard]"'),
    (["data", "collect", "--task", "hopper", "--steps", "9", "--out", "h.npz"], 2, '"mcetm[mujoco]"'),
]  # fmt: skip
"""What is typed, the exit code, and words of the answer."""

WHERE = "import mcetm, mcetm_experiments; print(mcetm.__file__)"
SIZES = """
import importlib.metadata, os, sys
found = {}
for package in importlib.metadata.distributions():
    paths = {os.path.realpath(package.locate_file(file)) for file in package.files or ()}
    here = [os.stat(path).st_blocks * 512 for path in paths if os.path.exists(path)]
    found[f"{package.name} {package.version}"] = sum(here) / 2**20
for name, size in sorted(found.items(), key=lambda pair: -pair[1]):
    if size >= 1:
        print(f"{size:8.0f} MiB  {name}")
rest = [size for size in found.values() if size < 1]
print(f"{sum(rest):8.0f} MiB  {len(rest)} smaller ones")
print(f"{sum(found.values()):8.0f} MiB  together, on Python {sys.version.split()[0]}")
"""


def main() -> None:
    """Install, type the commands, and say the size."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("distribution", type=Path, help="a wheel, or a source distribution")
    arguments.add_argument("--sizes", action="store_true", help="the megabytes of each package too")
    given = arguments.parse_args()
    distribution = given.distribution.resolve(strict=True)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        venv.create(place / "venv", with_pip=True)
        programs = place / "venv" / ("Scripts" if os.name == "nt" else "bin")
        work = place / "work"
        work.mkdir()
        # Nothing of the user's own: no source tree on the path, and a home that is empty.
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MCETM"))}
        environment = {**kept, "MCETM_CACHE": str(place / "cache"), "MCETM_CONFIG": str(place / "config")}
        python = [str(programs / "python")]
        _run([*python, "-m", "pip", "install", "--quiet", str(distribution)], work, kept)
        _run([*python, "-m", "pip", "check"], work, kept)
        if given.sizes:
            print(_run([*python, "-c", SIZES], work, kept))
        assert str(place.resolve()) in _run([*python, "-c", WHERE], work, kept)
        for typed, code, words in COMMANDS:
            said = _run([str(programs / "mcetm"), *typed], work, environment, code)
            if words not in said:
                sys.exit(f"mcetm {' '.join(typed)} does not say {words!r}:\n{said}")
            print(f"ok: mcetm {' '.join(typed)[:60]}", flush=True)
        action = _run([*python, "-I", "-S", "policy.py"], work, environment, typed="1 0 0\n")
        print(f"ok: policy.py says {action.strip()}")
        if not (work / "run" / "figures").is_dir() and not list((work / "run").glob("**/*.png")):
            sys.exit("The run has a report without figures.")
    print(f"{distribution.name} works on Python {sys.version.split()[0]}")


def _run(
    command: list[str], folder: Path, environment: dict[str, str], code: int = 0, *, typed: str = ""
) -> str:
    """What a command says; anything but the exit code that is right ends the test."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        input=typed,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode != code:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}, not {code}:\n{done.stdout}")
    return done.stdout


if __name__ == "__main__":
    main()
