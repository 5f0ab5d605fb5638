# The public names, loaded on first use by dpsurvey/__init__.py (lazy_loader reads this file at run time).
from . import errors as errors
