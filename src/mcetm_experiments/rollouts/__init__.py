"""Models fed with their own predictions and the data's actions (the last figure)."""
