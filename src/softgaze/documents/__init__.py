"""Documents of many formats: text out, translated text back in. One file per format; `FORMATS` lists them."""

from softgaze.documents.base import Document, DocumentOptions
from softgaze.documents.formats import FORMATS, SUFFIXES, detect_format, open_document
from softgaze.documents.inline import Segment

__all__ = ["FORMATS", "SUFFIXES", "Document", "DocumentOptions", "Segment", "detect_format", "open_document"]
