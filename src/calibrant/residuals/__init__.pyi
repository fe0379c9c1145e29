# Written by `python -m calibrant._names`.

from calibrant.residuals.embedding import Residuals as Residuals
from calibrant.residuals.embedding import Route as Route
from calibrant.residuals.embedding import residuals as residuals
