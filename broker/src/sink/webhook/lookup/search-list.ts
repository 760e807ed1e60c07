/** How the machine completes short names: resolv.conf(5). */
export interface SearchRules {
  readonly domains: readonly string[];
  /** A name with at least this many dots is first queried without a domain of the search list. */
  readonly dotsMin: number;
}

/** Maximum number of search list domains to try (Kubernetes allows 32). */
const searchDomainsMax = 32;
/** Greatest `ndots`, as in glibc. */
const dotsMax = 15;

/** Reads `search`, `domain` and `ndots`. The last `search` or `domain` line counts. */
export function parseSearchRules(text: string): SearchRules {
  let domains: readonly string[] = [];
  let dotsMin = 1;
  for (const line of text.split("\n")) {
    const [keyword, ...values] = line.trim().split(/\s+/);
    if (keyword === "search" || keyword === "domain") domains = toDomains(values);
    if (keyword === "options") dotsMin = findDots(values) ?? dotsMin;
  }
  return { domains, dotsMin };
}

/** The full names to query, in order. A name that ends in a dot is complete. */
export function candidatesFor(name: string, { domains, dotsMin }: SearchRules): readonly string[] {
  if (name.endsWith(".")) return [name.slice(0, -1)];
  const completed = domains.map((domain) => `${name}.${domain}`);
  const dots = name.split(".").length - 1;
  return dots >= dotsMin ? [name, ...completed] : [...completed, name];
}

function toDomains(values: readonly string[]): readonly string[] {
  const domains = values.map((value) => value.replace(/\.$/, "").toLowerCase());
  return domains.filter((domain) => domain !== "").slice(0, searchDomainsMax);
}

function findDots(options: readonly string[]): number | undefined {
  const text = options.findLast((option) => /^ndots:\d+$/.test(option))?.slice("ndots:".length);
  return text === undefined ? undefined : Math.min(Number(text), dotsMax);
}
