import type { Stele } from "@stele/client";
import { createContext, use, useSyncExternalStore } from "react";
import type { Session, SessionState } from "./session.ts";

const context = createContext<Session | undefined>(undefined);

export const SessionProvider = context;

export function useSession(): Session {
  const session = use(context);
  if (session === undefined) throw new Error("there is no session");
  return session;
}

export function useSessionState(): SessionState {
  const session = useSession();
  return useSyncExternalStore(session.subscribe, () => session.state);
}

/** The client for calls. A change of the key gives a new client. */
export function useStele(): Stele {
  return useSessionState().stele;
}
