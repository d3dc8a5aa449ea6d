"""NextChat and its kin ask for a title in a last message behind the conversation itself."""

import re

from dialogs.extras.v1.matching.matcher import Matcher

TITLE = re.compile(
    r"(?:Please )?generate a four to five word title summarizing our conversation"
    r"|请?使用四到五个字直接返回这句话的简要主题",
    re.I,
)

MATCHER = Matcher("NextChat", is_title=lambda text: bool(TITLE.match(text)))
