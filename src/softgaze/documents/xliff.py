"""XLIFF 1.2 and 2.x: units without a finished translation are filled and marked for review."""

from collections.abc import Iterator

from softgaze.data.bilingual import UNTRANSLATED_STATES
from softgaze.documents.base import DocumentOptions
from softgaze.documents.inline import CLOSE, OPEN
from softgaze.documents.xml_tree import XmlDocument, XmlNode, parse_xml
from softgaze.errors import DataError

INLINE = frozenset({"g", "mrk", "pc"})
RANGES = {"bpt": OPEN, "bx": OPEN, "sc": OPEN, "sm": OPEN, "ept": CLOSE, "ex": CLOSE, "ec": CLOSE, "em": CLOSE}


def range_kind(node: XmlNode) -> tuple[str, str] | None:
    """Return (kind, key) of an element that opens or closes a range of text."""
    if node.name not in RANGES:
        return None
    attributes = node.attributes
    return RANGES[node.name], next(
        (attributes[name] for name in ("startRef", "rid", "id", "i") if name in attributes), ""
    )


def parse(content: bytes, options: DocumentOptions) -> XmlDocument:
    """Open an XLIFF file."""
    root, file = parse_xml(content)
    document = XmlDocument(root, file)
    if not root.elements("xliff"):
        raise DataError("the file has no <xliff> element")
    for unit in units(root):
        for holder in [unit] if unit.name == "trans-unit" else unit.elements("segment"):
            fill_unit(holder, document, options.overwrite)
    for node in root.walk():
        if node.name == "file" and options.target_language and "original" in node.attributes:  # 1.2
            node.set_attribute("target-language", node.attributes.get("target-language", options.target_language))
        if node.name == "xliff" and options.target_language and node.attributes.get("version", "").startswith("2"):
            node.set_attribute("trgLang", node.attributes.get("trgLang", options.target_language))
    return document


def units(node: XmlNode, translate: str = "yes") -> Iterator[XmlNode]:
    """Yield the units to translate below a node; files, groups and units inherit the attribute `translate`."""
    for child in node.children:
        own = child.attributes.get("translate", translate) if child.children else "no"
        if child.name not in ("trans-unit", "unit"):
            yield from units(child, own)
        elif own != "no":
            yield child


def fill_unit(unit: XmlNode, document: XmlDocument, overwrite: bool) -> None:
    """Replace the target of a unit, or add one after its source, unless it has a finished translation."""
    source = next(iter(unit.elements("source")), None)
    target = next(iter(unit.elements("target")), None)
    if source is None or not source.text.strip() or (not overwrite and is_finished(unit, target)):
        return
    if target is None:
        target = XmlNode("target", f"<{source.prefix}target>", f"</{source.prefix}target>")
        at = unit.children.index(source)
        blank = [node for node in unit.children[at - 1 : at] if at and not node.raw.strip()]
        unit.children[at + 1 : at + 1] = [*blank, target]
    document.fill(target, source, INLINE, range_kind)
    if unit.name == "segment":
        unit.set_attribute("state", "translated")
    else:
        target.set_attribute("state", "needs-review-translation")


def is_finished(unit: XmlNode, target: XmlNode | None) -> bool:
    """Return whether a unit has a translation that is not marked as missing."""
    if unit.attributes.get("approved") == "yes":
        return True
    if target is None or not target.text.strip():
        return False
    holder = unit if unit.name == "segment" else target
    return holder.attributes.get("state", "translated") not in UNTRANSLATED_STATES
