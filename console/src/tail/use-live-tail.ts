import { useEffect, useMemo, useSyncExternalStore } from "react";
import { useSession, useSessionState } from "../broker/session-context.tsx";
import { LiveTail, type TailQuery } from "./live-tail.ts";

const onFrame = (action: () => void): void => void requestAnimationFrame(action);

/**
 * A tail that runs while its component is shown and the broker accepts the caller, and keeps the newest `eventsMax` events. A change of the query, or a new
 * client (another key or another log-in), starts a new tail.
 */
export function useLiveTail({ topic, after, filter, groupId }: TailQuery, eventsMax?: number): LiveTail {
  const session = useSession();
  const { tailer, isKeyWanted } = useSessionState();
  const tail = useMemo(
    () => new LiveTail(tailer, { topic, after, filter, groupId }, { onFrame, eventsMax }),
    [tailer, topic, after, filter, groupId, eventsMax],
  );
  useSyncExternalStore(tail.subscribe, tail.version);
  useEffect(() => {
    // The connection of a tail outlives a log-out in another tab.
    if (isKeyWanted) return tail.end();
    tail.resume();
    return () => tail.stop();
  }, [tail, isKeyWanted]);
  const { status } = tail;
  useEffect(() => {
    if (status.name === "failed") session.noteFailure(status.error);
  }, [session, status]);
  return tail;
}
