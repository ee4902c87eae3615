"""One HTML file that works offline: style, script and data inside, and a policy that forbids all network.

Every page of softgaze is made here, so that all look alike and none can be talked into loading anything.
"""

import base64
import hashlib
import html
from importlib.resources import files

ASSETS = files("softgaze.gaze") / "assets"
STYLE = "style.css"  # colours, fonts and what all pages share


def document(title: str, body: str, *, styles: tuple[str, ...] = (), scripts: tuple[str, ...] = ()) -> str:
    """A page of `body`, with files of `assets/` as its styles and scripts; no other code runs in it."""
    css, js = ("\n".join(map(asset, names)) for names in ((STYLE, *styles), scripts))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy(css, js)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{css}</style>\n</head>\n"
        f"<body>\n{body}\n<script>{js}</script>\n</body>\n</html>\n"
    )


def policy(css: str, js: str) -> str:
    """Nothing but this very style and script; pictures only of the page's own making (for saving a PNG)."""
    return (
        f"default-src 'none'; style-src '{digest(css)}'; script-src '{digest(js)}'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def digest(text: str) -> str:
    """As a policy names it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def asset(name: str) -> str:
    """A file that is packed with softgaze."""
    return (ASSETS / name).read_text(encoding="utf-8")
