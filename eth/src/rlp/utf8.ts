const encoder = new TextEncoder();

/** Bytes that `text` takes in UTF-8. A lone surrogate counts as U+FFFD, as TextEncoder writes it. */
export function utf8Bytes(text: string): number {
  let bytes = text.length;
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    if (unit < 0x80) continue;
    if (unit < 0x800) bytes += 1;
    else if (isPair(text, index, unit)) {
      bytes += 2;
      index += 1;
    } else bytes += 2;
  }
  return bytes;
}

/** Writes `text.value` to `target` at `at`. `text.bytes` is its size as {@link utf8Bytes} returns it. */
export function writeUtf8(
  target: Uint8Array,
  at: number,
  text: { readonly value: string; readonly bytes: number },
): void {
  const { value, bytes } = text;
  if (bytes !== value.length) {
    encoder.encodeInto(value, target.subarray(at, at + bytes));
    return;
  }
  for (let index = 0; index < bytes; index += 1) target[at + index] = value.charCodeAt(index);
}

function isPair(text: string, index: number, unit: number): boolean {
  if (unit < 0xd800 || unit > 0xdbff) return false;
  const next = text.charCodeAt(index + 1); // NaN at the end of the text: both comparisons are false.
  return next >= 0xdc00 && next <= 0xdfff;
}
