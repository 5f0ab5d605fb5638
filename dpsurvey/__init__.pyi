# The public names, loaded on first use by dpsurvey/__init__.py (lazy_loader reads this file at run time).
from . import errors as errors
from .baselines.ols import ols_benchmark as ols_benchmark
from .copula.correlation import nearest_correlation as nearest_correlation
from .copula.estimate import CorrelationEstimate as CorrelationEstimate
from .copula.posterior import CorrelationPosterior as CorrelationPosterior
from .copula.regression import RegressionPosterior as RegressionPosterior
from .copula.regression import regress as regress
