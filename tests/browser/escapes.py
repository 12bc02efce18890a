"""Escape sequences that reach beyond the text of a terminal: what a hostile program would print."""

from __future__ import annotations

ESC, BEL, ST = "\x1b", "\x07", "\x1b\\"

# What would be answered, and so typed into whatever reads next.
ASKING = [
    f"{ESC}[c", f"{ESC}[0c", f"{ESC}[>c", f"{ESC}[>0c", f"{ESC}[=c", f"{ESC}Z", "\x05",
    f"{ESC}[5n", f"{ESC}[6n", f"{ESC}[?6n", f"{ESC}[?15n", f"{ESC}[?25n", f"{ESC}[?26n", f"{ESC}[?53n", f"{ESC}[?996n",
    f"{ESC}[4$p", f"{ESC}[?1$p", f"{ESC}[?2004$p", f"{ESC}[?2026$p",
    *(f"{ESC}[{n}t" for n in (11, 13, 14, 15, 16, 18, 19, 20, 21)), f"{ESC}[14;2t",
    f"{ESC}[>q", f"{ESC}[>0q", f"{ESC}[?u", f"{ESC}[x",
    *(f"{ESC}P$q{what}{ST}" for what in ('"p', '"q', "r", "m", " q", "s")),
    f"{ESC}P+q544e{ST}", f"{ESC}P+q436f{ST}",
    *(f"{ESC}]{n};?{end}" for n in (10, 11, 12, 17, 19) for end in (BEL, ST)), f"{ESC}]4;1;?{BEL}",
    f"{ESC}]52;c;?{BEL}", f"{ESC}]50;?{BEL}", f"{ESC}[?1004h", f"{ESC}[?9001h", f"{ESC}_Gi=1,a=q;AAAA{ST}",
]  # fmt: skip
# What would change the page, the person's things, or what the terminal looks like.
REACHING = [
    *(f"{ESC}]{n};owned{BEL}" for n in (0, 1, 2)), f"{ESC}k owned {ST}", f"{ESC}[22;0t", f"{ESC}[23;0t",
    f"{ESC}]7;file://evil/etc{BEL}", f"{ESC}]8;;javascript:alert(1){BEL}click{ESC}]8;;{BEL}",
    f"{ESC}]8;;http://evil.test/{BEL}click{ESC}]8;;{BEL}", f"{ESC}]9;owned{BEL}", f"{ESC}]777;notify;owned;owned{BEL}",
    f"{ESC}]52;c;b3duZWQ={BEL}", f"{ESC}]52;p;b3duZWQ={ST}", f"{ESC}]50;SetProfile=owned{BEL}",
    f"{ESC}]133;D;0{BEL}", f"{ESC}]133;C{BEL}", f"{ESC}]633;E;owned{BEL}", f"{ESC}]6;1;bg;red;brightness;255{BEL}",
    f"{ESC}]1337;File=inline=1:AAAA{BEL}", f"{ESC}]1337;SetUserVar=a=b{BEL}", f"{ESC}]1337;CopyToClipboard={BEL}",
    f"{ESC}]10;#000000{BEL}", f"{ESC}]11;#000000{BEL}", f"{ESC}]4;0;#ff0000{BEL}", f"{ESC}]104{BEL}",
    f"{ESC}Pq#0;2;0;0;0#0~~@@vv@@~~@@~~$-{ST}", f"{ESC}[1;1;1;1;1;1&w", f"{ESC}[5i", f"{ESC}[4i", f"{ESC}[?5i",
    f"{ESC}[8;1;1t", f"{ESC}[3;0;0t", f"{ESC}[2t", f"{ESC}[9;1t", f"{ESC}[?1049h{ESC}[?1049l",
    f"{ESC}[201~rm -rf /{ESC}[200~",
    f"{ESC}[?2004h", f"{ESC}[?1h", f"{ESC}[?25l", f"{ESC}[?3h", f"{ESC}#8", f"{ESC}(0lqk{ESC}(B",
]  # fmt: skip
# What would keep it busy, or draw what is not there.
LASTING = [
    *(f"a{ESC}[2147483647{final}" for final in "@ABCDEFGILMPSTXZab`d"), f"{ESC}[999999;999999H", f"{ESC}[1;1000000r",
    "\u202eexe.fdp\u202c", "\u200b\u2060\ufeff\u200d", "a" + "\u0301" * 500, "\ufdfd" * 40, "\x00\x7f\x80\x9b31m",
    f"{ESC}]2;" + "A" * 10_000 + BEL, f"{ESC}P" + "B" * 10_000 + ST, "x" * 5000, f"{ESC}[" + "1;" * 200 + "m",
    f"{ESC}[38;2;999;999;999m{ESC}[48;5;999m", "<img src=x onerror=alert(1)><script>alert(1)</script>",
]  # fmt: skip

CORPUS = [*ASKING, *REACHING, *LASTING]
# A terminal as it was, and a mark that the person would see.
END = f"{ESC}c{ESC}[0m\r\nall of it was printed\r\n"
