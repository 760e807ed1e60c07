import { MutationCache, QueryCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { createRoot } from "react-dom/client";
import { App } from "./app.tsx";
import { restoreFragment } from "./broker/kept-fragment.ts";
import { Session } from "./broker/session.ts";
import { SessionProvider } from "./broker/session-context.tsx";
import "./styles/styles.css";

restoreFragment();
const session = new Session();
const onError = (error: unknown): void => session.noteFailure(error);

/**
 * When somebody comes back to a tab, it asks again. It does not while the broker refuses its key, because the broker would only log further refusals. A query
 * that pauses after a failure (`askAgain`) first ends its pause.
 */
const refetchOnWindowFocus = (): boolean => !session.state.isKeyWanted;

/** Retries nothing, because the Stele client repeats calls itself where that is safe. */
const queries = new QueryClient({
  queryCache: new QueryCache({ onError }),
  mutationCache: new MutationCache({ onError }),
  defaultOptions: {
    queries: { retry: false, networkMode: "always", refetchOnWindowFocus },
    mutations: { networkMode: "always" },
  },
});

const root = document.querySelector("#root");
if (root === null) throw new Error("the page has no root");
createRoot(root).render(
  <QueryClientProvider client={queries}>
    <SessionProvider value={session}>
      <App />
    </SessionProvider>
  </QueryClientProvider>,
);
