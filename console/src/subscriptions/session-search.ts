import type { SessionSearch, Stele } from "@stele/client";
import { take, type Taken } from "../lib/take.ts";
import { shownMax } from "./search.ts";

type Sessions = ReturnType<Stele["admin"]["sessions"]>;
export type ListedSession = Sessions extends AsyncGenerator<infer Item> ? Item : never;

export const protocols = { MQTT: "MQTT", STOMP: "STOMP", Tail: "Tail" };
export const connections = { true: "connected", false: "disconnected" };

export function readSessionSearch(search: URLSearchParams): SessionSearch {
  const [connected, lagMin] = [search.get("connected"), search.get("lagMin")];
  return {
    kind: search.get("kind") ?? undefined,
    connected: connected === null ? undefined : connected === "true",
    owner: search.get("owner") ?? undefined,
    lagMin: lagMin === null ? undefined : Number(lagMin),
  };
}

export function findSessions(stele: Stele, search: SessionSearch, signal: AbortSignal): Promise<Taken<ListedSession>> {
  return take(stele.admin.sessions(search, { signal, limit: shownMax + 1 }), shownMax);
}
