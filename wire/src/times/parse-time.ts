const shape = /^(\d{4}-\d\d-\d\d)T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)$/i;
const clock = /T(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d+)?)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/i;
const seconds = /T\d\d:\d\d:/i;
const leapSecond = /(?<=T\d\d:\d\d:)60/i;
const epochTime = /^\d{12,14}$/;

/**
 * Parses a time of RFC 3339, whose seconds may be missing, to milliseconds since the epoch. Undefined for a text in another format, NaN for a time that does
 * not exist.
 */
export function parseDateTime(text: string): number | undefined {
  const date = shape.exec(text)?.[1];
  if (date === undefined) return undefined;
  return isDay(date) && clock.test(text) ? Date.parse(text) : Number.NaN;
}

/** As {@link parseDateTime}; also accepts milliseconds since the epoch, of 12 to 14 digits. */
export function parseTime(text: string): number | undefined {
  return epochTime.test(text) ? Number(text) : parseDateTime(text);
}

/** Whether a text is a time of RFC 3339, as CloudEvents ask for. It may be a leap second, which has no milliseconds since the epoch. */
export function isTimestamp(text: string): boolean {
  if (!seconds.test(text)) return false;
  const time = parseDateTime(text.replace(leapSecond, "59"));
  return time !== undefined && !Number.isNaN(time) && (!leapSecond.test(text) || isLastOfMonth(time));
}

/** Whether a time is in the last second of a month in UTC, which a leap second may follow (RFC 3339, section 5.7). */
function isLastOfMonth(time: number): boolean {
  const nextSecond = new Date(time + 1000);
  return nextSecond.getUTCMonth() !== new Date(time).getUTCMonth();
}

/** Whether a date exists: Date.parse reads 31 February as 3 March. */
function isDay(date: string): boolean {
  const time = Date.parse(`${date}T00:00:00Z`);
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(date);
}
