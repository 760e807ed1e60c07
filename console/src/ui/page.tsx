import { type ReactNode, useEffect, useRef } from "react";
import { useSearch } from "wouter";

export interface PageProps {
  readonly title: string;
  readonly children: ReactNode;
  /** Buttons or links beside the title. */
  readonly actions?: ReactNode;
  /** Whether the page fills the window, and scrolls inside. */
  readonly isFull?: boolean;
}

/** Whether the document shows its first view. There the focus stays at the top, so that Tab first reaches the links to all views. */
let isFirst = true;

/** A view with its title, which the browser's tab shows too. */
export function Page({ title, children, actions, isFull = false }: PageProps): ReactNode {
  const heading = useRef<HTMLHeadingElement>(null);
  const search = useSearch();
  // The link that opened the view, or changed what it shows, may be gone: a screen reader would not notice the change.
  useEffect(() => {
    if (!isFirst && document.activeElement === document.body) heading.current?.focus({ preventScroll: true });
    isFirst = false;
    // oxlint-disable-next-line react/exhaustive-effect-dependencies -- A change of the query may remove the link, too.
  }, [search]);
  useEffect(() => {
    document.title = `${title} · Stele`;
  }, [title]);
  return (
    <main className={isFull ? "full" : undefined}>
      <div className="title">
        <h1 ref={heading} tabIndex={-1}>
          {title}
        </h1>
        {actions}
      </div>
      {children}
    </main>
  );
}
