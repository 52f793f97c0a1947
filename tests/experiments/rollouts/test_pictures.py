"""Pictures of poses, the strip of them and the film."""

from pathlib import Path

import numpy as np
from PIL import Image

from mcetm.envs import Body
from mcetm.tasks import get_task
from mcetm_experiments.rollouts.pictures import draw_poses, draw_strip, write_animation
from tests.experiments.drawn import words_in


def test_drawn_pictures_show_the_pose_and_become_a_small_film(tmp_path: Path) -> None:
    body = Body(get_task("hopper"))
    poses = np.tile([0.0, 1.25, 0.0, 0.0, 0.0, 0.0], (4, 1))
    poses[:, 0] = np.linspace(0.0, 0.3, 4)
    frames = draw_poses(body, poses, size=60)
    assert frames.shape == (4, 60, 60, 3)
    blue = frames[0].astype(int)[..., 2] - frames[0].astype(int)[..., 0] > 60
    rows, columns = np.nonzero(blue)
    # The robot stands upright in the middle, on the ground.
    assert rows.max() - rows.min() > 2 * (columns.max() - columns.min()) > 0
    assert abs(columns.mean() - 30) < 5
    fallen = poses.copy()
    fallen[:, 2] = 1.5
    assert (draw_poses(body, fallen, size=60) != frames).any()
    draw_strip(tmp_path / "film", {"ground truth": frames, "model": frames}, (0, 3), "two rows")
    assert words_in(tmp_path / "film") == {"ground truth", "model", "step 0", "step 3", "two rows"}
    write_animation(tmp_path / "film", {"ground truth": frames, "model": frames}, (0, 3), milliseconds=50)
    with Image.open(tmp_path / "film.gif") as film:
        assert film.size == (120, 60)
        assert getattr(film, "n_frames", 0) == 2
