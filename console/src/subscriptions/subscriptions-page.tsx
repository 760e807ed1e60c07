import { useQuery } from "@tanstack/react-query";
import type { FormEvent, ReactNode } from "react";
import { Link, useSearchParams } from "wouter";
import { useStele } from "../broker/session-context.tsx";
import { formatCount } from "../lib/format.ts";
import { Failure } from "../ui/failure.tsx";
import { Page } from "../ui/page.tsx";
import { Ago } from "../ui/time.tsx";
import { isPlaceOrder, orderNames, ordersFor } from "./orders.ts";
import { describeSearch, findSubscriptions, type ListedSubscription, readSearch, states, toTarget } from "./search.ts";
import { OrderButtons, type Orders, useOrders } from "./use-order.tsx";

const pollMs = 3000;

/** Callback subscriptions with their lag. The address has the search. */
export function SubscriptionsPage(): ReactNode {
  const stele = useStele();
  const [search, setSearch] = useSearchParams();
  const orders = useOrders();
  const { data, error } = useQuery({
    queryKey: ["subscriptions", search.toString()],
    queryFn: ({ signal }) => findSubscriptions(stele, readSearch(search), signal),
    refetchInterval: pollMs,
    placeholderData: (earlier) => earlier,
  });
  return (
    <Page title="Subscriptions">
      <SearchForm key={search.toString()} search={search} onSearch={setSearch} />
      <Failure error={error} />
      {orders.view}
      {data === undefined || data.items.length === 0 ? null : <OrdersForAll search={search} orders={orders} />}
      {data === undefined ? null : <SubscriptionTable items={data.items} orders={orders} />}
      {data?.hasMore === true ? (
        <p className="note">These are the first {formatCount(data.items.length)}: narrow the search to see others.</p>
      ) : null}
    </Page>
  );
}

interface SearchFormProps {
  readonly search: URLSearchParams;
  readonly onSearch: (search: URLSearchParams) => void;
}

function SearchForm({ search, onSearch }: SearchFormProps): ReactNode {
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const entries = [...new FormData(event.currentTarget)].filter((entry): entry is [string, string] => {
      const [, value] = entry;
      return typeof value === "string" && value !== "";
    });
    onSearch(new URLSearchParams(entries));
  };
  return (
    <form className="fields" onSubmit={submit} role="search">
      <label>
        State
        <select name="state" defaultValue={search.get("state") ?? ""}>
          <option value="">any</option>
          {states.map((state) => (
            <option key={state}>{state}</option>
          ))}
        </select>
      </label>
      <label>
        Topic begins with
        <input name="prefix" defaultValue={search.get("prefix") ?? ""} spellCheck={false} autoCapitalize="off" />
      </label>
      <label>
        Host of the receiver
        <input name="host" defaultValue={search.get("host") ?? ""} spellCheck={false} autoCapitalize="off" />
      </label>
      <label>
        Events waiting, at least
        <input name="lagMin" type="number" min={0} defaultValue={search.get("lagMin") ?? ""} />
      </label>
      <button type="submit">Search</button>
    </form>
  );
}

interface OrdersForAllProps {
  readonly search: URLSearchParams;
  readonly orders: Orders;
}

/** The same orders for all that the search finds, also for those that the table does not show. */
function OrdersForAll({ search, orders }: OrdersForAllProps): ReactNode {
  const found = readSearch(search);
  return (
    <div className="bar">
      <p className="quiet-text">All that match:</p>
      <OrderButtons orders={orders} names={orderNames} target={toTarget(found)} subject={describeSearch(found)} />
    </div>
  );
}

interface TableProps {
  readonly items: readonly ListedSubscription[];
  readonly orders: Orders;
}

function SubscriptionTable({ items, orders }: TableProps): ReactNode {
  if (items.length === 0) return <p className="quiet-text card">No subscription matches.</p>;
  return (
    <div className="card table" role="region" aria-label="Subscriptions found" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">Topic</th>
            <th scope="col">State</th>
            <th scope="col" className="number">
              Waiting
            </th>
            <th scope="col" className="wide-only">
              Last acknowledged
            </th>
            <th scope="col" className="wide-only">
              Receiver
            </th>
            <th scope="col">Actions</th>
          </tr>
        </thead>
        <tbody>
          {items.map((item) => (
            <SubscriptionRow key={item.id} item={item} orders={orders} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function SubscriptionRow({ item, orders }: { readonly item: ListedSubscription; readonly orders: Orders }): ReactNode {
  const { id, topic, state, lag, notified, notifiedAt, url, failing } = item;
  return (
    <tr>
      <th scope="row">
        <Link href={`/subscriptions/${id}`}>{topic}</Link>
      </th>
      <td>
        <span className={`badge badge-${state}`}>{state}</span>
        {failing === undefined ? null : (
          <span className="badge badge-failing">
            failing since <Ago iso={failing.since} />
          </span>
        )}
      </td>
      <td className="number">{formatCount(lag)}</td>
      <td className="wide-only">{notified === 0 ? "never" : <Ago iso={notifiedAt} />}</td>
      <td className="address wide-only">{url}</td>
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
