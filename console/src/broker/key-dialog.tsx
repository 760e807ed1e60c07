import type { FormEvent, ReactNode } from "react";
import { useLocation, useSearch } from "wouter";
import { Dialog } from "../ui/dialog.tsx";
import { logIns, toLogInAddress } from "./addresses.ts";
import { keepFragment } from "./kept-fragment.ts";
import { keyPattern } from "./session.ts";
import { useSession, useSessionState } from "./session-context.tsx";

/** Asks for a key or a log-in by an identity provider, once the broker requires one. A key stays in this tab. */
export function KeyDialog(): ReactNode {
  const session = useSession();
  const { isKeyWanted, hasKey } = useSessionState();
  if (!isKeyWanted) return null;
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const key = new FormData(event.currentTarget).get("key");
    if (typeof key !== "string" || key === "") return;
    session.setKey(key.trim());
  };
  return (
    <Dialog title={logIns.length === 0 ? "This broker asks for a key" : "Log in"} onClose={() => {}}>
      <LogInLinks />
      <form onSubmit={submit}>
        {hasKey ? (
          <p role="alert" className="failure">
            The broker refused the key: it is wrong, revoked or expired.
          </p>
        ) : null}
        <label>
          Key or token
          <input
            name="key"
            type="password"
            required
            autoComplete="off"
            pattern={String.raw`\s*${keyPattern}\s*`}
            title="Letters, digits and signs of ASCII, without spaces"
          />
        </label>
        <p className="quiet-text">
          The key stays in this tab until you close it. An operator creates a key with: stele key create
        </p>
        <div className="bar">
          <button type="submit">Continue</button>
        </div>
      </form>
    </Dialog>
  );
}

/** A log-in leaves the page and returns to the current view. A click drops the key of the tab, because a key takes precedence over a log-in. */
function LogInLinks(): ReactNode {
  const session = useSession();
  // The browser's Back can change the view below the dialog, and the addresses of the links name the view.
  useLocation();
  useSearch();
  if (logIns.length === 0) return null;
  const leave = (): void => {
    session.setKey(undefined);
    keepFragment();
  };
  return (
    <div className="log-ins">
      {logIns.map((name) => (
        <a key={name} className="log-in" href={toLogInAddress(name)} onClick={leave}>
          Log in with {name}
        </a>
      ))}
      <p className="quiet-text">Or give a key:</p>
    </div>
  );
}
