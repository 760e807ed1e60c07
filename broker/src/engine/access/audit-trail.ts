import { type BrokerError, isBrokerError, toBrokerError } from "@stele/wire";
import { SourceAllowances } from "../../lib/source-allowances.ts";
import type { AuditLine, AuditLog } from "../../ports/audit-log.ts";
import type { Clock } from "../../ports/clock.ts";
import { type Caller, ownerOf, type Principal } from "./caller.ts";
import { type LogInOrigin, toNetwork } from "./failed-log-ins.ts";

/** What a call was about. */
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

/** An order, and who gave it. */
export interface AuditedOrder<Result> {
  readonly caller: Caller;
  readonly action: string;
  readonly subject: AuditSubject;
  /** What the line about its end says beside that; nothing if left out. */
  readonly describe?: ((result: Result) => AuditSubject) | undefined;
}

/** Lines about refusals and looks of one principal or address that may come at once; each second brings one more. */
const linesOfOneMax = 20;
/** The same of all together. */
const linesMax = 200;
/** What all may write each second beyond that. */
const linesPerSecondMax = 50;
/** Lines about filters of sessions that one principal may have at once. */
const filterLinesOfOneMax = 200;
/** What it may have each second beyond that. */
const filterLinesOfOnePerSecondMax = 5;
/** Lines about filters of sessions that all may have at once. */
const filterLinesMax = 2_000;
/** What all may have each second beyond that. */
const filterLinesPerSecondMax = 100;
/** Principals and addresses whose lines are counted. */
const sourcesMax = 10_000;
/** Longest time, in milliseconds, until a line says how many were left out. */
export const leftOutAfterMs = 10_000;
/** Longest text of a field; a client may write megabytes. */
const fieldCharactersMax = 256;

/** The errors by which access refuses a caller. */
const refusals = ["credentialRefused", "accessDenied", "overQuota"] as const;

/** Writes down who changed something, who was refused, and what operators looked at. */
export class AuditTrail {
  readonly #log: AuditLog;
  readonly #clock: Clock;
  readonly #allowances: SourceAllowances;
  readonly #filterAllowances: SourceAllowances;
  #leftOut = 0;
  #cancel: (() => void) | undefined;

  constructor({ auditLog, clock }: { readonly auditLog: AuditLog; readonly clock: Clock }) {
    this.#log = auditLog;
    this.#clock = clock;
    const each = { atOnce: linesOfOneMax, perSecond: 1 };
    const all = { atOnce: linesMax, perSecond: linesPerSecondMax };
    this.#allowances = new SourceAllowances({ each, all, sourcesMax }, clock);
    const eachFilter = { atOnce: filterLinesOfOneMax, perSecond: filterLinesOfOnePerSecondMax };
    const allFilters = { atOnce: filterLinesMax, perSecond: filterLinesPerSecondMax };
    this.#filterAllowances = new SourceAllowances({ each: eachFilter, all: allFilters, sourcesMax }, clock);
  }

  async start(): Promise<void> {}

  /** Says how many lines were left out, if any were. */
  async stop(): Promise<void> {
    this.#cancel?.();
    this.#writeLeftOut();
  }

  /** As `AuditLog.findTrouble` says. */
  findTrouble(): string | undefined {
    return this.#log.findTrouble();
  }

  /** Carries out an order, which is written down before it begins: if the broker dies, that line shows what may have been changed. */
  async around<Result>(
    { caller, action, subject, describe }: AuditedOrder<Result>,
    task: () => Promise<Result>,
  ): Promise<Result> {
    this.#write({ ...toSubject(caller), action, outcome: "begun", ...subject });
    try {
      const result = await task();
      this.changed(caller, action, { ...subject, ...describe?.(result) });
      return result;
    } catch (error) {
      const { code, message: reason } = toBrokerError(error);
      this.#write({ ...toSubject(caller), action, outcome: "failed", ...subject, code, reason });
      throw error;
    }
  }

  /** Something was changed in the store or on the chain. It costs a write there, so the lines are not bounded. */
  changed(caller: Caller, action: string, subject: AuditSubject): void {
    this.#write({ ...toSubject(caller), action, outcome: "done", ...subject });
  }

  /** A connection has other filters. That costs its client nothing, so the lines are bounded. */
  filterChanged(caller: Caller, action: string, subject: AuditSubject): void {
    const line = { ...toSubject(caller), action, outcome: "done", ...subject } as const;
    this.#writeSome(caller, line, this.#filterAllowances);
  }

  /** Somebody looked at something, or asked for what was so before; bounded, as refusals are. */
  looked(caller: Caller, action: string, subject: AuditSubject = {}): void {
    this.#writeSome(caller, { ...toSubject(caller), action, outcome: "done", ...subject });
  }

  /** Records the failure of a call, if it is a refusal of the caller. */
  failed(
    caller: Caller,
    { action, error }: { readonly action: string; readonly error: unknown },
    subject: AuditSubject = {},
  ): void {
    if (!isRefusal(error)) return;
    const { code, message: reason } = error;
    this.#writeSome(caller, { ...toSubject(caller), action, outcome: "refused", ...subject, code, reason });
  }

  /** A credential was wrong, or is not valid any more. */
  logInFailed(principal: Principal, { address, protocol }: LogInOrigin, reason: string): void {
    const who = toSubject({ principal, address, protocol });
    this.#writeSome({ principal, address }, { ...who, action: "log in", outcome: "refused", reason });
  }

  #writeSome(
    { principal, address }: Pick<Caller, "principal" | "address">,
    line: Omit<AuditLine, "time">,
    allowances = this.#allowances,
  ): void {
    const source = principal.kind === "known" ? `principal ${principal.id}` : toNetwork(address ?? "");
    if (allowances.take(source)) return this.#write(line);
    this.#leftOut += 1;
    this.#cancel ??= this.#clock.after(leftOutAfterMs, () => this.#writeLeftOut());
  }

  #writeLeftOut(): void {
    this.#cancel = undefined;
    const count = this.#leftOut;
    this.#leftOut = 0;
    const reason = "too many refusals, looks and changes of filters came at once";
    if (count > 0) this.#write({ action: "audit", outcome: "left out", count, reason });
  }

  #write(line: Omit<AuditLine, "time">): void {
    const entries = Object.entries(line).map(([name, value]) => [name, typeof value === "string" ? cut(value) : value]);
    this.#log.write({ ...(Object.fromEntries(entries) as Omit<AuditLine, "time">), time: this.#clock.now() }); // The same fields.
  }
}

/** Whether the caller lacks a right or is over a quota. */
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
