# Written by `python -m calibrant._names`.

from calibrant.reports.before_after import BeforeAfter as BeforeAfter
from calibrant.reports.before_after import before_and_after as before_and_after
from calibrant.reports.core.model import Advice as Advice
from calibrant.reports.core.model import KeyNumber as KeyNumber
from calibrant.reports.core.model import Picture as Picture
from calibrant.reports.core.model import Reason as Reason
from calibrant.reports.core.model import Section as Section
from calibrant.reports.core.model import Verdict as Verdict
from calibrant.reports.evaluation import Report as Report
from calibrant.reports.evaluation import evaluate as evaluate
from calibrant.reports.evaluation import judge as judge
from calibrant.reports.evaluation import report as report
from calibrant.reports.model_comparison import Comparison as Comparison
from calibrant.reports.model_comparison import compare as compare
from calibrant.reports.stream_report import MonitorReport as MonitorReport
from calibrant.reports.stream_report import monitor_report as monitor_report
