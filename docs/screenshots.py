"""Pictures of reports for the documentation: light, dark, on a phone and on paper.

``python docs/screenshots.py FOLDER`` makes six reports and photographs them with the browser that is installed; those of
networks need the softmax outputs in ``../shared/data`` and are left out without them. ``--images`` also writes the few that
the documentation shows to ``docs/images``, in 256 colours. Needs playwright, and pypdfium2 for pictures of paper.
"""

import argparse
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from calibrant import Ensemble, Monitor, Poisson, evaluate, monitor_report
from calibrant.io import example, read
from calibrant.recalibration import VectorScaling
from calibrant.reports import MonitorReport, Report
from calibrant.reports.render.pdf import check_browser, to_pdf

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared" / "data"
WIDTH, PHONE, HEIGHT = 1180, 390, 1130
RESAMPLES = 999

SHOWN = {
    "digits-light": "report.png",
    "digits-dark": "report-dark.png",
    "digits-phone": "report-phone.png",
    "digits-print": "report-print.png",
    "overconfident-light": "report-overconfident.png",
    "calibrated-light": "report-calibrated.png",
    "ensemble-light": "report-ensemble.png",
    "counts-light": "report-counts.png",
    "stream-light": "report-stream.png",
}
"""Which pictures the documentation shows, and what it calls them."""


def network(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Labels and softmax outputs of a real network, as probabilities that sum to 1."""
    with np.load(SHARED / f"{name}.npz") as archive:
        p = archive["predictions"].astype(np.float64)
        return archive["ground_truth"], p / p.sum(axis=1, keepdims=True)


def digits() -> Report:
    """The report of ``calibrant demo``."""
    data = read(example("digits"), y_true="digit", y_pred="p_*", by=["ink"])
    title = "Handwritten digits, read by a small neural network"
    source = ["digits.csv", "--y-true", "digit", "--y-pred", "p_*"]
    return evaluate(data.y_true, data.y_pred, by=data.by, title=title, n_resamples=RESAMPLES, rng=0, source=source)


def overconfident() -> Report:
    """A network as it was trained."""
    y, p = network("densenet-bc-100-cifar-100")
    group = p.argmax(axis=1) // 20
    title = "DenseNet on the test images of CIFAR-100"
    return evaluate(y, p, by={"favoured class // 20": group}, title=title, n_resamples=RESAMPLES, rng=0)


def calibrated() -> Report:
    """A network put right by a map that was learned on the other half of the rows."""
    y, p = network("wideresnet-16-4-cifar-10")
    better = VectorScaling().fit(y[::2], p[::2])(p[1::2])
    sure = np.where(p[1::2].max(axis=1) > 0.99, "over 99 %", "up to 99 %")
    title = "Wide ResNet on CIFAR-10, recalibrated on other images"
    return evaluate(y[1::2], better, by={"confidence before": sure}, title=title, n_resamples=RESAMPLES, rng=0)


def ensemble() -> Report:
    """Members that agree with each other more than the outcome agrees with them."""
    rng = np.random.default_rng(1)
    n = 2000
    centre, spread = 12 + 6 * rng.normal(size=n), np.exp(0.4 * rng.normal(size=n))
    members = centre[:, None] + 0.65 * spread[:, None] * rng.normal(size=(n, 20))
    season = rng.choice(["spring", "summer", "autumn", "winter"], n)
    title = "Temperature tomorrow, an ensemble of 20"
    y = centre + spread * rng.normal(size=n)
    return evaluate(y, Ensemble(members), by={"season": season}, title=title, n_resamples=RESAMPLES, rng=0)


def counts() -> Report:
    """Poisson forecasts of counts that vary more than that."""
    rng = np.random.default_rng(2)
    n = 1500
    rate = 2 + 10 * rng.random(n)
    y = rng.poisson(rate * rng.gamma(4.0, 1 / 4.0, n))
    shop = rng.choice(["north", "south", "airport"], n)
    return evaluate(y, Poisson(rate), by={"shop": shop}, title="Daily sales, Poisson", n_resamples=RESAMPLES, rng=0)


def stream() -> MonitorReport:
    """The stream of the guide: from row 3,000 on, log odds are 0.8 higher."""
    rng = np.random.default_rng(0)
    y_pred = rng.random(4000)
    world = np.where(np.arange(4000) < 3000, 0.0, 0.8)
    truth = 1 / (1 + np.exp(-np.log(y_pred / (1 - y_pred)) - world))
    y_true = (rng.random(4000) < truth) * 1
    return monitor_report(Monitor(alpha=0.05, window=100).update(y_true, y_pred), title="Scores of a model")


REPORTS: dict[str, Callable[[], Report | MonitorReport]] = {
    "digits": digits,
    "overconfident": overconfident,
    "calibrated": calibrated,
    "ensemble": ensemble,
    "counts": counts,
    "stream": stream,
}


@dataclass(frozen=True)
class Camera:
    """A browser, and the folder that pictures go to."""

    browser: Any
    folder: Path

    def shoot(self, name: str, report: Report | MonitorReport) -> None:
        """The page in light and dark, on a phone and on paper; all of it, and what is seen first."""
        page = report.save(self.folder / f"{name}.html").resolve().as_uri()
        self._screen(page, f"{name}-light", WIDTH, "light")
        self._screen(page, f"{name}-dark", WIDTH, "dark")
        self._screen(page, f"{name}-phone", PHONE, "light")
        paper = self.folder / f"{name}.pdf"
        paper.write_bytes(to_pdf(report.to_html()))
        _sheets(paper, self.folder / f"{name}-print.png")

    def _screen(self, page: str, name: str, width: int, scheme: str) -> None:
        view = {"width": width, "height": HEIGHT if width == WIDTH else 844}
        context = self.browser.new_context(color_scheme=scheme, viewport=view, device_scale_factor=1 + (width == PHONE))
        window = context.new_page()
        window.goto(page)
        window.screenshot(path=self.folder / f"{name}.png")
        window.screenshot(path=self.folder / f"{name}-full.png", full_page=True)
        context.close()


def _sheets(paper: Path, picture: Path) -> None:
    """The first three sheets side by side."""
    try:
        import pypdfium2
    except ModuleNotFoundError:
        print(f"{paper} is not made a picture: pip install pypdfium2")
        return
    from PIL import Image

    document = pypdfium2.PdfDocument(paper)
    sheets = [document[i].render(scale=1.0).to_pil() for i in range(min(3, len(document)))]
    gap = 12
    table = Image.new("RGB", (sum(s.width + gap for s in sheets) + gap, sheets[0].height + 2 * gap), "#8a8f94")
    for i, sheet in enumerate(sheets):
        table.paste(sheet, (gap + i * (sheet.width + gap), gap))
    table.save(picture)


def shrink(source: Path, target: Path) -> None:
    """The picture in 256 colours, rare ones among them."""
    from PIL import Image

    buffer = io.BytesIO()
    image = Image.open(source).convert("RGB")
    image.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(buffer, "PNG", optimize=True)
    target.write_bytes(buffer.getvalue())
    print(f"{target}: {len(buffer.getvalue()) / 1000:.0f} kB")


def main() -> None:
    """Make reports and photograph them."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description="Photograph reports for the documentation.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--images", action="store_true", help="write docs/images, too")
    parser.add_argument("--only", choices=list(REPORTS), action="append")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=check_browser(), args=["--no-sandbox"])
        for name in options.only or REPORTS:
            if name in ("overconfident", "calibrated") and not SHARED.is_dir():
                print(f"{name} is left out: {SHARED} is not here")
                continue
            Camera(browser, options.folder).shoot(name, REPORTS[name]())
        browser.close()
    for name, image in SHOWN.items() if options.images else ():
        if (source := options.folder / f"{name}.png").exists():
            shrink(source, ROOT / "docs" / "images" / image)


if __name__ == "__main__":
    main()
