"""Transitions: the type, its readers and writers, validation, statistics and the dataset card."""

from mcetm.data.card import Card, make_card
from mcetm.data.columns import Columns
from mcetm.data.d4rl import read_d4rl
from mcetm.data.files import read_file
from mcetm.data.minari import read_minari
from mcetm.data.normalize import Normalizer, Statistics
from mcetm.data.transitions import Metadata, Transitions
from mcetm.data.validate import DataError, Fault

__all__ = [
    "Card",
    "Columns",
    "DataError",
    "Fault",
    "Metadata",
    "Normalizer",
    "Statistics",
    "Transitions",
    "make_card",
    "read_d4rl",
    "read_file",
    "read_minari",
]
