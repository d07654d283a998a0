"""Items drawn one by one from mixtures of topics, compiled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tierrank.compilation import compiled, digest


def _draw_rows(
    generator: np.random.Generator,
    offsets: npt.NDArray[np.int64],
    topics: npt.NDArray[np.int64],
    running_weights: npt.NDArray[np.float64],
    topic_offsets: npt.NDArray[np.int64],
    members: npt.NDArray[np.int32],
    running_worths: npt.NDArray[np.float64],
    last_place: npt.NDArray[np.int64],
    items: npt.NDArray[np.int32],
    times: npt.NDArray[np.float32],
) -> None:
    """Fill rows with different items, and with how often each was drawn.

    A draw takes one of the row's topics, then one of that topic's members. Drawing with
    replacement and passing over what is there already is drawing without replacement: each new
    item comes with a probability proportional to its worth among those that are left.

    Parameters
    ----------
    offsets
        [rows + 1] row i fills the places offsets[i] to offsets[i + 1]
    topics, running_weights
        [rows, slots] the topics of a row, and the running sums of their weights, up to 1
    topic_offsets, members, running_worths
        topic t has members[topic_offsets[t] : topic_offsets[t + 1]]; `running_worths`, one entry
        longer, starts with 0 and adds up the worths of the members of all topics
    last_place
        [items] where each item was put last; -1 before the first row
    items, times
        [offsets[-1]] the answer
    """
    last_slot = topics.shape[1] - 1
    for row in range(len(offsets) - 1):
        begin, end = offsets[row], offsets[row + 1]
        at = begin
        while at < end:
            which = generator.random()
            slot = 0
            while slot < last_slot and running_weights[row, slot] <= which:
                slot += 1
            low, high = topic_offsets[topics[row, slot]], topic_offsets[topics[row, slot] + 1] - 1
            bottom, top = running_worths[low], running_worths[high + 1]
            target = bottom + generator.random() * (top - bottom)
            while low < high:  # for the member whose part of the running sum has the target
                middle = (low + high) >> 1
                if running_worths[middle + 1] <= target:
                    low = middle + 1
                else:
                    high = middle
            item = members[low]
            place = last_place[item]
            if place < begin:  # not in this row yet: places only grow
                last_place[item] = at
                items[at] = item
                times[at] = 1
                at += 1
            else:
                times[place] += 1


draw_rows: Any = compiled(_draw_rows, sources=digest([Path(__file__)]))
