"""The experiments of the paper, its bound and the benchmarks, made of the public names of `mcetm` alone."""
