"""Least squares of all kinds on the small triangles, and error bars for correlated residuals."""
