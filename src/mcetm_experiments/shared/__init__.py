"""What several studies share: baselines, logs, open-loop prediction, parts that are kept on disk."""
