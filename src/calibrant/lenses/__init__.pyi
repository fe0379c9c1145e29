# Written by `python -m calibrant._names`.

from calibrant.lenses.class_lenses import ClassWise as ClassWise
from calibrant.lenses.class_lenses import Event as Event
from calibrant.lenses.class_lenses import Lens as Lens
from calibrant.lenses.class_lenses import MultiLabel as MultiLabel
from calibrant.lenses.class_lenses import PositiveClass as PositiveClass
from calibrant.lenses.class_lenses import TopLabel as TopLabel
from calibrant.lenses.class_lenses import default_lens as default_lens
from calibrant.lenses.class_lenses import groups as groups
from calibrant.lenses.countwise import CountWise as CountWise
from calibrant.lenses.thresholds import Exceeds as Exceeds
from calibrant.lenses.thresholds import Within as Within
from calibrant.lenses.thresholds import exceeds as exceeds
from calibrant.lenses.thresholds import within as within
