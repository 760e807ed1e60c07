import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useStele } from "../broker/session-context.tsx";
import { useFailure } from "../broker/use-failure.ts";
import { usePollMs } from "../broker/use-poll-ms.ts";
import { Failure } from "../ui/failure.tsx";
import { CallbackTable } from "./callback-table.tsx";
import { MoreNote } from "./more-note.tsx";
import { orderNames } from "./orders.ts";
import { ChoiceField, CountField, SearchForm, TextField } from "./search-form.tsx";
import { describeSearch, findSubscriptions, readSearch, states, toTarget } from "./search.ts";
import { OrderButtons, type Orders, useOrders } from "./use-orders.tsx";

const pollMs = 3000;

export interface ListProps {
  readonly search: URLSearchParams;
  readonly onSearch: (search: URLSearchParams) => void;
}

/** Searches callback subscriptions, and shows their lag and their attempts. */
export function CallbackList({ search, onSearch }: ListProps): ReactNode {
  const stele = useStele();
  const orders = useOrders();
  const query = useQuery({
    queryKey: ["subscriptions", search.toString()],
    queryFn: ({ signal }) => findSubscriptions(stele, readSearch(search), signal),
    refetchInterval: usePollMs(pollMs),
    placeholderData: (earlier) => earlier,
  });
  const { data } = query;
  const failure = useFailure(query);
  return (
    <>
      <SearchForm search={search} onSearch={onSearch}>
        <ChoiceField label="State" name="state" search={search} choices={states} />
        <TextField label="Topic begins with" name="prefix" search={search} />
        <TextField label="Host of the receiver" name="host" search={search} />
        <CountField label="Minimum events waiting" name="lagMin" search={search} />
      </SearchForm>
      <Failure error={failure} />
      {orders.view}
      {data === undefined || data.items.length === 0 ? null : <OrdersForAll search={search} orders={orders} />}
      {data === undefined ? null : <CallbackTable items={data.items} orders={orders} />}
      <MoreNote page={data} />
    </>
  );
}

interface OrdersForAllProps {
  readonly search: URLSearchParams;
  readonly orders: Orders;
}

/** Buttons that give an order to every subscription that the search finds, including those that the table does not show. */
function OrdersForAll({ search, orders }: OrdersForAllProps): ReactNode {
  const conditions = readSearch(search);
  return (
    <div className="bar">
      <p className="quiet-text">All matching subscriptions:</p>
      <OrderButtons
        orders={orders}
        names={orderNames}
        target={toTarget(conditions)}
        subject={describeSearch(conditions)}
      />
    </div>
  );
}
