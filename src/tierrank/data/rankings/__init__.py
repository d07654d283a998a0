"""Rankings of items with ties: the container, and readers and writers of files.

`read_rankings` and `write_rankings` are the one door; behind it are PrefLib's files, JSON lines,
and tables of several kinds, in files or frames: `reading` finds out which.
"""
