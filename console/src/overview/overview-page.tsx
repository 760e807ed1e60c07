import { SteleError } from "@stele/client";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { askAgain } from "../broker/ask-again.ts";
import { useStele } from "../broker/session-context.tsx";
import { mayShow, useRights } from "../broker/use-rights.ts";
import { Page } from "../ui/page.tsx";
import { Greeting } from "./greeting.tsx";
import { HealthCard } from "./health-card.tsx";
import { NewestEvents } from "./newest-events.tsx";
import { PublishForm } from "./publish-form.tsx";
import { isEmptyBroker } from "./is-empty-broker.ts";

export function OverviewPage(): ReactNode {
  const stele = useStele();
  const rights = useRights();
  const { data: wasEmpty, failureReason } = useQuery({
    ...askAgain,
    queryKey: ["empty"],
    queryFn: ({ signal }) => isEmptyBroker(stele, signal),
    staleTime: Number.POSITIVE_INFINITY,
    // An empty broker may have events when somebody opens the overview again. Until then, the first steps stay, and show the first event.
    refetchOnMount: ({ state }) => (state.data === true ? "always" : true),
  });
  // A broker that gave no answer, or none yet, may have events. One that refused to list topics to the caller would also refuse a tail of all.
  const isAway = failureReason instanceof SteleError && failureReason.retry;
  const hasEvents = wasEmpty === undefined ? isAway : !wasEmpty;
  return (
    <Page title="Overview">
      {wasEmpty === true ? <Greeting /> : null}
      <div className="columns">
        <div>
          <HealthCard />
          {hasEvents && mayShow(rights, "subscribe") ? <NewestEvents /> : null}
        </div>
        {mayShow(rights, "publish") ? <PublishForm /> : null}
      </div>
    </Page>
  );
}
