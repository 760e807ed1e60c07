import { statfsSync } from "node:fs";
import { type Stele, SteleError } from "@stele/client";
import type { Command } from "commander";
import type { Session } from "../connection.ts";
import { type CliIo, CommandFailed } from "../io.ts";
import type { Column } from "../output.ts";
import { define } from "./define.ts";

interface DoctorFlags {
  readonly dataDir?: string;
}

/** What one check found. */
interface Finding {
  readonly check: string;
  readonly status: "ok" | "warning" | "failed";
  readonly detail: string;
  /** What to do. */
  readonly advice?: string | undefined;
}

/** Clocks that are further apart make tokens, signatures and times of the tail wrong. */
const clockSkewMsMax = 5_000;
/** Free space of the data folder below which the doctor warns, in bytes. */
const freeBytesMin = 1024 ** 3;

const columns: readonly Column<Finding>[] = [
  { title: "CHECK", of: ({ check }) => check },
  { title: "STATUS", of: ({ status }) => status },
  { title: "DETAIL", of: ({ detail, advice }) => (advice === undefined ? detail : `${detail}: ${advice}`) },
];

export function defineDoctor(program: Command, io: CliIo): void {
  define<DoctorFlags>(program, io, {
    usage: "doctor",
    summary:
      "Checks a broker from outside: whether it answers, its groups, clock, rights and disk; and says what to do.",
    examples: ["stele doctor", "stele doctor --data-dir ./data -o json"],
    flags: (command) => command.option("--data-dir <folder>", "data folder on this machine, to look at its disk"),
    run: async (session, { flags }) => {
      const findings: Finding[] = [];
      for await (const finding of examine(session, flags)) findings.push(finding);
      await session.output.rows(findings, columns);
      const failed = findings.filter(({ status }) => status === "failed").length;
      if (failed > 0) throw new CommandFailed(`${failed} of ${findings.length} checks failed`);
    },
  });
}

async function* examine({ stele, url, signal }: Session, { dataDir }: DoctorFlags): AsyncGenerator<Finding> {
  const address = await examineAddress(url, signal);
  yield* address;
  if (address.some(({ status }) => status === "failed")) return;
  yield* await examineGroups(stele, signal);
  yield await tried({ check: "topics", detail: "the broker lists topics" }, () => stele.list({ signal }));
  yield await tried({ check: "tail", detail: "events can be watched" }, () => openAndClose(stele, signal));
  yield await tried(adminTrial, () => stele.admin.nodes({ signal }).next());
  if (dataDir !== undefined) yield examineDisk(dataDir);
}

async function openAndClose(stele: Stele, signal: AbortSignal): Promise<void> {
  const tail = stele.subscribe("stele/doctor", { signal });
  await tail.opened();
  tail.close();
}

/** Whether something answers, and what its clock says. */
async function examineAddress(url: string, signal: AbortSignal): Promise<readonly Finding[]> {
  try {
    const askedAt = Date.now();
    const answer = await fetch(`${url.replace(/\/+$/, "")}/health/live`, { signal });
    await answer.arrayBuffer();
    const live: Finding = { check: "address", status: "ok", detail: `${url} answers` };
    if (!answer.ok) {
      const advice = "does the address lead to a broker, with its context segment?";
      return [{ ...live, status: "failed", detail: `${url} answers with status ${answer.status}`, advice }];
    }
    return [live, ...examineClock(answer.headers.get("date"), { askedAt, answeredAt: Date.now() })];
  } catch {
    signal.throwIfAborted();
    const advice = "start the broker with stele start, or name another address with --url";
    return [{ check: "address", status: "failed", detail: `${url} does not answer`, advice }];
  }
}

/** The broker wrote the header between the two times; it has whole seconds. */
function examineClock(
  date: string | null,
  { askedAt, answeredAt }: { readonly askedAt: number; readonly answeredAt: number },
): readonly Finding[] {
  const time = Date.parse(date ?? "");
  const skewMs = Math.max(0, askedAt - 1_000 - time, time - answeredAt);
  if (Number.isNaN(skewMs)) return [];
  const isClose = skewMs <= clockSkewMsMax;
  const detail = isClose
    ? "the clocks agree"
    : `the broker's clock is ${Math.round(skewMs / 1_000)} s off this machine's`;
  const advice = isClose ? undefined : "let both synchronise their clocks (NTP)";
  return [{ check: "clock", status: isClose ? "ok" : "warning", detail, advice }];
}

async function examineGroups(stele: Stele, signal: AbortSignal): Promise<readonly Finding[]> {
  try {
    const { status, groups = [] } = await stele.readiness({ signal });
    const whole: Finding = {
      check: "ready",
      status: status === "ready" ? "ok" : status === "partly ready" ? "warning" : "failed",
      detail: `the broker is ${status}`,
    };
    const each = groups.map(({ groupId, ready, reason, warning, indexedBlock, headBlock = indexedBlock }): Finding => {
      const trouble = reason ?? warning;
      const state = ready ? (warning === undefined ? "ok" : "warning") : "failed";
      return {
        check: `group ${groupId}`,
        status: state,
        detail: trouble ?? `block ${indexedBlock} of ${headBlock} is indexed`,
      };
    });
    return [whole, ...each];
  } catch (error) {
    return [toFinding("ready", error, "failed")];
  }
}

interface Trial {
  readonly check: string;
  /** What it says of success. */
  readonly detail: string;
  readonly otherwise?: Finding["status"];
}

/** Most callers need no pages for operators. */
const adminTrial: Trial = { check: "admin", detail: "this caller may use the admin API", otherwise: "warning" };

async function tried({ check, detail, otherwise = "failed" }: Trial, task: () => Promise<unknown>): Promise<Finding> {
  try {
    await task();
    return { check, status: "ok", detail };
  } catch (error) {
    return toFinding(check, error, otherwise);
  }
}

function toFinding(check: string, error: unknown, status: Finding["status"]): Finding {
  if (!(error instanceof SteleError)) throw error;
  const isDenied = error.code === accessDenied; // Not every caller needs every right.
  return { check, status: isDenied ? "warning" : status, detail: error.message, advice: toAdvice(error) };
}

const credentialRefused = 100701;
const accessDenied = 100702;

function toAdvice({ code, hints }: SteleError): string | undefined {
  if (hints.length > 0) return hints.join("; ");
  if (code === credentialRefused) return "give a valid key with --key-file or a context";
  if (code === accessDenied) return "ask for a role that allows it";
  return undefined;
}

function examineDisk(dataDir: string): Finding {
  try {
    const { bavail, bsize } = statfsSync(dataDir);
    const free = bavail * bsize;
    const detail = `${(free / 1024 ** 3).toFixed(1)} GiB are free in ${dataDir}`;
    if (free >= freeBytesMin) return { check: "disk", status: "ok", detail };
    return { check: "disk", status: "warning", detail, advice: "make room: a broker whose disk is full ends" };
  } catch {
    return {
      check: "disk",
      status: "failed",
      detail: `${dataDir} cannot be read`,
      advice: "name the broker's data folder",
    };
  }
}
