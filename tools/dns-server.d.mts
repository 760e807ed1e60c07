/** The address of a name; or that nobody answers for it (`silent`), or says that it cannot be told (`fails`). Other names do not exist. */
export type Zone = ReadonlyMap<string, string>;

/** A name server on loopback that answers over UDP. */
export interface DnsServer extends AsyncDisposable {
  /** Host and port. */
  readonly address: string;
  /** The names that were asked for, in order: once for each family of addresses, and each time that a query was sent again. */
  readonly questions: readonly string[];
}

export function startDnsServer(zone: Zone): Promise<DnsServer>;
