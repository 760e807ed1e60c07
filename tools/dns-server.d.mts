/** The address of each name. For `silent` instead of an address, the server does not answer; for `fails`, it answers with a failure. Other names do not exist. */
export type Zone = ReadonlyMap<string, string>;

/** A name server on loopback that answers over UDP. */
export interface DnsServer extends AsyncDisposable {
  /** Host and port. */
  readonly address: string;
  /** The names of all queries, in order: one for each address family, and one for each retry. */
  readonly questions: readonly string[];
}

export function startDnsServer(zone: Zone): Promise<DnsServer>;
