"""Worths of items from rankings with ties, and how sure they are."""
