"""Take the pictures of the README and of the pages in a real browser.

    python -m docs.pictures runs/quickstart        # the directory that `softgaze quickstart` wrote

docs/pictures/page.webp is an animation of the web page: the attention of a translation is shown, then a ribbon is
dragged to another word and the translation changes. The others are screenshots of the pages of `softgaze explain`.
"""

import io
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

PICTURES = Path(__file__).parent / "pictures"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SENTENCE = "Minsu bought a red bag at the market."
FROM, TO = "빨간", "bag"  # this output word is dragged to that source word
WIDTH, HEIGHT = 1000, 860
FRAME = 120  # milliseconds
PAUSE = 14  # frames


@contextmanager
def serving(model: Path) -> Iterator[str]:
    """Run the server until the block ends; yield its address."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-m", "softgaze", "serve", str(model), "--port", str(port)])
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(120):
            try:
                urlopen(f"{address}/ready").close()
                break
            except (URLError, OSError):
                time.sleep(1)
        yield address
    finally:
        process.terminate()
        process.wait()


class Film:
    """Frames of an animation; a frame that equals the last one makes it longer."""

    def __init__(self, page: Page) -> None:
        self.page, self.frames, self.lengths = page, list[Image.Image](), list[int]()

    def take(self, count: int = 1) -> None:
        picture = Image.open(io.BytesIO(self.page.screenshot())).convert("RGB")
        if self.frames and picture.tobytes() == self.frames[-1].tobytes():
            self.lengths[-1] += count * FRAME
        else:
            self.frames.append(picture)
            self.lengths.append(count * FRAME)

    def save(self, path: Path) -> None:
        first, *others = self.frames
        options: dict[str, Any] = {"duration": self.lengths, "loop": 0, "quality": 80, "method": 4}
        first.save(path, save_all=True, append_images=others, **options)


POINTER = """() => {
  const dot = document.createElement("div");
  dot.style = "position:fixed;left:-99px;padding:9px;border-radius:9px;background:#b4530999;pointer-events:none";
  document.body.append(dot);
  addEventListener("pointermove", event => {
    dot.style.left = event.clientX - 9 + "px";
    dot.style.top = event.clientY - 9 + "px";
  });
}"""


def film_page(browser: Browser, address: str) -> None:
    """Translate a sentence, show the attention of two words, drag one of them and wait for the new translation."""
    page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, locale="en-US")
    page.goto(address)
    page.wait_for_selector("html[data-ready]")
    page.evaluate(POINTER)
    film = Film(page)
    page.fill("#text", SENTENCE)
    page.wait_for_selector("#attention .word", timeout=60_000)
    page.wait_for_timeout(2_000)
    film.take(PAUSE)
    start, end = middle(page, "row", FROM), middle(page, "column", TO)
    page.mouse.move(*start, steps=2)
    page.wait_for_timeout(400)
    film.take(PAUSE)
    page.mouse.down()
    for step in range(1, 11):
        share = step / 10
        page.mouse.move(start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1]))
        film.take()
    page.mouse.up()
    page.wait_for_selector("#diff :text-matches('.')", timeout=60_000)
    page.wait_for_timeout(2_000)
    page.mouse.move(WIDTH - 2, 2)
    page.wait_for_timeout(500)
    film.take(2 * PAUSE)
    film.save(PICTURES / "page.webp")


def middle(page: Page, side: str, word: str) -> tuple[float, float]:
    """Return the middle of a word of the ribbons."""
    box = page.locator(f"#first [data-side={side}]", has_text=word).first.bounding_box()
    if box is None:
        raise ValueError(f"{word!r} is not on the page")
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def explain_pages(browser: Browser, model: Path, data: Path) -> None:
    """Take the pages of one sentence, of a change, and of a corpus."""
    with tempfile.TemporaryDirectory() as directory:
        one, many = Path(directory, "one.html"), Path(directory, "corpus.html")
        Path(directory, "quickstart").symlink_to(model.resolve())  # the name that the page about the corpus shows
        lines = (data / "long.en").read_text(encoding="utf-8").splitlines()[:60]  # longer than the training text
        Path(directory, "long.en").write_text("\n".join(lines) + "\n", encoding="utf-8")
        explain = [sys.executable, "-m", "softgaze", "explain", "quickstart"]
        subprocess.run([*explain, SENTENCE, "-o", one], check=True, cwd=directory)
        subprocess.run([*explain, "--corpus", "long.en", "-o", many], check=True, cwd=directory)
        shoot(browser, one, "attention-light.png")
        shoot(browser, one, "what-if.png", press="What if")
        shoot(browser, many, "corpus.png")


def shoot(browser: Browser, path: Path, name: str, press: str = "") -> None:
    """Take one page, after a button was pressed."""
    page = browser.new_page(viewport={"width": 1100, "height": 860}, device_scale_factor=1.4, locale="en-US")
    page.goto(path.resolve().as_uri())
    page.wait_for_timeout(1_500)
    if press:
        page.get_by_text(press, exact=True).first.click()
        page.wait_for_timeout(1_000)
    picture = Image.open(io.BytesIO(page.screenshot()))
    picture.convert("P", palette=Image.Palette.ADAPTIVE, colors=128).save(PICTURES / name, optimize=True)
    page.close()


def main(run: Path) -> int:
    path = next(filter(None, map(which, BROWSERS)), None)
    if path is None:
        raise SystemExit(f"no browser found (none of {', '.join(BROWSERS)})")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        explain_pages(browser, run / "model", run / "data")
        with serving(run / "model") as address:
            film_page(browser, address)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
