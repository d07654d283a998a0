"""How worths are found: Newton's method, L-BFGS, and stochastic steps for the largest data."""
