"""The Plackett-Luce model of tiers: log-probability, gradient, Hessian, sampling."""

from tierrank.plackett_luce.hessian import Curvature
from tierrank.plackett_luce.model import log_prob, log_prob_above
from tierrank.plackett_luce.sampling import sample

__all__ = ["Curvature", "log_prob", "log_prob_above", "sample"]
