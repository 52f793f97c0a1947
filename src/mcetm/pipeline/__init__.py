"""The main job, end to end: data, models, calibration, policy, evaluation, run folder."""
