import { type ReactNode, useState } from "react";

const shownMs = 1500;

export interface CopyButtonProps {
  /** As a function if it takes long to make: called only when somebody copies it. */
  readonly text: string | (() => string);
  readonly label?: string;
  /** What the button copies. For screen readers, if several buttons have the same label. */
  readonly of?: string;
}

export function CopyButton({ text, label = "Copy", of }: CopyButtonProps): ReactNode {
  const [outcome, setOutcome] = useState<string>();
  const copy = async (): Promise<void> => {
    setOutcome((await copyText(typeof text === "string" ? text : text())) ? "Copied" : "Not copied");
    setTimeout(() => setOutcome(undefined), shownMs);
  };
  return (
    <button type="button" className="quiet" onClick={() => void copy()}>
      <span aria-live="polite">{outcome ?? label}</span>
      {of === undefined ? null : <span className="unseen"> {of}</span>}
    </button>
  );
}

/** Copies a selection instead if the browser gives no access to the clipboard: over plain HTTP, or because its user or a policy forbids it. */
async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelection(text);
  }
}

function copySelection(text: string): boolean {
  const focused = document.activeElement;
  const area = Object.assign(document.createElement("textarea"), { value: text });
  // A modal dialog makes everything outside of it inert.
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return isCopied;
}
