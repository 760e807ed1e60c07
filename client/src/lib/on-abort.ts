/** For each signal, the actions to run when it is aborted. */
const actionsBySignal = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Runs an action when the signal is aborted. The returned function cancels the action. A signal gets one listener for all actions: many calls may share a
 * signal, and Node warns about more than ten listeners.
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
