"""How fast we train and translate compared with the fastest peers we know, Marian and CTranslate2, on one thread.

Run: PYTHONPATH=workflow python benchmarks/peers.py FOLDER [--updates 60] [--attention-dropout 0.1], in an environment
with envs/benchmarks.txt; FOLDER has train.en.gz, train.de.gz and test.en.gz, such as those of Multi30k.
"""

import argparse
from pathlib import Path

import peers_decoding
import peers_training
import torch


def main() -> None:
    """Run both comparisons, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="of the corpus")
    parser.add_argument("--updates", type=int, default=60, help="of each training")
    parser.add_argument("--attention-dropout", type=float, default=0.0, help="of attention weights, all else has 0.1")
    flags = parser.parse_args()
    torch.set_num_threads(1)
    peers_training.compare(flags.folder, flags.updates, flags.attention_dropout)
    peers_decoding.compare(flags.folder)


if __name__ == "__main__":
    main()
