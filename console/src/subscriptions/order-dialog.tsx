import type { OrderTarget, Place } from "@stele/client";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { useStele } from "../broker/session-context.tsx";
import { useLockReason } from "../broker/use-rights.ts";
import { formatCounted } from "../lib/format.ts";
import { Dialog } from "../ui/dialog.tsx";
import { Failure } from "../ui/failure.tsx";
import { useSettled } from "../lib/use-settled.ts";
import {
  type ConsoleOrder,
  describeFailure,
  describeOrder,
  describeOutcome,
  giveOrder,
  isPlaceOrder,
  type OrderOutcome,
  orderTitles,
} from "./orders.ts";
import { TimeLine } from "./time-line.tsx";

export interface OrderDialogProps {
  readonly name: ConsoleOrder;
  readonly target: OrderTarget;
  /** The subscription or the search, in words. */
  readonly subject: string;
  readonly onDone: (message: string) => void;
  /** Called with a failure of the order, even if somebody has closed the dialog meanwhile. The open dialog shows the failure itself. */
  readonly onFailed: (message: string) => void;
  readonly onClose: () => void;
}

/** Says how many events an order would affect, and gives the order once a person confirms. */
export function OrderDialog({ name, target, subject, onDone, onFailed, onClose }: OrderDialogProps): ReactNode {
  const stele = useStele();
  const queries = useQueryClient();
  const lock = useLockReason(); // Another key, or a log-in in another tab, locks changes below the open dialog.
  const [chosen, choose] = useState<Place | undefined>(name === "replay" ? "OFFSET_FIRST" : undefined);
  const place = useSettled(chosen);
  const preview = useQuery({
    queryKey: ["order", name, target, place],
    queryFn: ({ signal }) => giveOrder(stele, { name, target, place, dryRun: true }, signal),
    staleTime: 0,
    gcTime: 0,
  });
  const order = useMutation({
    mutationFn: (given: Place | undefined) => giveOrder(stele, { name, target, place: given, dryRun: false }),
    onSuccess: async (outcome) => {
      await queries.invalidateQueries({ queryKey: ["subscriptions"] });
      onDone(describeOutcome(name, outcome));
    },
    onError: (error, given) => {
      for (const head of ["order", "subscriptions"]) void queries.invalidateQueries({ queryKey: [head] });
      onFailed(describeFailure({ name, place: given }, error));
    },
  });
  // A person can confirm only a place for which the events have been counted.
  const isCounted = preview.data !== undefined && place === chosen;
  return (
    <Dialog title={`${orderTitles[name]}: ${subject}`} onClose={onClose}>
      {isPlaceOrder(name) ? <TimeLine name={name} target={target} onChoose={choose} /> : null}
      <Failure error={preview.error} />
      <Failure error={order.error && describeFailure({ name, place: order.variables }, order.error)} />
      {preview.data === undefined ? (
        <p role="status">{preview.error === null ? "Counting the events …" : null}</p>
      ) : (
        <Preview name={name} outcome={preview.data} isForMany={typeof target !== "string"} />
      )}
      <div className="bar">
        <button
          type="button"
          disabled={!isCounted || order.isPending || lock !== undefined}
          onClick={() => order.mutate(place)}
        >
          {orderTitles[name]}
        </button>
        <button type="button" className="quiet" onClick={onClose}>
          Cancel
        </button>
        <p role="status">{lock}</p>
      </div>
    </Dialog>
  );
}

interface PreviewProps {
  readonly name: ConsoleOrder;
  readonly outcome: OrderOutcome;
  readonly isForMany: boolean;
}

function Preview({ name, outcome, isForMany }: PreviewProps): ReactNode {
  const { subscriptions, events, refusals } = outcome;
  return (
    <>
      <p role="status">
        {isForMany ? `${formatCounted(subscriptions, "subscription")}. ` : ""}
        {describeOrder(name, events)}
      </p>
      {refusals.map((reason) => (
        <p key={reason} className="note">
          Refused for some: {reason}
        </p>
      ))}
    </>
  );
}
