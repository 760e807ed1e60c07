import { type ReactNode, useId, useLayoutEffect, useRef } from "react";

export interface DialogProps {
  readonly title: string;
  readonly children: ReactNode;
  /** Called when somebody presses Escape; the dialog stays until it is no longer rendered. */
  readonly onClose: () => void;
}

/** A modal dialog: the browser keeps the focus in the dialog, and restores the focus when the dialog closes. */
export function Dialog({ title, children, onClose }: DialogProps): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  // The clean-up of an effect comes too late: an element that has left the page restores no focus when it closes.
  useLayoutEffect(() => {
    const element = dialog.current;
    element?.showModal();
    return () => element?.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClose={({ currentTarget }) => {
        if (!currentTarget.isConnected) return;
        // Chromium asks only once: at the next Escape it closes the dialog without a `cancel` event.
        currentTarget.showModal();
        onClose();
      }}
    >
      <h2 id={id}>{title}</h2>
      {children}
    </dialog>
  );
}
