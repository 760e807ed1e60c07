import { BrokerError } from "@stele/wire";
import { isShared } from "./shared-filter.ts";
import type { NameRange } from "./name-range.ts";
import { parseSubscriptionId, type SubscriptionId } from "./subscription.ts";
import { topicCharactersMax } from "./topic-name.ts";

/**
 * Root of all tenants' topics that begin with `$`. The tenant's name must not follow the leading `$`: for a tenant named `share`, a filter would
 * become `$share/…`, which is a shared subscription to everybody's topics.
 */
const specialTree = "$tenant";

/** Characters that precede a name in a message. */
const beforeName = /[", ]|\$share\/[^/"]+\//g;

/**
 * Translates the names that the clients of one tenant use to the broker's real names, and back: `x` is `acme/x`, and `$x` is `$tenant/acme/$x`. So
 * no wildcard reaches another tenant, and a leading wildcard still matches no topic that begins with `$`. A tenant's name contains no slash and no
 * wildcard.
 */
export class TenantNames {
  /** The start of every identifier of the tenant, and of the real name of every topic without a leading `$`. */
  readonly #prefix: string;
  readonly #specialPrefix: string;
  /** Real names of the tenant's topics. Excludes prefixed names that no client of the tenant can write, such as `acme/$x`. */
  readonly ranges: readonly NameRange[];

  constructor(tenant: string) {
    [this.#prefix, this.#specialPrefix] = prefixesOf(tenant);
    this.ranges = [
      { from: this.#prefix, before: `${this.#prefix}$` },
      { from: `${this.#prefix}%`, before: `${tenant}0` },
      { from: `${this.#specialPrefix}$`, before: `${this.#specialPrefix}%` },
    ];
  }

  /** Returns the real name for a topic, or for a filter without `$share/`, that a client wrote. Every text gets a prefix; a malformed text stays malformed. */
  toReal(text: string): string {
    if (text.trim() === "") return this.#prefix; // ends in a slash, which no topic does
    return `${text.startsWith("$") ? this.#specialPrefix : this.#prefix}${text}`;
  }

  /** As {@link toReal}, for the filter of a session, which may be `$share/name/filter`. */
  toRealFilter(text: string): string {
    const end = findShareEnd(text);
    return end === undefined ? this.toReal(text) : text.slice(0, end) + this.toReal(text.slice(end));
  }

  /** The name that the tenant's clients use for a real topic or filter; undefined if it is not the tenant's. */
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

  /** Whether the tenant's clients have a name for a real topic or filter. */
  isOwn(real: string): boolean {
    return this.toView(real) !== undefined;
  }

  /** Whether {@link toReal} can return a text, which may be malformed. */
  isWithin(real: string): boolean {
    return real === this.#prefix || this.isOwn(real);
  }

  /** Whether a text contains the tenant's prefix. */
  isNamedIn(text: string): boolean {
    return text.includes(this.#prefix);
  }

  /** Removes the tenant's prefixes from the names in a message of one line. */
  stripFrom(text: string): string {
    const marked = `\n${text.replaceAll(beforeName, (before) => `${before}\n`)}`;
    return marked.replaceAll(`\n${this.#specialPrefix}`, "").replaceAll(`\n${this.#prefix}`, "").replaceAll("\n", "");
  }

  /** @throws BrokerError 100102 if a topic or filter is too long together with its prefix. */
  checkLength(view: string): void {
    const { length } = view.slice(findShareEnd(view) ?? 0);
    const atMost = topicCharactersMax - (this.toRealFilter(view).length - view.length);
    if (length > atMost) throw new BrokerError("topicTooLong", { details: `${length} characters, at most ${atMost}` });
  }

  /** The real identifier for one that a client chose: two tenants may choose the same. */
  toRealId(text: string): string {
    return this.#prefix + text;
  }

  /** The real identifier of a new subscription. */
  createId(uuid: string): SubscriptionId {
    return this.toRealId(parseSubscriptionId(uuid)) as SubscriptionId; // parseAnySubscriptionId accepts it.
  }
}

/** The prefixes of a tenant's real topics: for topics without a leading `$`, and for topics with it. */
export function prefixesOf(tenant: string): readonly [plain: string, special: string] {
  return [`${tenant}/`, `${specialTree}/${tenant}/`];
}

/** Where the filter of `$share/name/filter` begins: at the end of the text if no slash follows the name. Undefined for a text without `$share/`. */
function findShareEnd(text: string): number | undefined {
  if (!isShared(text)) return undefined;
  const end = text.indexOf("/", "$share/".length);
  return end < 0 ? text.length : end + 1;
}
