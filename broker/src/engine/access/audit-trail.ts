import { type BrokerError, isBrokerError, toBrokerError } from "@stele/wire";
import { SourceAllowances } from "../../lib/source-allowances.ts";
import type { AuditLine, AuditLog } from "../../ports/audit-log.ts";
import type { Clock } from "../../ports/clock.ts";
import { type Caller, ownerOf, type Principal } from "./caller.ts";
import { type LogInOrigin, toNetwork } from "./failed-log-ins.ts";

/** The things that a call names or changes. */
export type AuditSubject = Pick<
  AuditLine,
  | "groupId"
  | "topic"
  | "receiver"
  | "subscriptionId"
  | "sessionId"
  | "eventId"
  | "role"
  | "rules"
  | "place"
  | "changed"
  | "events"
  | "unmatched"
  | "reason"
>;

/** A stream of events, with the filters that it reads from its start. */
interface AuditedStream extends Pick<AuditLine, "groupId" | "subscriptionId"> {
  readonly filters: readonly string[];
}

/** An operator's order, and who gave it. */
export interface AuditedOrder<Result> {
  readonly caller: Caller;
  readonly action: string;
  readonly subject: AuditSubject;
  /** Further fields for the line that is written when the order is done; none if left out. */
  readonly describe?: ((result: Result) => AuditSubject) | undefined;
}

/** Number of lines about refusals and reads that one principal or address may cause at once; each second allows one more. */
const linesOfOneMax = 20;
/** Number of lines about refusals and reads that all principals and addresses together may cause at once; as many for callers without a valid credential. */
const linesMax = 200;
/** Number of further lines about refusals and reads per second, over all principals and addresses. */
const linesPerSecondMax = 50;
/** Number of lines about refusals and reads that all principals of one tenant together may cause at once, to leave room for others. */
const linesOfTenantMax = linesMax / 2;
/** Number of further lines about refusals and reads per second, over all principals of one tenant. */
const linesOfTenantPerSecondMax = linesPerSecondMax / 2;
/** Number of lines about filters of sessions that one principal may cause at once. */
const filterLinesOfOneMax = 200;
/** Number of further lines about filters of sessions per second, for one principal. */
const filterLinesOfOnePerSecondMax = 5;
/** Number of lines about filters of sessions that all principals and addresses together may cause at once. */
const filterLinesMax = 2_000;
/** Number of further lines about filters of sessions per second, over all principals and addresses. */
const filterLinesPerSecondMax = 100;
/** Number of lines about filters of sessions that all principals of one tenant together may cause at once, to leave room for others. */
const filterLinesOfTenantMax = filterLinesMax / 2;
/** Number of further lines about filters of sessions per second, over all principals of one tenant. */
const filterLinesOfTenantPerSecondMax = filterLinesPerSecondMax / 2;
/** Maximum number of principals and addresses with a line count of their own. */
const sourcesMax = 10_000;
/** Longest time, in milliseconds, before a line says how many lines were left out. */
export const leftOutAfterMs = 10_000;
/** Maximum characters of a field, because a client may write megabytes. Does not limit `rules`: only operators write them, and a role has a limited number. */
const fieldCharactersMax = 256;
/** Maximum characters of the filters in one line about a stream, unless a single filter is longer. A stream with more filters has several lines. */
const filtersCharactersMax = 4_096;

/** The errors with which `Access` refuses a caller. */
const refusals = ["credentialRefused", "accessDenied", "overQuota"] as const;

/** Writes to the audit log who changed something, who was refused, and what operators read. */
export class AuditTrail {
  readonly #log: AuditLog;
  readonly #clock: Clock;
  readonly #allowances: SourceAllowances;
  /** For callers without a valid credential: a stranger must not use up the lines of others, nor the holder of a revoked key those of its principal. */
  readonly #strangersAllowances: SourceAllowances;
  readonly #filterAllowances: SourceAllowances;
  #leftOut = 0;
  #cancel: (() => void) | undefined;

  constructor({ auditLog, clock }: { readonly auditLog: AuditLog; readonly clock: Clock }) {
    this.#log = auditLog;
    this.#clock = clock;
    const each = { atOnce: linesOfOneMax, perSecond: 1 };
    const all = { atOnce: linesMax, perSecond: linesPerSecondMax };
    const eachGroup = { atOnce: linesOfTenantMax, perSecond: linesOfTenantPerSecondMax };
    this.#allowances = new SourceAllowances({ each, eachGroup, all, sourcesMax }, clock);
    this.#strangersAllowances = new SourceAllowances({ each, all, sourcesMax }, clock);
    const filters = {
      each: { atOnce: filterLinesOfOneMax, perSecond: filterLinesOfOnePerSecondMax },
      eachGroup: { atOnce: filterLinesOfTenantMax, perSecond: filterLinesOfTenantPerSecondMax },
      all: { atOnce: filterLinesMax, perSecond: filterLinesPerSecondMax },
    };
    this.#filterAllowances = new SourceAllowances({ ...filters, sourcesMax }, clock);
  }

  async start(): Promise<void> {}

  /** Writes how many lines were left out, if any were. */
  async stop(): Promise<void> {
    this.#cancel?.();
    this.#writeLeftOut();
  }

  /** See `AuditLog.findTrouble`. */
  findTrouble(): string | undefined {
    return this.#log.findTrouble();
  }

  /** Runs `task` and writes a line before it and one after it. If the broker dies meanwhile, the first line shows what may have changed. */
  async around<Result>(
    { caller, action, subject, describe }: AuditedOrder<Result>,
    task: () => Promise<Result>,
  ): Promise<Result> {
    this.#write({ ...toSubject(caller), action, outcome: "begun", ...subject });
    try {
      const result = await task();
      this.recordChange(caller, action, { ...subject, ...describe?.(result) });
      return result;
    } catch (error) {
      this.recordFailure(caller, { action, error }, subject);
      throw error;
    }
  }

  /** Writes that something changed in the store or on the chain. These lines need no limit: the change itself costs a write to the store or the chain. */
  recordChange(caller: Caller, action: string, subject: AuditSubject): void {
    this.#write({ ...toSubject(caller), action, outcome: "done", ...subject });
  }

  /** Writes that a change failed, or that its outcome is unknown. These lines are not limited, since the change may have been made. */
  recordFailure(
    caller: Caller,
    { action, error }: { readonly action: string; readonly error: unknown },
    subject: AuditSubject,
  ): void {
    const { code, message: reason } = toBrokerError(error);
    this.#write({ ...toSubject(caller), action, outcome: "failed", ...subject, code, reason });
  }

  /** Writes that a connection added or removed a filter. These lines are limited, because the change costs the client nothing. */
  recordFilterChange(caller: Caller, action: string, subject: AuditSubject): void {
    const line = { ...toSubject(caller), action, outcome: "done", ...subject } as const;
    this.#writeSome(caller, line, this.#filterAllowances);
  }

  /**
   * Writes all filters of a new stream. Over the limit, writes none of them, so that a client cannot hide one filter behind others. A STOMP subscription uses
   * the allowance of filters. A tail uses the allowance of reads: web pages that often reopen their tails must not use up the allowance of filters.
   */
  recordStream(caller: Caller, action: "subscribe" | "tail", { filters, ...subject }: AuditedStream): void {
    const texts = pack(filters);
    const allowances = action === "tail" ? this.#allowances : this.#filterAllowances;
    if (!this.#take(caller, allowances, texts.length)) return;
    const line = { ...toSubject(caller), action, outcome: "done", ...subject } as const;
    for (const topic of texts) this.#write(line, { topic });
  }

  /** Writes that somebody read something, or asked for a change that changed nothing; limited like refusals. */
  recordRead(caller: Caller, action: string, subject: AuditSubject = {}): void {
    this.#writeSome(caller, { ...toSubject(caller), action, outcome: "done", ...subject });
  }

  /** Writes that a call was refused because of the caller. Ignores other errors. */
  recordRefusal(
    caller: Caller,
    { action, error }: { readonly action: string; readonly error: unknown },
    subject: AuditSubject = {},
  ): void {
    if (!isRefusal(error)) return;
    const { code, message: reason } = error;
    const line = { ...toSubject(caller), action, outcome: "refused", ...subject, code, reason } as const;
    const isStranger = isBrokerError(error, "credentialRefused");
    this.#writeSome(caller, line, isStranger ? this.#strangersAllowances : this.#allowances);
  }

  /** Writes that a log-in failed, because its credential was wrong, missing or no longer valid. */
  recordFailedLogIn(principal: Principal, { address, protocol }: LogInOrigin, reason: string): void {
    const who = toSubject({ principal, address, protocol });
    const line = { ...who, action: "log in", outcome: "refused", reason } as const;
    this.#writeSome({ principal, address }, line, this.#strangersAllowances);
  }

  #writeSome(
    who: Pick<Caller, "principal" | "address">,
    line: Omit<AuditLine, "time">,
    allowances = this.#allowances,
  ): void {
    if (this.#take(who, allowances)) this.#write(line);
  }

  /** Whether the source may cause lines now. If it may not, counts `lines` as left out. */
  #take(
    { principal, address }: Pick<Caller, "principal" | "address">,
    allowances: SourceAllowances,
    lines = 1,
  ): boolean {
    const source =
      principal.kind === "known"
        ? { name: `principal ${principal.id}`, group: principal.tenant }
        : { name: toNetwork(address ?? "") };
    if (allowances.take(source, lines)) return true;
    this.#leftOut += lines;
    this.#cancel ??= this.#clock.after(leftOutAfterMs, () => this.#writeLeftOut());
    return false;
  }

  #writeLeftOut(): void {
    this.#cancel = undefined;
    const count = this.#leftOut;
    this.#leftOut = 0;
    const reason = "too many refusals, reads and changes of filters came at once";
    if (count > 0) this.#write({ action: "audit", outcome: "left out", count, reason });
  }

  /** Shortens the long texts of `line`, except its rules. Does not shorten the texts of `whole`. */
  #write(line: Omit<AuditLine, "time">, whole: Pick<AuditLine, "topic"> = {}): void {
    const { rules } = line;
    const entries = Object.entries(line).map(([name, value]) => [name, typeof value === "string" ? cut(value) : value]);
    const short = Object.fromEntries(entries) as Omit<AuditLine, "time">; // `cut` changes no field's name.
    this.#log.write({ ...short, ...(rules !== undefined && { rules }), ...whole, time: this.#clock.now() });
  }
}

/** Whether the caller lacks a valid credential or a right, or is over a quota. */
function isRefusal(error: unknown): error is BrokerError {
  return refusals.some((name) => isBrokerError(error, name));
}

function toSubject({
  principal,
  address,
  protocol,
}: Pick<Caller, "principal" | "address"> & { readonly protocol: string }) {
  if (principal.kind === "rejected") return { address, protocol };
  const { tenant, keyId } = principal.kind === "known" ? principal : {};
  return { principal: ownerOf(principal), tenant, keyId, address, protocol };
}

function cut(text: string): string {
  return text.length <= fieldCharactersMax ? text : `${text.slice(0, fieldCharactersMax)}…`;
}

/** Joins the filters into few texts, separated by line feeds: no filter contains one. */
function pack(filters: readonly string[]): readonly string[] {
  const texts: string[] = [];
  for (const filter of filters) {
    const last = texts.at(-1);
    if (last === undefined || last.length + filter.length >= filtersCharactersMax) texts.push(filter);
    else texts[texts.length - 1] = `${last}\n${filter}`;
  }
  return texts;
}
