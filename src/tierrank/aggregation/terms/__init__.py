"""What a fit minimises, as a sum of terms: functions of all scores with two derivatives.

Every term is Σ_lists count · loss, or a prior. It gives value and gradient at scores [items], and
`at` them its second derivatives: products with vectors, the diagonal, or all of the matrix.
"""

from tierrank.aggregation.terms.exact import Exact
from tierrank.aggregation.terms.parts import Bend, ListTerm, Sum, Term
from tierrank.aggregation.terms.priors import GaussianPrior, PseudoItem, prior_from
from tierrank.aggregation.terms.smooth import Smooth
from tierrank.aggregation.terms.strict import Strict
from tierrank.aggregation.terms.tied import Tied

__all__ = [
    "Bend",
    "Exact",
    "GaussianPrior",
    "ListTerm",
    "PseudoItem",
    "Smooth",
    "Strict",
    "Sum",
    "Term",
    "Tied",
    "prior_from",
]
