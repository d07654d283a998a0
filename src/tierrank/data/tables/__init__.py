"""Tables with named columns: CSV, Parquet, frames.

`opening` opens one wherever it is, and `columns` says what its cells may be, of frames and Parquet
too; `csv` is the other kind there is. `ranking_tables` has those of labels, queries and features;
those of rankings and games are in `tierrank.data.rankings`.
"""

from tierrank.data.tables.columns import TableError
from tierrank.data.tables.ranking_tables import read_table, write_table

__all__ = ["TableError", "read_table", "write_table"]
