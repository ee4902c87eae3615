"""String resources of Android (strings.xml): strings, plurals and arrays."""

import re
from collections.abc import Iterator

from softgaze.documents.base import DocumentOptions
from softgaze.documents.html import tag_set
from softgaze.documents.inline import BARRIER, TEXT, Item, split_items
from softgaze.documents.xml_tree import XmlDocument, mixed_items, parse_xml
from softgaze.documents.xml_tree import escape as escape_xml
from softgaze.errors import DataError

# xliff:g is not among them: it is kept as it is.
INLINE = tag_set("a annotation b big em font i small strike strong sub sup tt u")
ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
BREAK = re.compile(r"(\\n|\\t)")


def unescape(text: str) -> str:
    return ESCAPED.sub(lambda found: chr(int(found[1][1:], 16)) if len(found[1]) == 5 else found[1], text)


def escape(text: str) -> str:
    text = re.sub(r"([\\'\"])", r"\\\1", text)
    return escape_xml(re.sub(r"^[@?]", r"\\\g<0>", text))


def parse(content: bytes, options: DocumentOptions) -> XmlDocument:
    """Open a resource file."""
    root, file = parse_xml(content)
    if not root.elements("resources"):
        raise DataError("the file has no <resources> element")
    document = XmlDocument(root, file)
    for node in root.walk():
        kept = node.attributes.get("translatable") == "false" or node.text.startswith(("@", "?"))
        if node.name in ("string", "item") and node.children and not kept:
            items = [part for item in mixed_items(node.children, INLINE) for part in text_items(item)]
            document.set_parts(node, split_items(items, escape))
    return document


def text_items(item: Item) -> Iterator[Item]:
    """Yield a text in parts between line breaks and tabs, which end segments."""
    if item.kind != TEXT:
        yield item
    elif not BREAK.search(item.text):
        yield item._replace(text=unescape(item.text))
    else:
        for part in filter(None, BREAK.split(item.text)):
            yield Item(BARRIER, part) if BREAK.fullmatch(part) else Item(TEXT, escape_xml(part), unescape(part))
