"""What must be true of tags before and after a translation."""

import re
from collections import Counter
from html.parser import HTMLParser

TAG = re.compile(r"<[^>]*>")


class Balance(HTMLParser):
    """Fails where a tag closes that was not the last to open."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in ("img", "wbr", "br", "hr"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def check_tags(before, after):
    assert Counter(TAG.findall(after)) == Counter(TAG.findall(before))
    reader = Balance()
    reader.feed(after)
    reader.close()
    assert reader.open == []
