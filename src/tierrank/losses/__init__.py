"""Objectives over scores and tiers, each a loss to minimise.

Every one is a function of ``(scores, tiers, *, weights=None, reduction="mean")`` and options of
its own, an `nn.Module` that holds its options, and a name in `OBJECTIVES`, where all that is known
of it stands.

    >>> import numpy as np, tierrank as tr
    >>> scores, tiers = np.log([4.0, 2.0, 1.0]), tr.Tiers.from_labels([1, 1, 0])
    >>> tr.losses.pl_partition(scores, tiers)  # −log(4/7 · 2/3 + 2/7 · 4/5)
    array(0.49507727)
    >>> loss = tr.losses.from_name("rao-kupper")  # a module: how probable ties are is learned
    >>> [name for name, _ in loss.named_parameters()]
    ['alpha']
"""

from importlib import import_module
from importlib.util import find_spec

from tierrank.losses.record import OBJECTIVES as OBJECTIVES
from tierrank.losses.record import find as find

TYPE_CHECKING: bool = False  # as in tierrank; the functions are read off the families
if TYPE_CHECKING:
    from tierrank.losses.likelihood import *  # noqa: F403
    from tierrank.losses.listwise import *  # noqa: F403
    from tierrank.losses.metric import *  # noqa: F403
    from tierrank.losses.objective import Objective as Objective
    from tierrank.losses.objective import from_name as from_name
    from tierrank.losses.ordered_partition import *  # noqa: F403
    from tierrank.losses.pairwise import *  # noqa: F403
    from tierrank.losses.positions import PositionBias as PositionBias

    # the modules, which are made of their entries when they are asked for
    PLPartition = PLLowerBound = PLEfron = PLTopK = ListMLE = PListMLE = ListNet = Objective
    AttRank = RankCosine = BCE = PMOPFD = CoxDiscrete = PMOPExact = PMOPGibbs = Objective
    PMOPMH = RankNet = RankSVM = RankRegress = RaoKupper = Davidson = LambdaLoss = Objective
    ApproxNDCG = NeuralNDCG = ExpectedNDCG = PLRank = Objective

# Functions and modules of objectives come from their entries. All loads torch, and so comes when
# it is asked for: the names of objectives are known without.
_HOMES = {
    "Objective": "objective",
    "PositionBias": "positions",
    "from_name": "objective",
    "gain": "likelihood",
    "sample_ordered_partitions": "ordered_partition",
}


def __getattr__(name: str) -> type["Objective"]:  # what is none of the above is a module
    found: object
    for entry in OBJECTIVES.values():
        if name in (entry.function_name, entry.module_name):
            found = entry.function if name == entry.function_name else entry.module
            break
    else:
        if name in _HOMES:
            found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        elif not name.startswith("_") and find_spec(f"{__name__}.{name}"):
            found = import_module(f"{__name__}.{name}")
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    globals()[name] = found
    return found  # type: ignore[return-value]


if not TYPE_CHECKING:
    __all__ = ["OBJECTIVES", "find", *_HOMES]  # noqa: PLE0604
    __all__ += [entry.function_name for entry in OBJECTIVES.values()]
    __all__ += [entry.module_name for entry in OBJECTIVES.values()]

    def __dir__() -> list[str]:
        return [*__all__, *(name for name in globals() if name.startswith("__"))]
