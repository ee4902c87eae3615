"""One HTML file that works offline: style, script and data inside, and a policy that forbids all network access."""

import base64
import hashlib
import html
from importlib.resources import files

ASSETS = files("softgaze.explain.render") / "assets"
STYLE = "style.css"  # shared by all pages

DOCUMENT = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{css}</style>
</head>
<body>
{body}
<script>{js}</script>
</body>
</html>
"""
# Only this style and this script; images only from the page itself, which it needs to save a PNG.
POLICY = (
    "default-src 'none'; style-src '{css}'; script-src '{js}'; img-src data: blob:; base-uri 'none'; form-action 'none'"
)


def document(title: str, body: str, *, styles: tuple[str, ...] = (), scripts: tuple[str, ...] = ()) -> str:
    """Return a page with files of `assets/` as its styles and scripts; no other code can run in it."""
    css, js = ("\n".join(map(asset, names)) for names in ((STYLE, *styles), scripts))
    policy = POLICY.format(css=_csp_hash(css), js=_csp_hash(js))
    return DOCUMENT.format(title=html.escape(title), policy=policy, css=css, body=body, js=js)


def _csp_hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")
