import { type KeyboardEvent, type ReactNode, useEffect, useId, useState } from "react";
import { useLocation } from "wouter";
import { Dialog } from "../ui/dialog.tsx";
import { findDestinations } from "./destinations.ts";

/** Ctrl+K or ⌘K: goes to a view, a topic, an event or a subscription by its name. */
export function Palette(): ReactNode {
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    const onKey = (event: globalThis.KeyboardEvent): void => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      setOpen(true);
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  return (
    <>
      <button type="button" className="quiet" onClick={() => setOpen(true)} aria-keyshortcuts="Control+K">
        Go to … <kbd>Ctrl K</kbd>
      </button>
      {isOpen ? <PaletteDialog onClose={() => setOpen(false)} /> : null}
    </>
  );
}

const steps: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1 };

function PaletteDialog({ onClose }: { readonly onClose: () => void }): ReactNode {
  const [text, setText] = useState("");
  const [index, setIndex] = useState(0);
  const [, navigate] = useLocation();
  const id = useId();
  const found = findDestinations(text);
  const go = (address: string | undefined): void => {
    if (address === undefined) return;
    onClose();
    navigate(address);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = steps[event.key];
    if (event.key === "Enter") {
      event.preventDefault();
      go(found[index]?.address);
    } else if (step !== undefined && found.length > 0) {
      event.preventDefault();
      const next = (index + step + found.length) % found.length;
      setIndex(next);
      // The focus stays in the field, so the browser does not scroll to the selected destination.
      document.getElementById(`${id}-${next}`)?.scrollIntoView({ block: "nearest" });
    }
  };
  return (
    <Dialog title="Go to" onClose={onClose}>
      <input
        role="combobox"
        aria-label="View, topic, event or subscription"
        aria-expanded="true"
        aria-controls={id}
        aria-activedescendant={found.length === 0 ? undefined : `${id}-${index}`}
        value={text}
        onChange={({ target }) => {
          setText(target.value);
          setIndex(0);
        }}
        onKeyDown={onKeyDown}
        placeholder="orders/#, an eventId, an identifier, a view"
        spellCheck={false}
        autoComplete="off"
      />
      <div role="listbox" id={id} aria-label="Destinations" tabIndex={-1} className="palette">
        {found.map(({ name, address }, place) => (
          <div
            key={address}
            id={`${id}-${place}`}
            role="option"
            aria-selected={place === index}
            tabIndex={-1}
            onClick={() => go(address)}
            onKeyDown={onKeyDown}
          >
            {name}
          </div>
        ))}
      </div>
    </Dialog>
  );
}
