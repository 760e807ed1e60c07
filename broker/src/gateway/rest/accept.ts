interface Preference {
  readonly quality: number;
  /** Whether the range names the type itself, not by a wildcard. */
  readonly isExact: boolean;
}

/**
 * True if a client prefers bare text to JSON: `text/plain` has the higher quality, or the same quality and is named while JSON is covered only by a
 * wildcard (RFC 9110, section 12.5.1).
 */
export function prefersText(accept: string | undefined): boolean {
  if (accept === undefined || accept === "*/*") return false;
  const ranges = parseRanges(accept);
  const text = findPreference(ranges, "text/plain");
  const json = findPreference(ranges, "application/json");
  if (text.quality === 0) return false;
  return text.quality > json.quality || (text.quality === json.quality && text.isExact && !json.isExact);
}

function parseRanges(accept: string): ReadonlyMap<string, number> {
  const ranges = new Map<string, number>();
  for (const part of accept.toLowerCase().split(",")) {
    const [range = "", ...parameters] = part.split(";").map((text) => text.trim());
    const quality = parameters.map((text) => /^q=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)$/.exec(text)?.[1]).find(Boolean);
    ranges.set(range, quality === undefined ? 1 : Number(quality));
  }
  return ranges;
}

function findPreference(ranges: ReadonlyMap<string, number>, type: string): Preference {
  const exact = ranges.get(type);
  if (exact !== undefined) return { quality: exact, isExact: true };
  return { quality: ranges.get(type.replace(/\/.*/, "/*")) ?? ranges.get("*/*") ?? 0, isExact: false };
}
