"""The worlds of Roelofs, Cain, Shlens & Mozer (2022): fits to ten networks, and the methods they compare."""

from dataclasses import dataclass

import numpy as np

from calibrant.lab import GLM, BetaScores, ScoreWorld
from studies.roelofs.batches import Batch, Rule

RULES: dict[str, Rule] = {"EW": "width", "EM": "mass"}


@dataclass(frozen=True)
class Fit:
    """Scores and curve as printed in tables 1 and 2.

    >>> FITS["resnet110_c10"].world(printed=True).curve
    GLM(link='logflip', transform='logflip', b0=-0.24, b1=0.3)
    """

    name: str
    alpha: float
    beta: float
    model: str
    b0: float
    b1: float

    def world(self, *, printed: bool = False) -> ScoreWorld:
        """The world to simulate: with the parameters of :data:`REFINED` where there are any, or as printed."""
        b0, b1 = (self.b0, self.b1) if printed else REFINED.get(self.name, (self.b0, self.b1))
        link, transform = self.model.split("_")
        return ScoreWorld(BetaScores(self.alpha, self.beta), GLM(link, transform, b0, b1))


FITS = {
    fit.name: fit
    for fit in (
        Fit("resnet110_c10", 2.7752, 0.0478, "logflip_logflip", -0.24, 0.30),
        Fit("resnet110_SD_c10", 2.1714, 0.0394, "logit_logflip", -0.27, -0.35),
        Fit("resnet_wide32_c10", 2.3806, 0.0379, "logit_logit", 0.0, 0.26),
        Fit("densenet40_c10", 1.9824, 0.0397, "logit_logflip", 0.0, -0.26),
        Fit("resnet110_c100", 1.1823, 0.1081, "logflip_logflip", -0.11, 0.28),
        Fit("resnet110_SD_c100", 1.1233, 0.1147, "logit_logit", -0.88, 0.49),
        Fit("resnet_wide32_c100", 1.0611, 0.0650, "logflip_logflip", -0.13, 0.21),
        Fit("densenet40_c100", 1.0805, 0.0808, "logit_logit", -0.97, 0.34),
        Fit("resnet152_imgnet", 1.1359, 0.2069, "logflip_logflip", -0.12, 0.58),
        Fit("densenet161_imgnet", 1.1928, 0.2206, "log_log", -0.03, 1.27),
    )
}

REFINED = {
    "resnet110_c10": (-0.24159, 0.30131),
    "resnet_wide32_c100": (-0.13174, 0.21208),
    "resnet152_imgnet": (-0.12064, 0.58072),
}
"""b0 and b1 of the fits of figures 9 to 14 within their rounding, where the published biases come out best."""


def errors(batch: Batch, method: str, bins: int) -> np.ndarray:
    """The errors that a method finds in every data set, ``(sets,)``, in points, in the norm 2.

    Methods are named by their bins, EW of equal width or EM of equal mass, and perhaps "debiased" or "sweep".
    """
    rule, _, kind = method.partition(" ")
    if kind == "sweep":
        return 100 * batch.sweep(RULES[rule])[0]
    if kind == "debiased":
        return 100 * np.maximum(batch.debiased(RULES[rule], bins), 0)
    return 100 * batch.plug_in(RULES[rule], bins)
