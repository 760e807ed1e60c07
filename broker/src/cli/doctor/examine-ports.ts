import type { Readiness } from "@stele/client";
import { loopbackOf } from "../../lib/host.ts";
import type { CheckedSettings, Place } from "../broker-settings.ts";
import { type Finding, findConnectionFailure } from "./finding.ts";

/** Sources that may know the MQTT and STOMP ports of a broker, and how to reach them. */
export interface PortSources {
  /** The listeners that the broker reports; undefined if it reports them only to admins. */
  readonly listeners: Readiness["listeners"];
  /** Settings of a broker on this machine. */
  readonly settings: CheckedSettings | undefined;
  /** Base URL of the broker. */
  readonly url: string;
  readonly signal: AbortSignal;
}

const protocol = /^(mqtt|stomp)/;
const loopback = /^(127\.|::1$|localhost$)/;

/** Checks whether the ports for MQTT and STOMP accept connections. */
export async function examinePorts(sources: PortSources): Promise<readonly Finding[]> {
  const { listeners, settings } = sources;
  const served = listeners?.flatMap(toPlace);
  const places = served ?? settings?.ports;
  if (places === undefined) {
    const advice = "give an admin's key, or name the broker's config file by --config";
    return [{ check: "ports", status: "warning", detail: "the ports for MQTT and STOMP are not known", advice }];
  }
  const missing = settings?.ports.filter(({ name }) => served?.every((place) => place.name !== name)) ?? [];
  const findings = [
    ...(await Promise.all(places.map((place) => examinePort(place, sources)))),
    ...(served === undefined ? [] : missing.map(toMissing)),
  ];
  if (findings.length > 0) return findings;
  return [{ check: "ports", status: "ok", detail: "the broker serves neither MQTT nor STOMP" }];
}

async function examinePort({ name, host, port }: Place, { url, signal }: PortSources): Promise<Finding> {
  const check = `port ${name}`;
  const own = withoutBrackets(new URL(url).hostname);
  const near = loopbackOf(host) === undefined ? host : own;
  const detail = `port ${port} of ${near}`;
  if (loopback.test(near) && !loopback.test(own)) {
    const advice = "set host to an address that clients reach";
    return { check, status: "warning", detail: `${detail} is for the broker's own machine only`, advice };
  }
  const failure = await findConnectionFailure({ host: near, port }, signal);
  if (failure === undefined) return { check, status: "ok", detail: `${detail} accepts connections` };
  const advice = "let firewalls and proxies pass this port, and see what the broker logged when it started";
  return { check, status: "failed", detail: `${detail}: ${failure}`, advice };
}

/** A port that the settings name but the broker does not serve. A broker starts without a default port that another program uses. */
function toMissing({ name, port }: Place): Finding {
  const detail = `port ${port} is not served`;
  const advice = "free the port or set another one, and see what the broker logged when it started";
  return { check: `port ${name}`, status: "warning", detail, advice };
}

function toPlace({ name, address }: { readonly name: string; readonly address: string }): readonly Place[] {
  if (!protocol.test(address) || !URL.canParse(address)) return [];
  const { hostname, port } = new URL(address);
  return [{ name, host: withoutBrackets(hostname), port: Number(port) }];
}

function withoutBrackets(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, "$1");
}
