# Written by `python -m calibrant._names`.

from calibrant.losses.baselines import FL53 as FL53
from calibrant.losses.baselines import FocalLoss as FocalLoss
from calibrant.losses.baselines import LabelSmoothing as LabelSmoothing
from calibrant.losses.baselines import Stepwise as Stepwise
from calibrant.losses.calibration_loss import CalibrationLoss as CalibrationLoss
from calibrant.losses.calibration_loss import SharpnessRegularised as SharpnessRegularised
from calibrant.losses.calibration_loss import squared_error as squared_error
from calibrant.losses.heads import Batch as Batch
from calibrant.losses.heads import class_head as class_head
from calibrant.losses.heads import mixture_head as mixture_head
from calibrant.losses.heads import normal_head as normal_head
from calibrant.losses.soft_binned import SoftBinnedECE as SoftBinnedECE
