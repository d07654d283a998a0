"""Data drawn from known models: to see whether an estimate finds them, and to test at scale."""

from tierrank.data.synthetic.clicks import simulate_clicks
from tierrank.data.synthetic.label_sets import label_sets
from tierrank.data.synthetic.rankings import simulate, simulate_rows, write_rows

__all__ = ["label_sets", "simulate", "simulate_clicks", "simulate_rows", "write_rows"]
