# Written by `python -m calibrant._names`.

from calibrant.planning.planner import Plan as Plan
from calibrant.planning.planner import plan as plan
