r"""Bayesian regression given moments with noise of known variance.

Released are, up to noise, the means :math:`m` and covariances :math:`C` of the coordinates and
their covariances :math:`g` with the target, all in the windows where the columns lie. The linear
model says :math:`g = Cw` up to sampling error and noise. Plug-in inference takes the noisy C for C
and inverts it, which is unstable. Here the errors of C and of the means are part of the equations
(``equations``), and the same release is read twice:

- ``predictive``: for ``predict``. C is shrunk to what is usual, and so are the coefficients.
- ``slopes``: for the coefficients themselves. Weak priors only, and the error of every variance is
  integrated over, so that intervals cover.

As the noise vanishes both become the conjugate posterior, but that variances of the second allow
for residuals that are not the same everywhere.
"""
