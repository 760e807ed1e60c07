import { parameterError } from "../shared/failure.ts";
import { type ClientFrame, findHeader, type Headers, type Version, versions } from "./codec/frame.ts";
import { heartBeatMsMax } from "./limits.ts";

/** The parameters of a CONNECT, as the broker grants them. */
export interface Accepted {
  readonly version: Version;
  /** Milliseconds between heart-beats in either direction; 0 for none. */
  readonly heartBeat: { readonly sentMs: number; readonly receivedMs: number };
  /** Headers of the CONNECTED. */
  readonly headers: Headers;
}

export interface AcceptOptions {
  /** Interval of heart-beats in both directions that the broker offers, in milliseconds; 0 for none. */
  readonly heartBeatMs: number;
  /** Identifier of the connection. */
  readonly session: string;
  /** Name and version of the broker. */
  readonly server: string;
}

/** @throws VersionError, BrokerError 200001 for an invalid `heart-beat`. */
export function acceptConnect({ headers }: ClientFrame, { heartBeatMs, session, server }: AcceptOptions): Accepted {
  const version = negotiate(findHeader(headers, "accept-version"));
  const asked = version === "1.0" ? [0, 0] : parseHeartBeat(findHeader(headers, "heart-beat") ?? "0,0");
  const [clientSendsMs = 0, clientWantsMs = 0] = asked;
  return {
    version,
    heartBeat: { sentMs: agree(heartBeatMs, clientWantsMs), receivedMs: agree(clientSendsMs, heartBeatMs) },
    headers: [
      ["version", version],
      ...(version === "1.0" ? [] : [["heart-beat", `${heartBeatMs},${heartBeatMs}`] as const]),
      ["session", session],
      ["server", server],
    ],
  };
}

/** The highest version that both have; a client that names none speaks 1.0 ("Protocol Negotiation"). */
function negotiate(accepted: string | undefined): Version {
  if (accepted === undefined) return "1.0";
  const names = accepted.split(",").map((name) => name.trim());
  const version = versions.findLast((known) => names.includes(known));
  if (version === undefined) throw new VersionError();
  return version;
}

/** The client speaks no version that the broker speaks. */
export class VersionError extends Error {
  override readonly name = "VersionError";

  constructor() {
    super(`Supported protocol versions are ${versions.join(" ")}`);
  }
}

function parseHeartBeat(text: string): readonly number[] {
  const found = /^(\d{1,15}),(\d{1,15})$/.exec(text);
  if (found === null) throw parameterError('"heart-beat" is two numbers of milliseconds with a comma between');
  return found.slice(1).map((ms) => Math.min(Number(ms), heartBeatMsMax));
}

/** The interval that one side offers and the other wants, in milliseconds; 0 for none ("Heart-beating"). */
function agree(sendsMs: number, wantsMs: number): number {
  return sendsMs === 0 || wantsMs === 0 ? 0 : Math.max(sendsMs, wantsMs);
}
