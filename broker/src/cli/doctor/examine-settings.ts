import { existsSync, statfsSync } from "node:fs";
import type { CheckedSettings } from "../broker-settings.ts";
import type { CliIo } from "../io.ts";
import { type Finding, findConnectionFailure } from "./finding.ts";

/** Free space of the data folder below which the doctor warns, in bytes. */
const freeBytesMin = 1024 ** 3;
/** Variables for client commands: they do not show that a broker is on this machine. */
const clientVariables: ReadonlySet<string> = new Set(["STELE_URL", "STELE_KEY"]);

/** Findings about the settings, and the settings themselves if they are valid. */
export interface ExaminedSettings {
  readonly findings: readonly Finding[];
  readonly settings: CheckedSettings | undefined;
}

/** Checks the settings of a broker on this machine, if there are any: its config file and the environment. */
export async function examineSettings(io: CliIo, configFile: string | undefined): Promise<ExaminedSettings> {
  const { env, signal } = io;
  const isSet = Object.keys(env).some((name) => name.startsWith("STELE_") && !clientVariables.has(name));
  if (configFile === undefined && !isSet) return { findings: [], settings: undefined };
  const outcome = await (await io.loadSettings()).check(configFile, env);
  if (outcome.status === "refused") {
    const advice = "correct it; stele start --check-config shows every setting";
    const refused: Finding = { check: "config", status: "failed", detail: outcome.problems.join("; "), advice };
    return { findings: [refused], settings: undefined };
  }
  const { settings } = outcome;
  const config: Finding = { check: "config", status: "ok", detail: "the config file and the environment are valid" };
  const findings = [config, await examineDatabase(settings, signal)];
  const { adminUrl } = settings;
  if (adminUrl === undefined || URL.canParse(adminUrl)) return { findings, settings };
  const address: Finding = {
    check: "admin address",
    status: "failed",
    detail: `${adminUrl} is not a URL`,
    advice: "correct the setting adminHost",
  };
  return { findings: [...findings, address], settings: { ...settings, adminUrl: undefined } };
}

async function examineDatabase({ database, dataDir }: CheckedSettings, signal: AbortSignal): Promise<Finding> {
  const check = "database";
  if (database === undefined) {
    if (existsSync(dataDir)) return { check, status: "ok", detail: `SQLite in ${dataDir}` };
    const advice = "start the broker once, or correct the setting dataDir";
    return { check, status: "warning", detail: `SQLite in ${dataDir}, which does not exist`, advice };
  }
  const { name, place } = database;
  if (place === undefined) return { check, status: "ok", detail: `${name}, by a socket of this machine` };
  const failure = await findConnectionFailure(place, signal);
  if (failure === undefined) return { check, status: "ok", detail: `${name} accepts connections` };
  const advice = "start the database, let this machine connect, or correct the setting databaseUrl";
  return { check, status: "failed", detail: `${name}: ${failure}`, advice };
}

/** Checks the free space on the disk of a data folder. */
export function examineDisk(dataDir: string): Finding {
  try {
    const { bavail, bsize } = statfsSync(dataDir);
    const free = bavail * bsize;
    const detail = `${(free / 1024 ** 3).toFixed(1)} GiB are free in ${dataDir}`;
    if (free >= freeBytesMin) return { check: "disk", status: "ok", detail };
    return { check: "disk", status: "warning", detail, advice: "free some space: a broker ends when its disk is full" };
  } catch {
    const advice = "name the broker's data folder";
    return { check: "disk", status: "failed", detail: `${dataDir} cannot be read`, advice };
  }
}
