"""The Plackett-Luce model of tiers: log-probability, gradient, Hessian, sampling."""

from tierrank.plackett_luce.model import Curvature, log_prob, log_prob_above, sample

__all__ = ["Curvature", "log_prob", "log_prob_above", "sample"]
