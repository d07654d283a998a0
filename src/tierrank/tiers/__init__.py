"""Lists of items in ordered tiers: the one container that everything else takes.

>>> from tierrank.tiers import Tiers
>>> Tiers.from_labels([2, 0, 1, 0, 1], lengths=[3, 2])
Tiers(2 lists, 5 rows, 2 to 3 tiers a list)
  list 0: 0 > 2 > 1
  list 1: 4 > 3
"""

from tierrank.tiers.container import Tiers
from tierrank.tiers.layout import Layout

__all__ = ["Layout", "Tiers"]
