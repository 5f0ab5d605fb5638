"""Honest correlations from confidential survey rows.

dpsurvey turns survey rows into a small differentially private release (noisy counts of its pairs of variables), and
such a release into inference about Gaussian-copula correlations. Importing it registers ``df.dpcopula``;
heavy libraries load on first use.
"""

import lazy_loader

from dpsurvey import accessor as _accessor  # registers df.dpcopula
from dpsurvey.confidential import nhanes as nhanes  # a module: lazy loading finds attributes only

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__version__ = "0.1.0"

del _accessor
