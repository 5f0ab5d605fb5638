# The public names, loaded on first use by dpsurvey/__init__.py (lazy_loader reads this file at run time).
from . import errors as errors
from .baselines.asghar import asghar_dpc as asghar_dpc
from .baselines.erl import erl as erl
from .baselines.li_kendall import li_kendall as li_kendall
from .baselines.ols import ols_benchmark as ols_benchmark
from .confidential import nhanes as nhanes
from .confidential.codebook import Codebook as Codebook
from .confidential.codebook import codebook as codebook
from .confidential.disclose import release as release
from .confidential.files import read_survey as read_survey
from .confidential.preflight import Preflight as Preflight
from .confidential.preflight import preflight as preflight
from .confidential.ties import TieKeys as TieKeys
from .copula.bayes_na import bayes_na as bayes_na
from .copula.compare import Comparison as Comparison
from .copula.compare import compare as compare
from .copula.correlation import nearest_correlation as nearest_correlation
from .copula.estimate import CorrelationEstimate as CorrelationEstimate
from .copula.mle_nn import mle_nn as mle_nn
from .copula.planning import Plan as Plan
from .copula.planning import plan as plan
from .copula.planning import plan_table as plan_table
from .copula.posterior import CorrelationPosterior as CorrelationPosterior
from .copula.regression import RegressionPosterior as RegressionPosterior
from .copula.regression import regress as regress
from .examples import example_files as example_files
from .plots import plot_forest as plot_forest
from .plots import plot_heatmap as plot_heatmap
from .plots import plot_plan as plot_plan
from .plots import plot_regression as plot_regression
from .privacy.ledger import Ledger as Ledger
from .privacy.release import Release as Release

__version__: str
