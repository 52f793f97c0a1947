"""Words that a person types: options of every command, paths, modules of one's own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from hostile_trial.material import ESTIMATES
from hostile_trial.trial import Case, Place, command

_NUMBERS = ("", "x", "1.5", "nan", "inf", "1e3", "0x10", "١", "-1", "9" * 40, "0")
_SHORT = ("--set", "algorithm.steps=5", "algorithm.width=4", "algorithm.depth=1")


def commands() -> Iterator[Case]:
    """Command lines that are none."""
    lines = [
        "nobody", "data", "data nobody", "study", "study nobody", "bench nobody", "train --nobody", "train a b", "train {m}/log.npz --dataset {m}/log.npz", "train --algo", "train --algo nobody", "train --algo MCETM",
        "train {m}/one.npz --model nobody", "train {m}/one.npz --model mcetm", "train {m}/one.npz --algo gaussian", "train {m}/one.npz --algo bc --model nobody", "train {m}/log.npz --log nobody --algo bc --out run",
        "train {m}/log.npz --task nobody", "train {m}/log.npz --task pendulum2", "train {m}/log.npz --task hopper --algo bc --out run", "train {m}/log.npz --task tank --algo bc --out run", "train nothing.npz", "train hopper-medium-v9", "train d4rl:nobody", "train minari:nobody/x-v0", "train minari:",
        "train minari:../../etc", "train d4rl:", "train http://localhost/x.npz", "train file:///etc/passwd", "train --preset nobody", "train --resume", "train --resume nowhere", "train --resume {m}/bc --steps 0", "train --resume {m}/bc --seed 5", "train --resume {m}/bc --algo iql",
        "train --resume {m}/bc --set seeds=9", "train --resume {m}/bc --out x", "train --resume {m}/bc --dataset {m}/plain.npz", "train --resume {m}/bc --dataset nothing", "train --resume {m}/bc {m}/usual.csv", "train {m}/log.npz --models nowhere --out x", "train {m}/log.npz --models {m}/bc --out x",
        "train {m}/log.npz --algo bc --models {m}/mopo --out x --set algorithm.steps=5", "train {m}/usual.csv --algo mopo --models {m}/mopo --out x", "train {m}/log.npz --algo mopo --models {m}/mopo --seed 7 --out x", "train {m}/log.npz --algo mcetm --models {m}/mopo --out x",
        "evaluate", "evaluate nowhere", "evaluate {m}/bc {m}/mopo", "evaluate {m}/bc --task nobody", "evaluate {m}/bc --task hopper", "evaluate {m}/bc --task tank", "evaluate {m}/bc --task os:system", "evaluate {m}/log.npz", "compare", "compare nowhere", "compare {m}/bc {m}/bc", "compare a={m}/bc a={m}/mopo",
        "compare ={m}/bc", "compare a=", "compare {m}/bc --csv x.csv --markdown x.csv", "compare {m}/bc --csv /proc/nowhere/at/all/x.csv", "compare {m}/bc --csv /dev/full", "compare {m}/bc --latex {m}", "compare {m}/bc --out {m}/log.npz", "compare {m}/bc --task nobody", "compare {m}/bc --task nobody:x",
        "estimate", "estimate nowhere", "estimate {m}/bc --log nothing", "estimate {m}/bc --log {m}/plain.npz --set fqe.steps=0", "estimate {m}/bc --log {m}/usual.csv", "estimate {m}/bc --task pendulum", "estimate {m}/bc --out {m}/log.npz",
        "estimate {m}/bc --log {m}/one.npz", "estimate {m}/bc {m}/nowhere", "select", "select nowhere", "select {m}/bc --measured seed-0=1 --out none", "select {m}/bc --budget 3 --out {m}/log.npz", "trust", "trust {m}/bc", "trust {m}/bc {m}/log.npz", "trust {m}/mopo nothing", "trust {m}/mopo {m}/usual.csv",
        "trust {m}/mopo {m}/plant.csv", "trust {m}/mopo {m}/plant.csv --obs level flow cost --action pump", "trust nowhere {m}/log.npz", "trust {m}/mopo {m}/mopo", "trust {m}/mopo {m}/log.npz --obs obs_0", "export", "export {m}/bc", "export nowhere --to npz", "export {m}/bc --to nobody", "export {m}/bc --out x.txt",
        "export {m}/bc --out x", "export {m}/bc --to npz --out x.onnx", "export {m}/bc --to npz --seed 9", "export {m}/bc --to npz --seed x", "export {m}/bc --to npz --out /proc/nowhere/x.npz", "export {m}/bc --to npz --out {m}/log.npz", "export {m}/bc --to h --out /dev/full", "export {m}/bc --part dynamics --to stablehlo",
        "export {m}/mopo --part dynamics --to npz", "export {m}/mopo --part dynamics --to h", "export {m}/mopo --part energies --to stablehlo", "export {m}/mopo --part dynamics --to stablehlo --samples 0", "export {m}/mopo --part dynamics --to stablehlo --samples -3", "export {m}/mopo --part dynamics --to onnx --samples 99999999999",
        "export {m}/mopo --part dynamics --to stablehlo --samples 1000000000", "export {m}/mopo --part dynamics --to onnx --seed 0", "data inspect", "data inspect nothing", "data inspect {m}", "data inspect /", "data inspect .", "data convert {m}/log.npz", "data convert {m}/log.npz x.csv", "data convert {m}/log.npz x", "data convert {m}/log.npz {m}/plain.npz",
        "data convert {m}/log.npz /proc/nowhere/x.npz", "data convert {m}/log.npz {m} --force", "data convert {m}/log.npz /dev/full", "data convert {m}/log.npz /dev/null --force", "data convert {m}/log.npz x.npz --time-limit 0", "data describe", "data describe nothing.csv", "data describe {m}/log.npz", "data describe {m}/log.hdf5", "data describe {m}",
        "data collect", "data collect --task nobody --out x.npz --steps 10", "data collect --task pendulum --out x.npz", "data collect --task pendulum --out x.csv --steps 10", "data collect --task pendulum --out x.npz --steps 10 --policy nobody", "data collect --task pendulum --out x.npz --steps 10 --policy {m}/log.npz",
        "data collect --task pendulum --out x.npz --steps 10 --policy {m}/plain.npz", "data collect --task pendulum --out x.npz --steps 10 --policy {m}/bc", "data collect --task hopper --out x.npz --steps 10 --policy swing-up", "data collect --task hopper-medium --out x.npz --steps 10", "data collect --task os:system --out x.npz --steps 10",
        "data collect --task :x --out x.npz --steps 10", "data collect --task CartPole-v1 --out x.npz --steps 10", "data collect --task Taxi-v3 --out x.npz --steps 10", "data collect --task Blackjack-v1 --out x.npz --steps 10", "data collect --task FrozenLake-v1 --out x.npz --steps 10", "data collect --task Nobody-v3 --out x.npz --steps 10",
        "data collect --task pendulum --out /proc/nowhere/at/x.npz --steps 10", "data collect --task pendulum --out {m}/log.npz --steps 10", "data list extra",
        "study contact --data nothing.npz", "study contact --data {m}/plain.npz", "study contact --data {m}/usual.csv", "study didactic --transitions 0", "study didactic --transitions -5", "study didactic --seeds 0", "study didactic --transitions 3 --seeds 1", "study landscape --state-dim 0", "study landscape --action-dim -1", "study landscape --seeds 0",
        "study landscape --chain -1", "study bound --mdps 0", "study bound --mdps -1", "study bound --seed -1", "study cross-dataset --tasks nobody", "study rollouts --pictures nobody", "study energy-error --members 0", "study energy-error --seeds 0", "study energy-error --run nowhere", "study energy-error --run {m}/bc",
        "study energy-error --run {m}/mopo", "study trust --logs nothing", "study trust --logs {m}/one.npz", "study trust --logs {m}/log.npz --rows 0", "study trust --logs {m}/log.npz --seeds 0", "study trust --logs {m}/log.npz --rows -9", "study benchmark --plan nothing", "study benchmark --plan {m}", "study benchmark --plan small --only nothing", "study benchmark --plan small --jobs 0",
        "study benchmark --plan small --jobs -3", "study benchmark --plan small --minutes -1", "study benchmark --plan small --minutes nan", "study benchmark --plan small --data nowhere", "study estimates --logs nobody", "study estimates --lengths 0", "study estimates --lengths -1", "study estimates --episodes 0", "study estimates --seeds 0", "study estimates --seed -1", "study list x",
        "bench sampling --seconds 0", "bench sampling --seconds -1", "bench sampling --seconds nan", "bench policy --algos nobody", "bench policy --seeds 0", "bench policy --seeds -1", "bench sampling --record /proc/nowhere/x.json", "bench sampling --size nobody",
    ]  # fmt: skip
    may = {"trust {m}/mopo {m}/plant.csv --obs level flow cost --action pump", "train {m}/log.npz --algo bc --models {m}/mopo --out x --set algorithm.steps=5", "compare {m}/bc {m}/bc", "export {m}/mopo --part dynamics --to onnx --samples 99999999999", "data convert {m}/log.npz /dev/null --force",
           "study benchmark --plan small --minutes -1", "bench sampling --seconds 0", "study didactic --transitions 3 --seeds 1", "study rollouts --tasks", "select {m}/bc --measured seed-0=1 --out none"}  # fmt: skip
    for line in lines:
        quick = (
            ("--set", *ESTIMATES)
            if line.startswith(("estimate {m}", "select {m}")) and "--set" not in line
            else ()
        )
        yield command(
            "command lines", line, *line.split(), *quick, expect="either" if line in may else "refused"
        )


def numbers() -> Iterator[Case]:
    """Numbers of options that cannot be."""
    options = {
        "--seeds": "train {m}/one.npz --algo bc --out run", "--seed": "evaluate {m}/bc --episodes 1", "--steps": "train {m}/one.npz --algo bc --out run", "--episodes": "evaluate {m}/bc", "--min-transitions": "data inspect {m}/one.npz",
        "--time-limit": "data inspect {m}/plain.npz", "--processes": "data collect --task pendulum --steps 10 --out x.npz", "--samples": "export {m}/mopo --part dynamics --to stablehlo", "--budget": "select {m}/bc --out chosen",
    }  # fmt: skip
    for option, line in options.items():
        for text in _NUMBERS:
            fine = (option, text) in {
                ("--seed", "0"),
                ("--seed", "١"),
                ("--time-limit", "١"),
                ("--processes", "١"),
                ("--samples", "١"),
                ("--budget", "١"),
                ("--seed", "9" * 40),
                ("--processes", "9" * 40),
                ("--episodes", "١"),
                ("--min-transitions", "0"),
            }
            yield command(
                "numbers",
                f"{option} {text[:9]!r}: {line.split()[0]}",
                *line.split(),
                option,
                text,
                words=(
                    option,
                    option[2:].replace("-", "_"),
                    option[2:],
                    "Episodes",
                    "seed",
                    "plan",
                    "samples",
                    "transitions",
                ),
                expect="either" if fine or text == "١" else "refused",
            )
    for option, line in (
        ("--seed", "estimate {m}/bc --out d --set " + " ".join(ESTIMATES)),
        ("--seed", "select {m}/bc --out c"),
        ("--seed", "data collect --task pendulum --steps 10 --out x.npz"),
        ("--seed", "train {m}/log.npz --algo bc --out run --set algorithm.steps=5"),
    ):
        for text in ("-1", "9" * 12, "9" * 30):
            parts = line.split()
            yield command(
                "numbers",
                f"{option} {text[:9]}: {parts[0]}",
                parts[0],
                *parts[1:2],
                *([parts[2]] if parts[0] == "data" else []),
                option,
                text,
                *parts[3 if parts[0] == "data" else 2 :],
                expect="either",
            )


def paths() -> Iterator[Case]:
    """Names of files that are odd, and files that are none."""
    odd: dict[str, Callable[[Place], str]] = {
        "a folder": lambda p: str(p.folder), "a pipe": lambda p: _made(p, os.mkfifo), "a loop": lambda p: _made(p, lambda x: Path(x).symlink_to("odd")), "/dev/zero": lambda p: "/dev/zero", "/dev/full": lambda p: "/dev/full", "/dev/stdin": lambda p: "/dev/stdin",
        "/proc/self/mem": lambda p: "/proc/self/mem", "overlong": lambda p: "x" * 300 + ".npz", "a path of 5,000": lambda p: "a/" * 2500 + "x.npz", "not UTF-8": lambda p: "\udcff\udcfe.npz", "NUL": lambda p: "a\x00b.npz", "a newline": lambda p: "a\nb.npz",
        "escapes": lambda p: "\x1b[31mx.npz", "markup": lambda p: "[/red]x.npz", "a dash": lambda p: "-x.npz", "dashes": lambda p: "--force", "a tilde": lambda p: "~nobody/x.npz", "a dollar": lambda p: "$HOME/x.npz", "empty": lambda p: "", "a dot": lambda p: ".", "dots": lambda p: "..", "a slash": lambda p: "/",
        "below a file": lambda p: str(p.material / "log.npz" / "x.npz"), "a space": lambda p: " ", "right to left": lambda p: "\u202ezpn.x",
    }  # fmt: skip
    lines = {
        "inspect": lambda x: ("data", "inspect", x), "convert to": lambda x: ("data", "convert", "{m}/log.npz", x, "--force"), "describe": lambda x: ("data", "describe", x), "train --out": lambda x: ("train", "{m}/log.npz", "--algo", "bc", "--seeds", "1", "--out", x, *_SHORT),
        "resume": lambda x: ("train", "--resume", x), "evaluate": lambda x: ("evaluate", x), "compare --csv": lambda x: ("compare", "{m}/bc", "--csv", x), "compare --out": lambda x: ("compare", "{m}/bc", "--out", x), "export --out": lambda x: ("export", "{m}/bc", "--out", x, "--to", "npz"),
        "trust": lambda x: ("trust", "{m}/mopo", x), "estimate --log": lambda x: ("estimate", "{m}/bc", "--log", x, "--set", *ESTIMATES), "plan": lambda x: ("study", "benchmark", "--plan", x, "--page", "--out", "o"), "collect": lambda x: ("data", "collect", "--task", "pendulum", "--steps", "10", "--out", x),
        "collect --policy": lambda x: ("data", "collect", "--task", "pendulum", "--steps", "10", "--out", "y.npz", "--policy", x), "--models": lambda x: ("train", "{m}/log.npz", "--models", x, "--out", "o"), "select --out": lambda x: ("select", "{m}/bc", "--budget", "3", "--out", x),
    }  # fmt: skip
    writes = {
        "convert to",
        "train --out",
        "compare --csv",
        "compare --out",
        "export --out",
        "collect",
        "select --out",
    }
    number = 0
    for name, make in odd.items():
        for what, line in lines.items():
            number += 1
            if (number % 2 and what not in writes) or (
                what in ("compare --out", "train --out") and number % 3
            ):
                continue
            if what == "resume" and name == "a dot":
                continue

            def act(
                place: Place,
                make: Callable[[Place], str] = make,
                line: Callable[[str], tuple[str, ...]] = line,
            ) -> int:
                return place.run(*(part.replace("{m}", str(place.material)) for part in line(make(place))))

            yield Case("paths", f"{what}: {name}", act, "either", (), lambda place, make=make: make(place))


def _made(place: Place, make: Callable[[str], object]) -> str:
    path = place.folder / "odd"
    if not os.path.lexists(path):
        make(str(path))
    return str(path)


def modules() -> Iterator[Case]:
    """Modules of one's own that are none, or do what they should not."""
    bodies = {
        "no such": None, "raises": "raise ValueError('no')", "exits": "import sys; sys.exit(3)", "exits at once": "raise SystemExit", "does not parse": "def (", "recursion": "def f(): f()\nf()", "interrupts": "raise KeyboardInterrupt", "imports nothing": "import nobody_at_all",
        "not UTF-8": "x = '\udcff'", "NUL": "x = '\x00'", "empty": "", "a number": "thing = 3", "None": "thing = None", "a function": "def thing(): return 3", "raises when asked": "def __getattr__(n): raise RuntimeError('no')", "a class of nothing": "class thing: pass",
        "an environment that raises": "import gymnasium\nclass thing(gymnasium.Env):\n    def __init__(self): raise OSError('broken')", "without spaces": "import gymnasium\nclass thing(gymnasium.Env):\n    pass",
        "spaces of words": "import gymnasium\nclass thing(gymnasium.Env):\n    observation_space = 'x'\n    action_space = 3", "images": "import gymnasium, numpy as np\nclass thing(gymnasium.Env):\n    observation_space = gymnasium.spaces.Box(0, 255, (8, 8, 3), np.uint8)\n    action_space = gymnasium.spaces.Box(-1, 1, (1,))",
        "NaN observed": "import gymnasium, numpy as np\nclass thing(gymnasium.Env):\n    observation_space = gymnasium.spaces.Box(-1, 1, (3,))\n    action_space = gymnasium.spaces.Box(-2, 2, (1,))\n    def reset(self, seed=None, options=None): return np.full(3, np.nan, np.float32), {}\n    def step(self, a): return np.full(3, np.nan, np.float32), 0.0, False, True, {}",
        "NaN rewarded": "import gymnasium, numpy as np\nclass thing(gymnasium.Env):\n    observation_space = gymnasium.spaces.Box(-1, 1, (3,))\n    action_space = gymnasium.spaces.Box(-2, 2, (1,))\n    def reset(self, seed=None, options=None): return np.zeros(3, np.float32), {}\n    def step(self, a): return np.zeros(3, np.float32), float('nan'), False, True, {}",
        "reset returns one": "import gymnasium, numpy as np\nclass thing(gymnasium.Env):\n    observation_space = gymnasium.spaces.Box(-1, 1, (3,))\n    action_space = gymnasium.spaces.Box(-2, 2, (1,))\n    def reset(self, seed=None, options=None): return np.zeros(3, np.float32)\n    def step(self, a): return 1",
        "step raises": "import gymnasium, numpy as np\nclass thing(gymnasium.Env):\n    observation_space = gymnasium.spaces.Box(-1, 1, (3,))\n    action_space = gymnasium.spaces.Box(-2, 2, (1,))\n    def reset(self, seed=None, options=None): return np.zeros(3, np.float32), {}\n    def step(self, a): raise RuntimeError('broken')",
        "step exits": "import gymnasium, numpy as np, sys\nclass thing(gymnasium.Env):\n    observation_space = gymnasium.spaces.Box(-1, 1, (3,))\n    action_space = gymnasium.spaces.Box(-2, 2, (1,))\n    def reset(self, seed=None, options=None): return np.zeros(3, np.float32), {}\n    def step(self, a): sys.exit(0)",
        "observations of another width": "import gymnasium, numpy as np\nclass thing(gymnasium.Env):\n    observation_space = gymnasium.spaces.Box(-1, 1, (3,))\n    action_space = gymnasium.spaces.Box(-2, 2, (1,))\n    def reset(self, seed=None, options=None): return np.zeros(5, np.float32), {}\n    def step(self, a): return np.zeros(4, np.float32), 0.0, False, True, {}",
    }  # fmt: skip
    for number, (name, body) in enumerate(bodies.items()):
        for what in ("task", "model", "collect"):
            module = f"own_{what}_{number}"

            def prepare(place: Place, module: str = module, body: str | None = body) -> None:
                if body is not None:
                    place.write(f"{module}.py", body.encode("utf-8", "surrogateescape"))

            line = {
                "task": ("evaluate", "{m}/bc", "--episodes", "1", "--task", f"{module}:thing"),
                "model": ("train", "{m}/log.npz", "--model", f"{module}:thing", "--out", "run"),
                "collect": (
                    "data",
                    "collect",
                    "--steps",
                    "20",
                    "--processes",
                    "1",
                    "--out",
                    "x.npz",
                    "--task",
                    f"{module}:thing",
                ),
            }[what]
            if what == "model" and number > 15:
                continue
            expect = "either" if name == "not UTF-8" else "refused"
            yield command(
                "modules of one's own",
                f"{what}: {name}",
                *line,
                prepare=prepare,
                words=(module,),
                expect=expect,
            )
    for text in (
        "os:system",
        ":x",
        "x:",
        "a:b:c",
        "..x:y",
        "a.b..c:d",
        "a b:c",
        "os.path:join",
        "builtins:exec",
        "sys:exit",
        "/tmp/x.py:thing",
        "x.py:thing",
        "mcetm:BC",
        "json:",
        "antigravity:x",
        "__main__:x",
        "ünï:x",
        "a" * 5000 + ":x",
        "-m:x",
    ):
        yield command(
            "modules of one's own",
            f"--task {text[:30]}",
            "evaluate",
            "{m}/bc",
            "--episodes",
            1,
            "--task",
            text,
        )
        yield command(
            "modules of one's own",
            f"--model {text[:30]}",
            "train",
            "{m}/log.npz",
            "--model",
            text,
            "--out",
            "run",
        )


def cases() -> Iterator[Case]:
    """All of them."""
    for make in (commands, numbers, paths, modules):
        yield from make()
