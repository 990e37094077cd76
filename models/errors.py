"""Errors of the models: each says what was wrong, where, and what would be right."""

from __future__ import annotations

from gradproof.symbolic.errors import GradproofError


class DataError(GradproofError):
    """A data file, a pair or a text that cannot be used."""


class DecodingError(GradproofError):
    """A wrong setting of the decoder, or scores from which nothing can be decoded."""


class MetricError(GradproofError):
    """A metric that is not defined for what it was given."""


class QuantisationError(GradproofError):
    """A tensor or a number of bits that cannot be quantised."""


class CheckpointError(GradproofError):
    """A checkpoint that cannot be written, is damaged, or belongs to another model."""


class MissingPackageError(GradproofError):
    """An optional package that is not installed."""


class TrainingError(GradproofError):
    """A setting of the training that cannot be used, or numbers that no training can go on with."""
