/** 1 for the bytes that a JSON string cannot hold unescaped: the quote, the backslash and the control characters. */
const SPECIAL = new Uint8Array(256).fill(1, 0, 0x20);
SPECIAL[0x22] = 1;
SPECIAL[0x5c] = 1;

/** A run of plain bytes longer than this is searched by words; for a shorter one the view costs more than it saves. */
const LONG_RUN = 256;

/** Position of the first quote, backslash or control character in `[pos, end)`, or `end`. */
export function nextSpecial(bytes: Buffer, pos: number, end: number): number {
  const limit = end - pos > LONG_RUN ? pos + LONG_RUN : end;
  pos = searchByBytes(bytes, pos, limit);
  return pos === limit && pos < end ? searchByWords(bytes, pos, end) : pos;
}

function searchByBytes(bytes: Buffer, pos: number, end: number): number {
  while (
    pos + 3 < end &&
    ((SPECIAL[bytes[pos] as number] as number) |
      (SPECIAL[bytes[pos + 1] as number] as number) |
      (SPECIAL[bytes[pos + 2] as number] as number) |
      (SPECIAL[bytes[pos + 3] as number] as number)) ===
      0
  ) {
    pos += 4;
  }
  while (pos < end && SPECIAL[bytes[pos] as number] === 0) pos++;
  return pos;
}

/** Searches four bytes at a time: a large message is mostly one long string, and this search is most of its scan. */
function searchByWords(bytes: Buffer, pos: number, end: number): number {
  const aligned = Math.min(end, pos + (-(bytes.byteOffset + pos) & 3));
  pos = searchByBytes(bytes, pos, aligned);
  if (pos < aligned) return pos;
  const words = new Int32Array(bytes.buffer, bytes.byteOffset + pos, (end - pos) >> 2);
  let at = 0;
  for (; at < words.length; at++) {
    const word = words[at] as number;
    // Sets the highest bit of each byte that is below 0x20, a quote or a backslash. A borrow can also set it in the next
    // higher byte, but only above a byte that is a match.
    const marks =
      (word - 0x20202020) | ((word ^ 0x22222222) - 0x01010101) | ((word ^ 0x5c5c5c5c) - 0x01010101);
    if ((marks & ~word & 0x80808080) !== 0) break;
  }
  return searchByBytes(bytes, pos + at * 4, end);
}
