"""Checks of HTML before and after translation."""

import re
from collections import Counter
from html.parser import HTMLParser

TAG = re.compile(r"<[^>]*>")


class BalanceChecker(HTMLParser):
    """Fails at a closing tag that does not match the last opening tag."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in ("img", "wbr", "br", "hr"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def check_same_tags(before, after):
    """Assert that both have the same tags, and that the tags of `after` are balanced."""
    assert Counter(TAG.findall(after)) == Counter(TAG.findall(before))
    checker = BalanceChecker()
    checker.feed(after)
    checker.close()
    assert checker.open == []
