import type { ReactNode } from "react";
import { useSearchParams } from "wouter";
import { Page } from "../ui/page.tsx";
import { Tabs } from "../ui/tabs.tsx";
import { CallbackList } from "./callback-list.tsx";
import { SessionList } from "./session-list.tsx";

const lists = ["Callbacks", "Sessions"] as const;

/** Two lists of who gets events: callback subscriptions and sessions. The URL has the selected list and the search. */
export function SubscriptionsPage(): ReactNode {
  const [search, setSearch] = useSearchParams();
  const selected = search.get("list") === "sessions" ? "Sessions" : "Callbacks";
  const select = (name: (typeof lists)[number]): void => setSearch(name === "Sessions" ? { list: "sessions" } : {});
  const List = selected === "Sessions" ? SessionList : CallbackList;
  return (
    <Page title="Subscriptions">
      <Tabs label="Lists" names={lists} selected={selected} onSelect={select}>
        <div className="list">
          <List search={search} onSearch={setSearch} />
        </div>
      </Tabs>
    </Page>
  );
}
