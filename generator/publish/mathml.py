"""TeX as MathML, which needs no script. Nothing but MathML comes out, whatever the TeX says.

The converter writes the text of \\text and the address of \\href as they are, so its output is read
again: elements that are not of MathML refuse it, attributes that do more than lay out are dropped.
"""

from __future__ import annotations

import re
from functools import lru_cache
from xml.etree import ElementTree

from latex2mathml.converter import convert
from markupsafe import Markup

_SPACE = "http://www.w3.org/1998/Math/MathML"
_WORD = re.compile(r"\w+")
_ELEMENTS = frozenset(
    _WORD.findall("""
    math mrow mi mn mo mtext mspace mfrac msqrt mroot mstyle mpadded mphantom menclose mfenced msub msup
    msubsup munder mover munderover mmultiscripts mprescripts none mtable mtr mtd""")
)
_ATTRIBUTES = frozenset(
    _WORD.findall("""
    display displaystyle scriptlevel mathvariant mathcolor mathsize stretchy fence form separator lspace
    rspace accent accentunder movablelimits largeop symmetric minsize maxsize linethickness width height
    depth voffset notation columnalign columnlines columnspacing rowlines rowspacing frame""")
)
ElementTree.register_namespace("", _SPACE)


@lru_cache(maxsize=4096)
def math(tex: str, display: bool) -> Markup:
    """TeX as MathML. TeX that cannot be converted is shown as it is."""
    try:
        root = ElementTree.fromstring(convert(tex, display="block" if display else "inline"))
    except Exception:  # noqa: BLE001  # latex2mathml raises many kinds on bad input; the text is better than no page
        return _shown(tex)
    for element in root.iter():
        if element.tag.removeprefix(f"{{{_SPACE}}}") not in _ELEMENTS:
            return _shown(tex)
        for name in set(element.attrib) - _ATTRIBUTES:
            del element.attrib[name]
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _shown(tex: str) -> Markup:
    return Markup("<code>{}</code>").format(tex)
