"""Tables with a label column, a query column and feature columns: CSV, Parquet, frames.

`reader` and `writer` are what users call. `choice` settles which column is what; `csv_text` finds
rows and lines in the text that `csv_reader` reads with pyarrow, and `csv_numbers` reads the cells
that pyarrow was not sure of; `arrow` turns columns of `parquet_reader` into numbers and `keys` the
values of a query column into keys; `frames` does the same for pandas and polars.
"""

from tierrank.data.tables.errors import TableError
from tierrank.data.tables.reader import read_table
from tierrank.data.tables.writer import write_table

__all__ = ["TableError", "read_table", "write_table"]
