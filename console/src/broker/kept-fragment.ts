import { consolePath } from "./addresses.ts";
import { findStorage } from "./session.ts";

/** Name under which this tab's storage keeps the address of the page. */
const storageName = `stele-fragment:${consolePath}`;

/** Keeps the fragment of the address during a log-in, which returns to the path and the query alone. No server may get a fragment: it may be a draft. */
export function keepFragment(): void {
  findStorage()?.setItem(storageName, location.href);
}

/** Restores the fragment after a log-in that returned to the same view. */
export function restoreFragment(): void {
  const storage = findStorage();
  const kept = storage?.getItem(storageName) ?? "";
  storage?.removeItem(storageName);
  if (kept.startsWith(`${location.href}#`)) history.replaceState(null, "", kept);
}
