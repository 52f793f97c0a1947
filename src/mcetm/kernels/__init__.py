"""Fused GPU kernels, each beside a plain reference with the same signature."""
