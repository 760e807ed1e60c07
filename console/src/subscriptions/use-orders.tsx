import type { OrderTarget } from "@stele/client";
import { type ReactNode, type RefObject, useEffect, useRef, useState } from "react";
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
  const [asked, setAsked] = useState<Asked>();
  /** The order of the open dialog; another object each time that somebody asks. */
  const open = useRef<Asked>(undefined);
  const [outcome, setOutcome] = useState({ message: "", isFailure: false });
  const shown = useRef<HTMLParagraphElement>(null);
  // The button of the order may be gone, for example after a pause: then the closed dialog had no element to return the focus to.
  useEffect(() => {
    if (outcome.message !== "" && document.activeElement === document.body) shown.current?.focus();
  }, [outcome]);
  const show = (next: Asked | undefined): void => {
    open.current = next;
    setAsked(next);
  };
  const dialog = asked && (
    <OrderDialog
      name={asked.name}
      target={asked.target}
      subject={asked.subject}
      onClose={() => show(undefined)}
      onDone={(message) => {
        // After "Cancel", somebody may have asked for another order.
        if (open.current === asked) show(undefined);
        setOutcome({ message, isFailure: false });
      }}
      onFailed={(message) => {
        if (open.current === asked) return;
        setOutcome({ message: `${orderTitles[asked.name]} ${asked.subject}: ${message}`, isFailure: true });
      }}
    />
  );
  const view = (
    <>
      <Outcome {...outcome} shown={shown} />
      {dialog}
    </>
  );
  return { ask: show, view };
}

interface OutcomeProps {
  readonly message: string;
  readonly isFailure: boolean;
  readonly shown: RefObject<HTMLParagraphElement | null>;
}

/** Two elements: a screen reader may miss that one becomes an alert. */
function Outcome({ message, isFailure, shown }: OutcomeProps): ReactNode {
  return isFailure ? (
    <p key="failure" role="alert" className="failure" tabIndex={-1} ref={shown}>
      {message}
    </p>
  ) : (
    <p key="outcome" role="status" className="outcome" tabIndex={-1} ref={shown}>
      {message}
    </p>
  );
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
