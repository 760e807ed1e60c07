/** The address of a view: its path, and a query with the values that are defined. */
export function toAddress(path: string, values: Readonly<Record<string, string | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) if (value !== undefined) query.set(name, value);
  return query.size === 0 ? path : `${path}?${query.toString()}`;
}
