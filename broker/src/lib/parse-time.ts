const isoTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/i;
const epochTime = /^\d{12,14}$/;

/** A time of RFC 3339 or in milliseconds since the epoch, as the latter; undefined for a text that is neither, NaN for a time that there is not. */
export function parseTime(text: string): number | undefined {
  if (epochTime.test(text)) return Number(text);
  return isoTime.test(text) ? Date.parse(text) : undefined;
}
