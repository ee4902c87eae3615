"""Translation memories (TMX): units without the target language are filled."""

from softgaze.data.bilingual import same_language
from softgaze.documents.base import DocumentOptions
from softgaze.documents.inline import CLOSE, OPEN
from softgaze.documents.xml_tree import XmlDocument, XmlNode, parse_xml
from softgaze.errors import DataError

INLINE = frozenset({"hi"})
RANGES = {"bpt": OPEN, "ept": CLOSE}


def range_kind(node: XmlNode) -> tuple[str, str] | None:
    return (RANGES[node.name], node.attributes.get("i", "")) if node.name in RANGES else None


def parse(content: bytes, options: DocumentOptions) -> XmlDocument:
    """Open a translation memory."""
    root, file = parse_xml(content)
    if not any(node.name == "tmx" for node in root.walk()):
        raise DataError("the file has no <tmx> element")
    document = XmlDocument(root, file)
    for node in root.walk():
        if node.name == "tu":
            fill_unit(node, document, options)
    return document


def fill_unit(unit: XmlNode, document: XmlDocument, options: DocumentOptions) -> None:
    """Fill the variant of the target language; the source is that of the source language, else the first one."""
    variants = unit.elements("tuv")
    target = next((node for node in variants if matches(node, options.target_language)), None)
    others = [node for node in variants if node is not target]
    source = next((node for node in others if matches(node, options.source_language)), others[0] if others else None)
    segment = next(iter(source.elements("seg")), None) if source else None
    if source is None or segment is None or not segment.text.strip():
        return
    if target is None:
        target = XmlNode("tuv", f'<{source.tag} xml:lang="{options.target_language or "und"}">', f"</{source.tag}>")
        unit.children.insert(unit.children.index(source) + 1, target)
    holder = next(iter(target.elements("seg")), None)
    if holder is None:
        holder = XmlNode("seg", f"<{segment.tag}>", f"</{segment.tag}>")
        target.children.append(holder)
    elif holder.text.strip() and not options.overwrite:
        return
    document.fill(holder, segment, INLINE, range_kind)


def matches(variant: XmlNode, language: str) -> bool:
    return same_language(variant.attributes.get("xml:lang", variant.attributes.get("lang", "")), language)
