import { useQueryClient } from "@tanstack/react-query";
import { lazy, type ReactNode, Suspense, useEffect, useRef } from "react";
import { type AroundNavHandler, Link, Route, Router, Switch, useLocation } from "wouter";
import { useSearch } from "wouter/use-browser-location";
import { consolePath, logIns, logOutAddress } from "./broker/addresses.ts";
import { isDenied } from "./broker/describe-error.ts";
import { KeyDialog } from "./broker/key-dialog.tsx";
import { LockButton } from "./broker/lock-button.tsx";
import { useSession, useSessionState, useStele } from "./broker/session-context.tsx";
import { mayShow, useRights } from "./broker/use-rights.ts";
import { ClusterPage } from "./cluster/cluster-page.tsx";
import { EventPage } from "./inspector/event-page.tsx";
import { OverviewPage } from "./overview/overview-page.tsx";
import { Palette } from "./palette/palette.tsx";
import { SubscriptionPage } from "./subscriptions/subscription-page.tsx";
import { SubscriptionsPage } from "./subscriptions/subscriptions-page.tsx";
import { TailPage } from "./tail/tail-page.tsx";
import { Boundary } from "./ui/boundary.tsx";
import { Page } from "./ui/page.tsx";
import { views } from "./views.ts";

/** Pages loaded on first use: proofs need cryptography, figures need charts, and few people look at blocks. */
const ProofPage = lazy(async () => ({ default: (await import("./proof/proof-page.tsx")).ProofPage }));
const ChainPage = lazy(async () => ({ default: (await import("./chain/chain-page.tsx")).ChainPage }));
const FiguresPage = lazy(async () => ({ default: (await import("./figures/figures-page.tsx")).FiguresPage }));

export function App(): ReactNode {
  useFreshAnswers();
  useOneCaller();
  useGrantedRights();
  return (
    // oxlint-disable-next-line react/hooks -- The router calls the hook.
    <Router base={consolePath} searchHook={useRawSearch} aroundNav={openAtTop}>
      <Header />
      <Views />
      <KeyDialog />
    </Router>
  );
}

/** The view of the address. An error of one view does not stay when somebody opens another. */
function Views(): ReactNode {
  const [location] = useLocation();
  return (
    <Boundary key={location}>
      <Suspense fallback={<p role="status">Loading …</p>}>
        <Switch>
          <Route path="/">
            <OverviewPage />
          </Route>
          <Route path="/tail">
            <TailPage />
          </Route>
          <Route path="/events/:eventId">{({ eventId }) => <EventPage eventId={eventId} />}</Route>
          <Route path="/events/:eventId/proof">{({ eventId }) => <ProofPage eventId={eventId} />}</Route>
          <Route path="/chain">
            <ChainPage />
          </Route>
          <Route path="/figures">
            <FiguresPage />
          </Route>
          <Route path="/cluster">
            <ClusterPage />
          </Route>
          <Route path="/subscriptions">
            <SubscriptionsPage />
          </Route>
          {/* The identifier of a tenant's subscription contains a slash. */}
          <Route path="/subscriptions/*">{({ "*": id }) => <SubscriptionPage id={id} />}</Route>
          <Route>
            <Page title="No such page">
              <p>
                The console has nothing at this address. <Link href="/">Overview</Link>
              </p>
            </Page>
          </Route>
        </Switch>
      </Suspense>
    </Boundary>
  );
}

/** The query of the URL. The router decodes it once before it is parsed: without this, a topic `a%2Fb` would become `a/b`. */
function useRawSearch(): string {
  return useSearch().replaceAll("%", "%25");
}

/** Opens a view at its top, also if the view before was scrolled. For Back, the browser restores the place, if the view is as long as before. */
const openAtTop: AroundNavHandler = (navigate, to, options) => {
  navigate(to, options);
  if (options?.replace !== true) scrollTo(0, 0);
};

/** When the key changes, drops all answers and asks again. It waits until the views have the client with the new key. */
function useFreshAnswers(): void {
  const queries = useQueryClient();
  const stele = useStele();
  const previous = useRef(stele);
  useEffect(() => {
    if (previous.current === stele) return;
    previous.current = stele;
    void queries.resetQueries();
  }, [queries, stele]);
}

/** Renews the session if a log-in in another tab has changed the caller: the next person must not get what the previous one unlocked and read. */
function useOneCaller(): void {
  const session = useSession();
  const stele = useStele();
  const principal = useRights()?.principal;
  const known = useRef({ stele, principal });
  useEffect(() => {
    if (principal === undefined) return;
    const before = known.current;
    known.current = { stele, principal };
    const isOther = before.principal !== undefined && before.principal !== principal;
    if (isOther && before.stele === stele) session.renew();
  }, [session, stele, principal]);
}

/** When the caller's actions change, repeats the queries that the broker refused: an operator may have granted a right, and no view polls after a refusal. */
function useGrantedRights(): void {
  const queries = useQueryClient();
  const rights = useRights();
  const known = useRef(rights);
  useEffect(() => {
    const isChange = known.current !== undefined && known.current !== rights;
    known.current = rights;
    if (isChange) void queries.invalidateQueries({ predicate: ({ state }) => isDenied(state.error) });
  }, [queries, rights]);
}

function Header(): ReactNode {
  const [location] = useLocation();
  const rights = useRights();
  const offered = views.filter(({ action }) => action === undefined || mayShow(rights, action));
  const isCurrent = (path: string): boolean => (path === "/" ? location === "/" : location.startsWith(path));
  return (
    <header ref={publishHeight}>
      <Link href="/" className="brand">
        Stele
      </Link>
      <nav aria-label="Views">
        {offered.map(({ name, address }) => (
          <ViewLink key={address} name={name} address={address} isCurrent={isCurrent(address)} />
        ))}
      </nav>
      <Palette />
      <DocsLink />
      <LockButton />
      {rights?.principal === undefined ? null : <p className="quiet-text principal">{rights.principal}</p>}
      <ForgetKey />
      {rights?.principal === undefined ? null : <LogOut />}
    </header>
  );
}

/** Keeps the height of the header where the styles find it. */
function publishHeight(header: HTMLElement): () => void {
  const resized = new ResizeObserver(() =>
    document.documentElement.style.setProperty("--header", `${header.offsetHeight}px`),
  );
  resized.observe(header);
  return () => resized.disconnect();
}

interface ViewLinkProps {
  readonly name: string;
  readonly address: string;
  readonly isCurrent: boolean;
}

function ViewLink({ name, address, isCurrent }: ViewLinkProps): ReactNode {
  const link = useRef<HTMLAnchorElement>(null);
  // In a narrow window the last views are out of sight.
  useEffect(() => {
    if (isCurrent) link.current?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [isCurrent]);
  return (
    <Link ref={link} href={address} aria-current={isCurrent ? "page" : undefined}>
      {name}
    </Link>
  );
}

/** If the broker serves the documentation, it writes the address into the head of the page. */
function DocsLink(): ReactNode {
  const address = document.querySelector('link[rel="help"]')?.getAttribute("href");
  return address === null || address === undefined ? null : <a href={address}>Docs</a>;
}

function ForgetKey(): ReactNode {
  const session = useSession();
  const { hasKey } = useSessionState();
  return hasKey ? (
    <button type="button" className="quiet" onClick={() => session.setKey(undefined)}>
      Forget the key
    </button>
  ) : null;
}

/** Ends a log-in by an identity provider. Hidden while the tab has a key, which takes precedence over the log-in. */
function LogOut(): ReactNode {
  const { hasKey } = useSessionState();
  return hasKey || logIns.length === 0 ? null : <a href={logOutAddress}>Log out</a>;
}
