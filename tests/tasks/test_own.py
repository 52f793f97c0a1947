"""Modules of the user's own are imported when the user has named them, and not because a file does."""

import json
from pathlib import Path

import pytest

from mcetm import UserError
from mcetm.files import config_folder
from mcetm.tasks import get_task
from mcetm.tasks.own import UnnamedModuleError, remember, task_in_file


def test_a_file_imports_only_what_was_named_and_is_unchanged(marker: Path) -> None:
    with pytest.raises(
        UnnamedModuleError, match=r"RUN names .*helper\.py, and that you have not named before"
    ):
        task_in_file("helper:jump", "RUN")
    remember("helper:jump")
    assert not marker.exists(), "naming alone runs nothing"
    (entry,) = json.loads((config_folder() / "modules.json").read_text())
    assert (entry["module"], entry["path"]) == ("helper", str(Path("helper.py").resolve()))
    assert task_in_file("helper:jump", "RUN").name == "jump"
    assert marker.exists()
    with Path("helper.py").open("a") as file:
        file.write("# more\n")
    with pytest.raises(UnnamedModuleError, match=r"has changed since you named it; .* --task helper:jump"):
        task_in_file("helper:jump", "RUN")
    remember("helper:jump")
    assert task_in_file("helper:jump", "RUN").name == "jump"


def test_the_same_name_elsewhere_is_another_module(
    marker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember("helper:jump")
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "helper.py").write_text(Path("helper.py").read_text())
    monkeypatch.chdir(tmp_path / "there")
    with pytest.raises(UnnamedModuleError):
        task_in_file("helper:jump", "RUN")
    assert not marker.exists()


def test_packages_around_a_module_count_too(marker: Path) -> None:
    Path("package").mkdir()
    Path("package/__init__.py").write_text("")
    Path("helper.py").rename("package/inner.py")
    remember("package.inner:jump")
    Path("package/__init__.py").write_text(Path("package/inner.py").read_text())
    with pytest.raises(UnnamedModuleError, match=r"package/__init__\.py"):
        task_in_file("package.inner:jump", "RUN")
    assert not marker.exists()
    remember("package.inner:jump")
    assert task_in_file("package.inner:jump", "RUN").name == "jump"


@pytest.mark.parametrize(
    "name",
    ["nobody:jump", "sys:jump", "runs:jump", "runs.a:jump", "helper.x:jump", ".helper:jump", "a b:c", "::"],
)
def test_a_name_without_a_file_is_one_sentence(marker: Path, name: str) -> None:
    Path("runs/a").mkdir(parents=True)
    with pytest.raises(UserError, match="Cannot import"):
        remember(name)
    with pytest.raises(UserError, match="there is no module"):
        task_in_file(name, "RUN")
    assert not marker.exists()


def test_plain_names_need_no_module() -> None:
    assert task_in_file("hopper", "RUN").name == "hopper"
    with pytest.raises(UserError, match="did you mean 'hopper'"):
        task_in_file("hoper", "RUN")


def test_a_damaged_record_is_one_sentence(marker: Path) -> None:
    config_folder().mkdir(parents=True)
    (config_folder() / "modules.json").write_text('[{"module": 3}]')
    for door in (remember, lambda name: task_in_file(name, "RUN")):
        with pytest.raises(UserError, match=r"modules\.json cannot be read; delete it"):
            door("helper:jump")
    assert not marker.exists()


def test_an_environment_without_spaces_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty_env.py").write_text("import gymnasium\nclass Nothing(gymnasium.Env):\n    pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(UserError, match=r"cannot be made: .*observation_space"):
        get_task("empty_env:Nothing")
