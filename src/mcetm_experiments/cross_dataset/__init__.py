"""One-step errors of every model on every level of a task (the appendix's table)."""
