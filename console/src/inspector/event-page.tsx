import type { ReactNode } from "react";
import { useSearchParams } from "wouter";
import { Page } from "../ui/page.tsx";
import { Inspector } from "./inspector.tsx";

/** An event of the group in the URL; of the default group if the URL names none. */
export function EventPage({ eventId }: { readonly eventId: string }): ReactNode {
  const [search] = useSearchParams();
  const groupId = search.get("group") ?? undefined;
  return (
    <Page title={`Event ${eventId}`}>
      <article className="card inspector" aria-label={`Event ${eventId}`}>
        <Inspector eventId={eventId} groupId={groupId} key={eventId} />
      </article>
    </Page>
  );
}
