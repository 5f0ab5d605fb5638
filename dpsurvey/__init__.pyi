# The public names, loaded on first use by dpsurvey/__init__.py (lazy_loader reads this file at run time).
from . import errors as errors
from .baselines.ols import ols_benchmark as ols_benchmark
from .confidential import nhanes as nhanes
from .confidential.codebook import Codebook as Codebook
from .confidential.codebook import codebook as codebook
from .confidential.files import read_survey as read_survey
from .confidential.preflight import Preflight as Preflight
from .confidential.preflight import preflight as preflight
from .copula.compare import Comparison as Comparison
from .copula.compare import compare as compare
from .copula.correlation import nearest_correlation as nearest_correlation
from .copula.estimate import CorrelationEstimate as CorrelationEstimate
from .copula.posterior import CorrelationPosterior as CorrelationPosterior
from .copula.regression import regress as regress
from .copula.regression import RegressionPosterior as RegressionPosterior
from .examples import example_files as example_files
