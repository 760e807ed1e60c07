import type { OrderTarget } from "@stele/client";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { useLockReason } from "../broker/use-rights.ts";
import { OrderDialog } from "./order-dialog.tsx";
import { type ConsoleOrder, orderTitles } from "./orders.ts";

interface Asked {
  readonly name: ConsoleOrder;
  readonly target: OrderTarget;
  /** The target, in words. */
  readonly subject: string;
}

export interface Orders {
  /** Opens a dialog, which asks before it gives the order. */
  readonly ask: (asked: Asked) => void;
  /** The dialog, and the outcome or the failure of the last order. */
  readonly view: ReactNode;
}

export function useOrders(): Orders {
  const [asked, ask] = useState<Asked>();
  const [outcome, setOutcome] = useState({ message: "" });
  const shown = useRef<HTMLParagraphElement>(null);
  // The button of the order may be gone, as after a pause: then the closed dialog had no element to return the focus to.
  useEffect(() => {
    if (outcome.message !== "" && document.activeElement === document.body) shown.current?.focus();
  }, [outcome]);
  const close = (): void => ask(undefined);
  const dialog = asked && (
    <OrderDialog
      name={asked.name}
      target={asked.target}
      subject={asked.subject}
      onClose={close}
      onDone={(done) => {
        // After "Cancel", somebody may have asked for another order.
        ask((current) => (current === asked ? undefined : current));
        setOutcome({ message: done });
      }}
    />
  );
  const view = (
    <>
      <p role="status" className="outcome" tabIndex={-1} ref={shown}>
        {outcome.message}
      </p>
      {dialog}
    </>
  );
  return { ask, view };
}

export interface OrderButtonsProps {
  readonly orders: Orders;
  readonly names: readonly ConsoleOrder[];
  readonly target: OrderTarget;
  readonly subject: string;
}

export function OrderButtons({ orders, names, target, subject }: OrderButtonsProps): ReactNode {
  const lock = useLockReason();
  return (
    <div className="buttons">
      {names.map((name) => (
        <button
          key={name}
          type="button"
          className="quiet"
          disabled={lock !== undefined}
          title={lock}
          aria-label={`${orderTitles[name]} ${subject}`}
          onClick={() => orders.ask({ name, target, subject })}
        >
          {orderTitles[name]}
        </button>
      ))}
    </div>
  );
}
