"""What a page says of its model's predictions."""

from pathlib import Path

import pytest

from mcetm.dynamics.accuracy import Accuracy, OpenLoop
from mcetm.report.accuracy import accuracy_part, words_of


def accuracy(*errors: float) -> Accuracy:
    still = tuple(float(t) for t in range(1, len(errors) + 1))
    loop = OpenLoop(errors, errors, tuple(2.0 * error for error in errors), still, 30)
    return Accuracy(("level", "set <point>", "flow"), (0.02, None, 0.4), 1234, loop)


@pytest.mark.parametrize(
    ("errors", "words"),
    [
        ((0.1, 0.2, 0.24), "for 3 of 3 steps in the middle one of 30 stretches, and for 3 in nine of ten"),
        ((0.1, 0.4, 0.7), "for 2 of 3 steps in the middle one of 30 stretches, and for 1 in nine of ten"),
        ((0.6, 0.1), "for 0 of 2 steps in the middle one of 30 stretches, and for 0 in nine of ten"),
    ],
)
def test_how_far_a_prediction_can_be_used_is_said_in_steps(errors: tuple[float, ...], words: str) -> None:
    said = " ".join(words_of(accuracy(*errors)))
    assert words in said
    assert "1,234 held-out rows" in said
    assert "40.0% in the worst (flow)" in said


def test_the_part_has_a_row_for_each_column_and_a_chart(tmp_path: Path) -> None:
    part = accuracy_part(tmp_path / "accuracy", accuracy(0.1, 0.2))
    assert part.index("flow") < part.index("level")  # the worst first
    assert "set &lt;point&gt;" in part
    assert "it never changes" in part
    assert '"along":"steps"' in part
    assert (tmp_path / "accuracy.svg").is_file()
    without = Accuracy(("level",), (0.1,), 5, None)
    assert "data-chart" not in accuracy_part(tmp_path / "accuracy", without)
