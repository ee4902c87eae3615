"""A small document of each format, with the texts that are to be translated."""

import io
import zipfile

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:p="urn:p"'
ODF = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" '
    'xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0"'
)
MACRO = b"\xd0\xcf\x11\xe0 not a real macro"


def zipped(members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, (2020, 1, 2, 3, 4, 6)), content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


DOCUMENT_XML = f"""<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<w:document {W}><w:body>
<w:p w:rsidR="00A1"><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>A dog &amp; a cat</w:t></w:r></w:p>
<w:p><w:r><w:t xml:space="preserve">the dog </w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>runs</w:t></w:r>\
<w:proofErr w:type="x"/><w:r><w:t xml:space="preserve"> in </w:t></w:r>\
<w:hyperlink r:id="rId4"><w:r><w:rPr><w:u/></w:rPr><w:t>the park</w:t></w:r></w:hyperlink>\
<w:r><w:rPr><w:rStyle w:val="FootnoteReference"/></w:rPr><w:footnoteReference w:id="2"/></w:r></w:p>
<w:p><w:r><w:t>one</w:t><w:tab/><w:t>two</w:t></w:r></w:p>
<w:p><w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText> HYPERLINK "x" </w:instrText></w:r>\
<w:r><w:fldChar w:fldCharType="separate"/></w:r><w:r><w:t>page</w:t></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r>\
<w:r><w:t xml:space="preserve"> of the book </w:t></w:r><w:r><w:fldChar w:fldCharType="begin"/></w:r>\
<w:r><w:instrText>PAGE</w:instrText></w:r><w:r><w:fldChar w:fldCharType="separate"/></w:r><w:r><w:t>7</w:t></w:r>\
<w:r><w:fldChar w:fldCharType="end"/></w:r></w:p>
<w:p><w:r><w:drawing><w:txbxContent><w:p><w:r><w:t>in a box</w:t></w:r></w:p></w:txbxContent></w:drawing></w:r>\
<w:bookmarkStart w:id="0" w:name="b"/><w:r><w:t>a mark</w:t></w:r><w:bookmarkEnd w:id="0"/></w:p>
</w:body></w:document>"""
DOCX = zipped(
    {
        "[Content_Types].xml": "<Types/>",
        "word/document.xml": DOCUMENT_XML.replace("<w:document ", '<w:document xmlns:r="urn:r" '),
        "word/footnotes.xml": f"<w:footnotes {W}><w:p><w:r><w:t>a note</w:t></w:r></w:p></w:footnotes>",
        "word/comments.xml": f"<w:comments {W}><w:p><w:r><w:t>a comment</w:t></w:r></w:p></w:comments>",
        "word/vbaProject.bin": MACRO,
    }
)
PPTX = zipped(
    {
        "ppt/slides/slide1.xml": f"<p:sld {A}><a:p><a:pPr/><a:r><a:rPr b='1'/><a:t>A title</a:t></a:r>"
        "<a:br/><a:r><a:rPr/><a:t>second </a:t></a:r><a:fld id='1'><a:t>7</a:t></a:fld>"
        "<a:endParaRPr/></a:p></p:sld>",
        "ppt/presentation.xml": f"<p:presentation {A}/>",
    }
)
ODT = zipped(
    {
        "mimetype": "application/vnd.oasis.opendocument.text",
        "content.xml": f"<office:document-content {ODF}><office:body><text:h>A head</text:h>"
        '<text:p text:style-name="P1">the <text:span text:style-name="T1">red</text:span> dog'
        "<text:note><text:note-body>"
        "<text:p>a note</text:p></text:note-body></text:note> runs<text:line-break/>home</text:p><text:p/>"
        "<office:annotation><text:p>a comment</text:p></office:annotation></office:body></office:document-content>",
        "Pictures/a.png": b"\x89PNG",
    }
)
ODP = zipped(
    {
        "mimetype": "application/vnd.oasis.opendocument.presentation",
        "content.xml": f"<office:document-content {ODF}><office:body><draw:page><draw:frame><draw:text-box>"
        "<text:p>A title<text:s/><text:bookmark-start text:name='b'/>here<text:bookmark-end text:name='b'/></text:p>"
        "</draw:text-box></draw:frame></draw:page></office:body></office:document-content>",
    }
)
EPUB = zipped(
    {
        "mimetype": "application/epub+zip",
        "OEBPS/chapter.xhtml": '<?xml version="1.0"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml"><head>'
        "<title>A book</title></head><body><p>the <em>red</em> dog&#160;runs<br/>home</p></body></html>",
        "OEBPS/toc.ncx": '<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><navLabel><text>One</text></navLabel></ncx>',
    }
)

MARKDOWN = """---
title: kept
---
# A *red* dog

the dog runs
in the `park()` and [a link](http://x.y/z "t").

- one item
  > quoted **text**

```
code stays
```

    indented code

| a head | b |
|--------|---|
| one \\| cell | `x` |

A title
=======
"""
HTML = (
    "<!DOCTYPE html><html><body><p>A dog &quot;runs&quot; <B>fast</B></p><pre>\n  x </pre><script>a < b</script></html>"
)
SRT = (
    "1\r\n00:00:01,000 --> 00:00:02,500\r\nthe <i>red</i> dog\r\nruns home\r\n\r\n"
    "2\r\n00:00:03,000 --> 00:00:04,000\r\n- one\r\n- two\r\n"
)
VTT = "WEBVTT\n\nNOTE kept\n\nid\n00:01.000 --> 00:02.000 align:start\n<v Bob>a &amp; b\n"
PO = """# header
msgid ""
msgstr ""
"Language: ko\\n"

#: a.c:1
#, c-format
msgid "a %s dog"
msgstr ""

msgctxt "menu"
msgid "done"
msgstr "fertig"

#, fuzzy
#| msgid "old"
msgid ""
"first\\n"
"second\\n"
msgstr "alt"

msgid "%d file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""

#~ msgid "gone"
#~ msgstr "weg"
"""
XLIFF_1 = """<?xml version="1.0"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file original="a" source-language="en"><body>
  <trans-unit id="1">
    <source>the <g id="1">red</g> dog<x id="2"/></source>
  </trans-unit>
  <trans-unit id="2"><source>done</source><target state="final">fertig</target></trans-unit>
  <trans-unit id="3"><source>new</source><target state="new">x</target></trans-unit>
</body></file></xliff>
"""
XLIFF_2 = """<xliff version="2.0" srcLang="en" xmlns="urn:oasis:names:tc:xliff:document:2.0"><file id="f"><unit id="1">
<segment><source>the <pc id="1">red</pc> <sc id="2"/>dog<ec startRef="2"/></source></segment>
<segment state="final"><source>done</source><target>fertig</target></segment></unit></file></xliff>
"""
TMX = """<?xml version="1.0"?>
<tmx version="1.4"><header srclang="en"/><body>
<tu><tuv xml:lang="en-US"><seg>the <bpt i="1">&lt;b></bpt>dog<ept i="1">&lt;/b></ept></seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>done</seg></tuv><tuv xml:lang="ko"><seg>fertig</seg></tuv></tu>
</body></tmx>
"""
JSON = (
    '{\n  "title": "A \\u0064og",\n'
    '  "n": 3, "list": ["one\\ntwo", true],\n  "@title": {"description": "kept"},\n  "last": "the end"\n}\n'
)
ARB = (
    '{"@@locale": "en", "files": "{n, plural, =0 {no file} one {# file in {dir}} '
    'other {{g, select, a {his} other {it}}}}",'
    ' "@files": {"placeholders": {"n": {"type": "int"}}}, "greet": "hello {name}"}'
)
PROPERTIES = "# comment\n! too\nkey = a dog \\\n    runs\nempty=\n\nother: caf\\u00e9 {0}\nspaced\\ key=the cat"
ANDROID = """<?xml version="1.0" encoding="utf-8"?>
<resources xmlns:xliff="urn:oasis:names:tc:xliff:document:1.2">
  <!-- comment -->
  <string name="a">It\\'s <b>red</b>, <xliff:g id="n">%1$s</xliff:g></string>
  <string name="b" translatable="false">kept</string>
  <plurals name="c"><item quantity="one">a dog</item><item quantity="other">dogs\\nrun</item></plurals>
</resources>
"""
STRINGS = '/* comment "x" */\n"key" = "a \\"red\\" dog";\n// more\n"k2" = "one\\ntwo";\n'

# name of the file: (content, texts in order)
SAMPLES = {
    "a.txt": (b"\xef\xbb\xbfA dog.\r\n\r\n  the cat \n", ["A dog.", "the cat"]),
    "a.md": (
        MARKDOWN.encode(),
        [
            "A red dog",
            "the dog runs in the  and a link.",
            "one item",
            "quoted text",
            "a head",
            "b",
            "one | cell",
            "",
            "A title",
        ],
    ),
    "a.html": (HTML.encode(), ['A dog "runs" fast', "\n  x "]),
    "a.srt": (SRT.encode(), ["the red dog  runs home", "one", "two"]),
    "a.vtt": (VTT.encode(), ["a & b"]),
    "a.po": (PO.encode(), ["a %s dog", "first", "second", "%d file", "%d files"]),
    "a.xlf": (XLIFF_1.encode(), ["the red dog", "new"]),
    "b.xliff": (XLIFF_2.encode(), ["the red dog"]),
    "a.tmx": (TMX.encode(), ["the dog"]),
    "a.json": (JSON.encode(), ["A dog", "one", "two", "the end"]),
    "a.arb": (ARB.encode(), ["no file", " file in {dir}", "his", "it", "hello {name}"]),
    "a.properties": (PROPERTIES.encode(), ["a dog runs", "café {0}", "the cat"]),
    "strings.xml": (ANDROID.encode(), ["It's red, ", "a dog", "dogs", "run"]),
    "a.strings": (STRINGS.encode("utf-16"), ['a "red" dog', "one", "two"]),
    "a.docx": (
        DOCX,
        [
            "A dog & a cat",
            "the dog runs in the park",
            "one",
            "two",
            "page of the book ",
            "in a box",
            "a mark",
            "a note",
        ],
    ),
    "a.pptx": (PPTX, ["A title", "second "]),
    "a.odt": (ODT, ["A head", "a note", "the red dog runs", "home"]),
    "a.odp": (ODP, ["A title here"]),
    "a.epub": (EPUB, ["A book", "the red dog\xa0runs", "home", "One"]),
}
FILLED = frozenset({"a.po", "a.xlf", "b.xliff", "a.tmx"})  # the translation is added to the source
