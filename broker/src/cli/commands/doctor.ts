import { existsSync } from "node:fs";
import { type Readiness, Stele, SteleError } from "@stele/client";
import type { Command } from "commander";
import type { CheckedSettings } from "../broker-settings.ts";
import type { Session } from "../connection.ts";
import { examineAddress } from "../doctor/examine-address.ts";
import { examinePorts } from "../doctor/examine-ports.ts";
import { examineDisk, examineSettings } from "../doctor/examine-settings.ts";
import type { Finding } from "../doctor/finding.ts";
import type { BrokerAddress } from "../find-broker.ts";
import { type CliIo, CommandFailed } from "../io.ts";
import type { Column } from "../output.ts";
import { withTimeLimit } from "../time-limit.ts";
import { define } from "./define.ts";

interface DoctorFlags {
  readonly dataDir?: string;
  readonly config?: string;
}

const columns: readonly Column<Finding>[] = [
  { title: "CHECK", of: ({ check }) => check },
  { title: "STATUS", of: ({ status }) => status },
  { title: "DETAIL", of: ({ detail, advice }) => (advice === undefined ? detail : `${detail}: ${advice}`) },
];

export function defineDoctor(program: Command, io: CliIo): void {
  define<DoctorFlags>(program, io, {
    usage: "doctor",
    summary:
      "Checks a broker: whether it answers, its settings, database, groups, clock, rights, ports and disk; and says what to do.",
    examples: ["stele doctor", "stele doctor --config stele.json", "stele doctor --data-dir ./data -o json"],
    flags: (command) =>
      command
        .option("--config <file>", "config file of a broker on this machine, to check it with its environment")
        .option("--data-dir <folder>", "data folder on this machine, to check its disk (default: that of the config)"),
    run: async (session, { flags }) => {
      const findings: Finding[] = [];
      for await (const finding of examine(session, flags)) findings.push(finding);
      await session.output.rows(findings, columns);
      const failed = findings.filter(({ status }) => status === "failed").length;
      if (failed > 0) throw new CommandFailed(`${failed} of ${findings.length} checks failed`);
    },
  });
}

async function* examine({ broker, io, signal }: Session, flags: DoctorFlags): AsyncGenerator<Finding> {
  const { findings, settings } = await examineSettings(io, flags.config);
  yield* findings;
  const address = findAddress(broker, settings);
  const folder = flags.dataDir ?? findFolder(settings);
  if (folder !== undefined) yield examineDisk(folder);
  const { url } = address;
  const answers = await examineAddress(url, signal);
  yield* answers;
  if (answers.some(({ status }) => status === "failed")) return;
  // A check reports why its call failed. A pause that the broker asks for could outlast the check and hide that reason.
  const stele = new Stele({ ...address, retries: 0 });
  const { findings: groups, listeners } = await inTime(signal, (ending) => examineGroups(stele, ending));
  yield* groups;
  yield* await examinePorts({ listeners, settings, url, signal });
  const attempt = (probe: Probe, task: (ending: AbortSignal) => Promise<unknown>): Promise<Finding> =>
    tried(probe, () => inTime(signal, task));
  yield await attempt({ check: "topics", detail: "the broker lists topics" }, (ending) =>
    stele.list({ signal: ending }),
  );
  yield await attempt({ check: "tail", detail: "this caller may watch events" }, (ending) =>
    openAndClose(stele, ending),
  );
  yield await attempt(adminProbe, (ending) => stele.admin.nodes({ signal: ending }).next());
}

/** The broker of the settings, unless the user named another one. */
function findAddress(given: BrokerAddress, settings: CheckedSettings | undefined): BrokerAddress {
  if (!given.isDefault || settings?.url === undefined) return given;
  return { ...given, url: settings.url, adminUrl: given.adminUrl ?? settings.adminUrl };
}

/** Time limit of each check, in milliseconds: a broker or a proxy that hangs must not hide the findings of the other checks. */
const checkMsMax = 10_000;

/** Runs the calls of one check. @throws SteleError if they do not end in time. */
function inTime<Result>(signal: AbortSignal, task: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
  const toReason = (): SteleError => new SteleError(`no success within ${checkMsMax / 1_000} s`, { retry: true });
  return withTimeLimit({ signal, ms: checkMsMax, toReason }, task);
}

/** The data folder of the settings, if a broker has created it. */
function findFolder(settings: CheckedSettings | undefined): string | undefined {
  return settings !== undefined && existsSync(settings.dataDir) ? settings.dataDir : undefined;
}

async function openAndClose(stele: Stele, signal: AbortSignal): Promise<void> {
  const tail = stele.subscribe("stele/doctor", { signal });
  await tail.opened();
  tail.close();
}

interface ExaminedGroups {
  readonly findings: readonly Finding[];
  readonly listeners?: Readiness["listeners"];
}

async function examineGroups(stele: Stele, signal: AbortSignal): Promise<ExaminedGroups> {
  try {
    const { status, node, groups = [], listeners } = await stele.readiness({ signal });
    const whole: Finding = {
      check: "ready",
      status: status === "ready" ? "ok" : status === "partly ready" ? "warning" : "failed",
      detail: node?.reason === undefined ? `the broker is ${status}` : `the broker is ${status}: ${node.reason}`,
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
    return { findings: [whole, ...each], listeners };
  } catch (error) {
    return { findings: [toFinding("ready", error, "failed")] };
  }
}

/** A call to try, and the findings that it can give. */
interface Probe {
  readonly check: string;
  /** The finding's detail on success. */
  readonly detail: string;
  /** The finding's status on failure; `failed` unless given. */
  readonly otherwise?: Finding["status"];
  /** Detail and advice if the broker serves nothing at the address. */
  readonly absent?: Pick<Finding, "detail" | "advice">;
}

/** Tries the admin API. A failure is only a warning: most callers do not need that API. */
const adminProbe: Probe = {
  check: "admin",
  detail: "this caller may use the admin API",
  otherwise: "warning",
  absent: { detail: "there is no admin API at this address", advice: "name the operators' port with --admin-url" },
};

async function tried(probe: Probe, task: () => Promise<unknown>): Promise<Finding> {
  const { check, detail, otherwise = "failed", absent } = probe;
  try {
    await task();
    return { check, status: "ok", detail };
  } catch (error) {
    const finding = toFinding(check, error, otherwise);
    return error instanceof SteleError && error.code === parameterInvalid ? { ...finding, ...absent } : finding;
  }
}

function toFinding(check: string, error: unknown, status: Finding["status"]): Finding {
  if (!(error instanceof SteleError)) throw error;
  const isDenied = error.code === accessDenied; // Not every caller needs every right.
  return { check, status: isDenied ? "warning" : status, detail: error.message, advice: toAdvice(error) };
}

const credentialRefused = 100701;
const accessDenied = 100702;
/** The broker's error code at an address where it serves nothing. */
const parameterInvalid = 200001;

function toAdvice({ code, hints }: SteleError): string | undefined {
  if (hints.length > 0) return hints.join("; ");
  if (code === credentialRefused) return "give a valid key with --key-file or a context";
  if (code === accessDenied) return "ask for a role that allows it";
  return undefined;
}
