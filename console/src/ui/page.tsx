import { type ReactNode, useEffect } from "react";

export interface PageProps {
  readonly title: string;
  readonly children: ReactNode;
  /** Beside the title. */
  readonly actions?: ReactNode;
  /** Whether it fills the window, and scrolls inside. */
  readonly isFull?: boolean;
}

/** A view with its title, also that of the browser's tab. */
export function Page({ title, children, actions, isFull = false }: PageProps): ReactNode {
  useEffect(() => {
    document.title = `${title} · Stele`;
  }, [title]);
  return (
    <main className={isFull ? "full" : undefined}>
      <div className="title">
        <h1>{title}</h1>
        {actions}
      </div>
      {children}
    </main>
  );
}
