import type { ReactNode } from "react";
import { Link } from "wouter";
import { Ago, Until } from "../ui/time.tsx";
import { lastAttemptOf } from "./last-attempt.ts";
import { isPlaceOrder, ordersFor } from "./orders.ts";
import type { ListedSubscription } from "./search.ts";
import { OrderButtons, type Orders } from "./use-orders.tsx";
import { Waiting } from "./waiting.tsx";

interface TableProps {
  readonly items: readonly ListedSubscription[];
  readonly orders: Orders;
}

export function CallbackTable({ items, orders }: TableProps): ReactNode {
  if (items.length === 0) return <p className="quiet-text card">No subscription matches.</p>;
  return (
    <div className="card table" role="region" aria-label="Subscriptions found" tabIndex={0}>
      <table className="stacked">
        <thead>
          <tr>
            <th scope="col">Topic and receiver</th>
            <th scope="col">State</th>
            <th scope="col">Waiting</th>
            <th scope="col">Last attempt</th>
            <th scope="col">Next attempt</th>
            <th scope="col">Actions</th>
          </tr>
        </thead>
        <tbody>
          {items.map((item) => (
            <CallbackRow key={item.id} item={item} orders={orders} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function CallbackRow({ item, orders }: { readonly item: ListedSubscription; readonly orders: Orders }): ReactNode {
  const { id, topic, state, lag, url, failing, waitingSince } = item;
  return (
    <tr>
      <th scope="row">
        <Link href={`/subscriptions/${id}`}>{topic}</Link>
        <p className="address quiet-text">{url}</p>
      </th>
      <td data-label="State">
        <span className={`badge badge-${state}`}>{state}</span>
        {failing === undefined ? null : (
          <span className="badge badge-failing">
            failing since <Ago iso={failing.since} />
          </span>
        )}
      </td>
      <td data-label="Waiting">
        <Waiting lag={lag} since={waitingSince} />
      </td>
      <td data-label="Last attempt">
        <LastAttempt item={item} />
      </td>
      <td data-label="Next attempt">
        <NextAttempt item={item} />
      </td>
      <td>
        <OrderButtons
          orders={orders}
          names={ordersFor(state).filter((name) => !isPlaceOrder(name))}
          target={id}
          subject={topic}
        />
      </td>
    </tr>
  );
}

function LastAttempt({ item }: { readonly item: ListedSubscription }): ReactNode {
  const last = lastAttemptOf(item);
  if (last === undefined) return item.notified === 0 && item.failing === undefined ? "none yet" : "not known here";
  return (
    <>
      <span className={`badge badge-${last.outcome}`}>{last.outcome}</span> <Ago iso={last.at} />
      {last.reason === undefined ? null : <p className="quiet-text reason">{last.reason}</p>}
    </>
  );
}

function NextAttempt({ item: { nextAttemptAt, failing } }: { readonly item: ListedSubscription }): ReactNode {
  if (nextAttemptAt !== undefined) return <Until iso={nextAttemptAt} />;
  if (failing?.notBefore === undefined) return "–";
  return (
    <>
      not before <Until iso={failing.notBefore} />
    </>
  );
}
