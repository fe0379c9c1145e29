# Written by `python -m calibrant._names`.

from calibrant.io.batches import Batches as Batches
from calibrant.io.dataset import Dataset as Dataset
from calibrant.io.dataset import Predictions as Predictions
from calibrant.io.dataset import example as example
from calibrant.io.dataset import read as read
from calibrant.io.dataset import read_predictions as read_predictions
