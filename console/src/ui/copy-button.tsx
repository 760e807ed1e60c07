import { type ReactNode, useState } from "react";

const shownMs = 1500;

export interface CopyButtonProps {
  readonly text: string;
  readonly label?: string;
  /** What the button copies. For screen readers, if several buttons have the same label. */
  readonly of?: string;
}

export function CopyButton({ text, label = "Copy", of }: CopyButtonProps): ReactNode {
  const [isCopied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    await copyText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), shownMs);
  };
  return (
    <button type="button" className="quiet" onClick={() => void copy()}>
      <span aria-live="polite">{isCopied ? "Copied" : label}</span>
      {of === undefined ? null : <span className="unseen"> {of}</span>}
    </button>
  );
}

/** Browsers give only secure pages access to the clipboard. Over plain HTTP, this copies a selection instead. */
async function copyText(text: string): Promise<void> {
  if (window.isSecureContext) return navigator.clipboard.writeText(text);
  const area = Object.assign(document.createElement("textarea"), { value: text });
  // A modal dialog makes everything outside of it inert.
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}
