import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { useStele } from "../broker/session-context.tsx";
import { useFailure } from "../broker/use-failure.ts";
import { usePollMs } from "../broker/use-poll-ms.ts";
import { mayShow, useRights } from "../broker/use-rights.ts";
import { formatCount, formatCounted } from "../lib/format.ts";
import { toAddress } from "../lib/to-address.ts";
import { Facts } from "../ui/facts.tsx";
import { Failure } from "../ui/failure.tsx";
import { Page } from "../ui/page.tsx";
import { Ago, Time } from "../ui/time.tsx";
import { ordersFor } from "./orders.ts";
import { OrderButtons, useOrders } from "./use-orders.tsx";

const pollMs = 2000;

/** One subscription, with its last attempts. */
export function SubscriptionPage({ id }: { readonly id: string }): ReactNode {
  const stele = useStele();
  const orders = useOrders();
  const query = useQuery({
    queryKey: ["subscriptions", "one", id],
    queryFn: ({ signal }) => stele.admin.subscription(id, { signal }),
    refetchInterval: usePollMs(pollMs),
  });
  const { data } = query;
  const failure = useFailure(query);
  return (
    <Page
      title={data?.topic ?? "Subscription"}
      actions={
        data === undefined ? null : (
          <OrderButtons orders={orders} names={ordersFor(data.state)} target={id} subject={data.topic} />
        )
      }
    >
      <Failure error={failure} />
      {orders.view}
      {data === undefined ? null : (
        <>
          <StateCard subscription={data} />
          <AttemptsCard subscription={data} />
        </>
      )}
    </Page>
  );
}

type Subscription = Awaited<ReturnType<ReturnType<typeof useStele>["admin"]["subscription"]>>;

function StateCard({ subscription }: { readonly subscription: Subscription }): ReactNode {
  const isTailed = mayShow(useRights(), "subscribe");
  const { id, groupId, topic, url, state, lag, notified, notifiedAt, createdAt } = subscription;
  const { failing, waitingSince, nextAttemptAt, owner, node, kind, deadLetters } = subscription;
  return (
    <section className="card" aria-label="State">
      <h2>State</h2>
      <Facts
        facts={{
          State: <span className={`badge badge-${state}`}>{state}</span>,
          Waiting: formatCounted(lag, "event"),
          "Oldest waits since": waitingSince && <Ago iso={waitingSince} />,
          Acknowledged: notified === 0 ? "nothing yet" : formatCounted(notified, "event"),
          "Last acknowledged": notifiedAt && <Ago iso={notifiedAt} />,
          "Dead letters": deadLetters === 0 ? undefined : formatCounted(deadLetters, "event"),
          "Failing since": failing && <Ago iso={failing.since} />,
          "Failed attempts": failing && formatCount(failing.attempts),
          "Next attempt": nextAttemptAt && <Time iso={nextAttemptAt} />,
          Receiver: <span className="address">{url}</span>,
          Protocol: kind,
          Topic: isTailed ? <Link href={toAddress("/tail", { topic, group: groupId })}>{topic}</Link> : topic,
          Group: groupId,
          Owner: owner,
          Node: node,
          Created: <Time iso={createdAt} />,
          Identifier: <span className="mono">{id}</span>,
        }}
      />
    </section>
  );
}

function AttemptsCard({ subscription: { attempts, groupId } }: { readonly subscription: Subscription }): ReactNode {
  return (
    <section className="card" aria-label="Last attempts">
      <h2>Last attempts</h2>
      {attempts.length === 0 ? <p className="quiet-text">None since this node started.</p> : null}
      <ol className="attempts">
        {attempts.map((attempt) => (
          <li key={`${attempt.at} ${attempt.eventId}`}>
            <span className={`badge badge-${attempt.outcome}`}>{attempt.outcome}</span>{" "}
            {attempt.count > 1 ? `${formatCounted(attempt.count, "event")}, the last ` : ""}
            <Time iso={attempt.at} /> · {Math.round(attempt.durationMs)} ms ·{" "}
            <Link href={toAddress(`/events/${attempt.eventId}`, { group: groupId })}>{attempt.eventId}</Link>
            {attempt.reason === undefined ? null : <> · {attempt.reason}</>}
            {attempt.excerpt === undefined ? null : <pre tabIndex={0}>{attempt.excerpt}</pre>}
          </li>
        ))}
      </ol>
    </section>
  );
}
