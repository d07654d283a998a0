"""The page of an aggregation: one HTML file that needs nothing but a browser."""

from tierrank.report.aggregation.content import (
    AggregationPage,
    ConnectivityFacts,
    ConvergenceFacts,
    ItemRow,
)
from tierrank.report.aggregation.page import page_html, write_page

__all__ = [
    "AggregationPage",
    "ConnectivityFacts",
    "ConvergenceFacts",
    "ItemRow",
    "page_html",
    "write_page",
]
