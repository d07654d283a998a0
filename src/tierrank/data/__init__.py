"""Data sets: readers, writers and generators."""

from tierrank.data import synthetic

__all__ = ["synthetic"]
