/** What waits for each signal. */
const actionsBySignal = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Runs an action once the signal is aborted, until the function that it returns forgets it. A signal has one listener for all actions: Node warns of more
 * than ten, and many calls may share a signal.
 */
export function onAbort(signal: AbortSignal, action: () => void): () => void {
  const actions = actionsBySignal.get(signal) ?? listenTo(signal);
  actions.add(action);
  return () => void actions.delete(action);
}

function listenTo(signal: AbortSignal): Set<() => void> {
  const actions = new Set<() => void>();
  actionsBySignal.set(signal, actions);
  signal.addEventListener("abort", () => actions.forEach((action) => action()), { once: true });
  return actions;
}
