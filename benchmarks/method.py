"""Draw the pictures of docs/explanation: the method, each transition model, each algorithm.

python benchmarks/method.py [NAME ...]

Models and policies are trained for each picture. The numbers that a page says of it are printed.
"""

from __future__ import annotations

import argparse

import dial
import fork
import fork_policies
import model_pictures
import upright

PICTURES = {
    # the method
    "energy": fork.draw_energy,
    "negatives": model_pictures.draw_negatives,
    "trust": upright.draw_trust,
    "target": fork.draw_target,
    "targets": fork.draw_targets,
    # transition models
    "gaussian": model_pictures.draw_gaussian,
    "diffusion": model_pictures.draw_diffusion,
    "energies": model_pictures.draw_energies,
    "manifold": model_pictures.draw_manifold,
    "sampling": model_pictures.draw_sampling,
    "support": model_pictures.draw_support,
    "pairs": upright.draw_pairs,
    "limits": model_pictures.draw_limits,
    "reward": model_pictures.draw_reward,
    # algorithms
    "mcetm": upright.draw_mcetm,
    "mobile": fork_policies.draw_mobile,
    "mopo": upright.draw_mopo,
    "morel": upright.draw_morel,
    "empo": fork_policies.draw_empo,
    "rambo": fork_policies.draw_rambo,
    "combo": fork_policies.draw_combo,
    "cql": dial.draw_cql,
    "edac": dial.draw_edac,
    "td3bc": dial.draw_td3bc,
    "iql": dial.draw_iql,
    "bc": dial.draw_bc,
}


def main() -> None:
    """Draw what was asked for, or everything."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", choices=[[], *PICTURES], metavar="NAME", help=", ".join(PICTURES))
    for name in parser.parse_args().names or PICTURES:
        PICTURES[name]()


if __name__ == "__main__":
    main()
