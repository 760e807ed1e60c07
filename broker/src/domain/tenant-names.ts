import { BrokerError } from "@stele/wire";
import { isShared } from "./shared-filter.ts";
import type { NameRange } from "./name-range.ts";
import { parseSubscriptionId, type SubscriptionId } from "./subscription.ts";
import { topicCharactersMax } from "./topic-name.ts";

/**
 * Holds the topics of all tenants that begin with `$`. A tenant's own `$` must not come first: a tenant named `share` would subscribe to
 * `$share/…`, which is a shared subscription to everybody's topics.
 */
const specialTree = "$tenant";

/** What names follow in a text for people. */
const beforeName = /[", ]|\$share\/[^/"]+\//g;

/**
 * The topics of one tenant, as its clients call them and as the broker calls them: `x` is `acme/x`, and `$x` is `$tenant/acme/$x`. So no wildcard
 * reaches another tenant, and a leading one still matches no topic that begins with `$`. A tenant's name contains no slash and no wildcard.
 */
export class TenantNames {
  /** What every identifier of the tenant begins with, and every topic without `$`. */
  readonly #prefix: string;
  readonly #specialPrefix: string;
  /** Its topics, without those of the prefix that no client of the tenant can name. */
  readonly ranges: readonly NameRange[];

  constructor(tenant: string) {
    [this.#prefix, this.#specialPrefix] = prefixesOf(tenant);
    this.ranges = [
      { from: this.#prefix, before: `${this.#prefix}$` },
      { from: `${this.#prefix}%`, before: `${tenant}0` },
      { from: `${this.#specialPrefix}$`, before: `${this.#specialPrefix}%` },
    ];
  }

  /** A topic, or a filter that is no share, as a client wrote it. Whatever that is, the answer lies in the tenant; for a malformed text it is malformed. */
  toReal(text: string): string {
    if (text.trim() === "") return this.#prefix; // ends in a slash, which no topic does
    return `${text.startsWith("$") ? this.#specialPrefix : this.#prefix}${text}`;
  }

  /** As {@link toReal}, for the filter of a session, which may be `$share/name/filter`. */
  toRealFilter(text: string): string {
    const end = findShareEnd(text);
    return end === undefined ? this.toReal(text) : text.slice(0, end) + this.toReal(text.slice(end));
  }

  /** What the tenant's clients call a topic or a filter; undefined for one that is not theirs. */
  toView(real: string): string | undefined {
    const isSpecial = real.startsWith(this.#specialPrefix);
    if (!isSpecial && !real.startsWith(this.#prefix)) return undefined;
    const view = real.slice((isSpecial ? this.#specialPrefix : this.#prefix).length);
    return view !== "" && view.startsWith("$") === isSpecial ? view : undefined;
  }

  /** The reverse of {@link toRealFilter}. */
  toViewFilter(real: string): string | undefined {
    const end = findShareEnd(real);
    if (end === undefined) return this.toView(real);
    const view = this.toView(real.slice(end));
    return view === undefined ? undefined : real.slice(0, end) + view;
  }

  /** Whether the tenant's clients can name a topic, or write a filter. */
  isOwn(real: string): boolean {
    return this.toView(real) !== undefined;
  }

  /** Whether a text, which may be malformed, is one of {@link toReal}. */
  isWithin(real: string): boolean {
    return real === this.#prefix || this.isOwn(real);
  }

  /** Whether a text names the tenant's prefix. */
  isNamedIn(text: string): boolean {
    return text.includes(this.#prefix);
  }

  /** A text for people, which is one line, without the prefixes of the names that it contains. */
  stripFrom(text: string): string {
    const marked = `\n${text.replaceAll(beforeName, (before) => `${before}\n`)}`;
    return marked.replaceAll(`\n${this.#specialPrefix}`, "").replaceAll(`\n${this.#prefix}`, "").replaceAll("\n", "");
  }

  /** @throws BrokerError 100102 a topic or filter that is too long together with the prefix. */
  checkLength(view: string): void {
    const { length } = view.slice(findShareEnd(view) ?? 0);
    const atMost = topicCharactersMax - (this.toRealFilter(view).length - view.length);
    if (length > atMost) throw new BrokerError("topicTooLong", { details: `${length} characters, at most ${atMost}` });
  }

  /** An identifier of a subscription, as a client wrote it: two tenants may choose the same. */
  toRealId(text: string): string {
    return this.#prefix + text;
  }

  /** A new identifier of the tenant. */
  createId(uuid: string): SubscriptionId {
    return this.toRealId(parseSubscriptionId(uuid)) as SubscriptionId; // As parseAnySubscriptionId takes it.
  }
}

/** What the topics of a tenant begin with: those without `$` in front, and those with it. */
export function prefixesOf(tenant: string): readonly [plain: string, special: string] {
  return [`${tenant}/`, `${specialTree}/${tenant}/`];
}

/** Where the filter of `$share/name/filter` begins; undefined for any other text. */
function findShareEnd(text: string): number | undefined {
  if (!isShared(text)) return undefined;
  const end = text.indexOf("/", "$share/".length);
  return end < 0 ? text.length : end + 1;
}
