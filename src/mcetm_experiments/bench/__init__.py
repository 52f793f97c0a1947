"""Speed on the machine at hand, each figure beside a reference in the same process: `mcetm bench`."""
