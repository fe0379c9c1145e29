# Written by `python -m calibrant._names`.

from calibrant.checks.distribution import check_distribution as check_distribution
from calibrant.checks.engine import check_engine as check_engine
from calibrant.checks.estimator import check_estimator as check_estimator
from calibrant.checks.kernel_laws import check_expectation as check_expectation
from calibrant.checks.kernel_laws import check_kernel as check_kernel
from calibrant.checks.recalibrator import check_recalibrator as check_recalibrator
