"""Terminal output as text: without its codes, or as the screen they paint. Pure."""

from __future__ import annotations

import re

# CSI … final; OSC/DCS/APC/PM … BEL or ST; charset selection; other two-byte sequences.
_LONG_CODES = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()*+][A-Za-z0-9]")
_CODES = re.compile(rb"%b|\x1b[ -/]?[0-~]" % _LONG_CODES.pattern)
# What begins a code of several bytes, and alone would be read as one of two.
_OPENERS = (b"[", b"]", b"P", b"X", b"^", b"_", b"(", b")", b"*", b"+")
_LONGEST_CODE = 4096
_CONTROLS = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def plain(data: bytes) -> str:
    """The text, with its lines in the order of output, including text that was painted over."""
    text = _CONTROLS.sub(b"", _CODES.sub(b"", data).replace(b"\r\n", b"\n").replace(b"\r", b""))
    return text.decode(errors="replace")


def whole_length(data: bytes) -> int:
    """The number of bytes that can be read now, without an incomplete code or character at the end."""
    end = len(data)
    while (at := data.rfind(b"\x1b", max(0, len(data) - _LONGEST_CODE), end)) >= 0 and _is_open(data[at:end]):
        end = at
    for back in range(1, min(4, end) + 1):
        byte = data[end - back]
        if byte >= 0xC0:  # the first of several; are they all there?
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return end - back if back < needed else end
        if byte < 0x80:
            break
    return end


def _is_open(code: bytes) -> bool:
    """True if more of the code that begins here is to come."""
    if code[1:2] in _OPENERS:
        return not _LONG_CODES.match(code)
    return len(code) < 2 or (code[1:2] < b"0" and len(code) < 3)


def place_of(data: bytes, length: int) -> int:
    """The number of bytes to read for this many characters of plain text."""
    low, high = 0, len(data)
    while low < high:
        middle = (low + high) // 2
        if len(plain(data[:middle])) < length:
            low = middle + 1
        else:
            high = middle
    return low


def render(data: bytes, rows: int, columns: int) -> str:
    """The last screen as a person would see it, by the codes that most programs use."""
    screen = _Screen(rows, columns)
    at = 0
    for found in _CODES.finditer(data):
        screen.write(data[at : found.start()].decode(errors="replace"))
        screen.obey(found[0].decode(errors="replace"))
        at = found.end()
    screen.write(data[at:].decode(errors="replace"))
    return "\n".join(line.rstrip() for line in screen.lines()).rstrip("\n")


class _Screen:
    def __init__(self, rows: int, columns: int) -> None:
        self.rows, self.columns = rows, columns
        self.row = self.column = 0
        self.saved = (0, 0)
        self.cells = [[" "] * columns for _ in range(rows)]
        self.other: tuple[list[list[str]], int, int] | None = None  # the first screen, while a program has the second

    def lines(self) -> list[str]:
        return ["".join(line) for line in self.cells]

    def write(self, text: str) -> None:
        for character in text:
            match character:
                case "\n":
                    self._down()
                case "\r":
                    self.column = 0
                case "\b":
                    self.column = max(0, self.column - 1)
                case "\t":
                    self.column = min(self.columns - 1, (self.column // 8 + 1) * 8)
                case _ if character >= " ":
                    self._put(character)

    def _put(self, character: str) -> None:
        if self.column >= self.columns:
            self.column = 0
            self._down()
        self.cells[self.row][self.column] = character
        self.column += 1

    def _down(self) -> None:
        if self.row + 1 < self.rows:
            self.row += 1
        else:
            self.cells.pop(0)
            self.cells.append([" "] * self.columns)

    def obey(self, code: str) -> None:
        if not code.startswith("\x1b["):
            self._obey_short(code[1:])
        elif code[2:3] == "?":
            if {"1049", "47", "1047"} & set(code[3:-1].split(";")):
                self._switch(to_second=code[-1] == "h")
        else:
            numbers = [int(part) if part.isdigit() else 0 for part in code[2:-1].split(";")]
            self._obey_long(code[-1], numbers)

    def _obey_long(self, last: str, numbers: list[int]) -> None:
        first = max(1, numbers[0])
        match last:
            case "A" | "B" | "e":
                self._go(self.row + (-first if last == "A" else first), self.column)
            case "C" | "a" | "D":
                self._go(self.row, self.column + (-first if last == "D" else first))
            case "E" | "F":
                self._go(self.row + (first if last == "E" else -first), 0)
            case "G" | "`":
                self._go(self.row, first - 1)
            case "d":
                self._go(first - 1, self.column)
            case "H" | "f":
                self._go(first - 1, (max(1, numbers[1]) if len(numbers) > 1 else 1) - 1)
            case "J":
                self._clear(numbers[0])
            case "K":
                self._clear_line(numbers[0])
            case "L" | "M":
                self._move_lines(first if last == "L" else -first)
            case "P":
                line = self.cells[self.row]
                del line[self.column : self.column + first]
                line += [" "] * (self.columns - len(line))
            case "s":
                self.saved = (self.row, self.column)
            case "u":
                self._go(*self.saved)

    def _go(self, row: int, column: int) -> None:
        self.row, self.column = min(max(0, row), self.rows - 1), min(max(0, column), self.columns - 1)

    def _obey_short(self, code: str) -> None:
        match code:
            case "7":
                self.saved = (self.row, self.column)
            case "8":
                self._go(*self.saved)
            case "M" if self.row:
                self.row -= 1
            case "M":
                self.cells.insert(0, [" "] * self.columns)
                self.cells.pop()
            case "c":
                self._clear(2)
                self._go(0, 0)

    def _clear(self, which: int) -> None:
        if which in (2, 3):
            self.cells = [[" "] * self.columns for _ in range(self.rows)]
            return
        self._clear_line(which)
        for row in range(self.row + 1, self.rows) if which == 0 else range(self.row):
            self.cells[row] = [" "] * self.columns

    def _clear_line(self, which: int) -> None:
        column = min(self.column, self.columns - 1)
        start, end = {0: (column, self.columns), 1: (0, column + 1)}.get(which, (0, self.columns))
        self.cells[self.row][start:end] = [" "] * (end - start)

    def _move_lines(self, count: int) -> None:
        for _ in range(min(abs(count), self.rows)):
            if count > 0:
                self.cells.insert(self.row, [" "] * self.columns)
                self.cells.pop()
            else:
                self.cells.pop(self.row)
                self.cells.append([" "] * self.columns)

    def _switch(self, *, to_second: bool) -> None:
        if to_second and self.other is None:
            self.other = (self.cells, self.row, self.column)
            self._clear(2)
        elif not to_second and self.other is not None:
            self.cells, self.row, self.column = self.other
            self.other = None
