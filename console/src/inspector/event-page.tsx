import type { ReactNode } from "react";
import { Page } from "../ui/page.tsx";
import { Inspector } from "./inspector.tsx";

export function EventPage({ eventId }: { readonly eventId: string }): ReactNode {
  return (
    <Page title={`Event ${eventId}`}>
      <article className="card inspector" aria-label={`Event ${eventId}`}>
        <Inspector eventId={eventId} key={eventId} />
      </article>
    </Page>
  );
}
