"""Tables of what is known by name: tasks and datasets."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from mcetm.data.download import find_d4rl
from mcetm.data.minari import minari_ids
from mcetm.envs.recipes import dataset_path
from mcetm.tasks.datasets import D4RL_DATASETS, RECIPES
from mcetm.tasks.registry import get_task, task_names


def show_tasks(console: Console) -> None:
    """Every registered task."""
    table = Table(title="tasks", title_justify="left", title_style="bold", box=None, padding=(0, 1))
    for heading in ("name", "environment", "obs", "action", "steps", "score 0", "score 100"):
        left = heading in ("name", "environment")
        table.add_column(heading, justify="left" if left else "right", no_wrap=True)
    for name in task_names():
        task = get_task(name)
        scores = (
            ("", "") if task.scores is None else (f"{task.scores.random:,.1f}", f"{task.scores.expert:,.1f}")
        )
        table.add_row(
            name, task.env_id, str(task.obs_dim), str(task.action_dim), str(task.time_limit), *scores
        )
    console.print(table)


def show_datasets(console: Console) -> None:
    """Every dataset that can be asked for by name."""
    table = Table(title="\ndatasets", title_justify="left", title_style="bold", box=None, padding=(0, 1))
    for heading in ("name", "from", "transitions", "at hand"):
        table.add_column(heading, justify="right" if heading == "transitions" else "left", no_wrap=True)
    for recipe in RECIPES.values():
        kept = dataset_path(recipe).is_file()
        table.add_row(recipe.name, "collected", f"{recipe.transitions:,}", "yes" if kept else "")
    for name in D4RL_DATASETS:
        table.add_row(name, "D4RL, downloaded", "", "yes" if find_d4rl(name) else "")
    for name in minari_ids():
        table.add_row(name, "Minari", "", "yes")
    console.print(table)
