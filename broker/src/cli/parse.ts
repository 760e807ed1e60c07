import { InvalidArgumentError } from "commander";

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** An integer from 0 with at most 9 digits. */
export function parseNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError("It must be a number from 0.");
  return Number(text);
}

/** A count: an integer from 1 with at most 9 digits. */
export function parseCount(text: string): number {
  if (!/^(?!0+$)\d{1,9}$/.test(text)) throw new InvalidArgumentError("It must be a number from 1.");
  return Number(text);
}

/** The milliseconds of a duration such as 90s. */
export function parseDuration(text: string): number {
  const [, count = "", unit = ""] = /^(\d{1,9})(ms|s|m|h|d)$/.exec(text) ?? [];
  const length = Number(count) * (unitMs[unit] ?? Number.NaN);
  if (count === "" || Number.isNaN(length)) throw new InvalidArgumentError("It must be like 90s, 10m, 12h or 2d.");
  return length;
}

/** Adds the `key=value` of one flag to those of earlier flags. A repeated key is refused, as in a body of REST: only one of its values could be published. */
export function collectPair(
  text: string,
  before: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  const [, key, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  if (key === undefined || value === undefined) throw new InvalidArgumentError("It must be like key=value.");
  if (Object.hasOwn(before, key)) throw new InvalidArgumentError(`${key} is given more than once.`);
  return { ...before, [key]: value };
}
