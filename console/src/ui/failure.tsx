import type { ReactNode } from "react";
import { describeError } from "../broker/describe-error.ts";

export function Failure({ error }: { readonly error: unknown }): ReactNode {
  return error === null || error === undefined ? null : (
    <p role="alert" className="failure">
      {describeError(error)}
    </p>
  );
}
