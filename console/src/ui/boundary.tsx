import { Component, type ReactNode } from "react";
import { Failure } from "./failure.tsx";
import { Page } from "./page.tsx";

interface BoundaryProps {
  readonly children: ReactNode;
}

interface BoundaryState {
  readonly error: unknown;
}

/**
 * Shows the error of a view in its place; React would remove the whole page. For instance, the file of a view cannot be loaded while the broker is down, or
 * once a newer version of the broker serves other files. A file that failed stays failed until the page is loaded again.
 */
export class Boundary extends Component<BoundaryProps, BoundaryState> {
  override state: BoundaryState = { error: undefined };

  static getDerivedStateFromError(error: unknown): BoundaryState {
    return { error };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === undefined) return this.props.children;
    return (
      <Page title="The view failed">
        <Failure error={error} />
        <p>
          <button type="button" onClick={() => location.reload()}>
            Load the page again
          </button>
        </p>
      </Page>
    );
  }
}
