import { type Dispatch, type SetStateAction, useEffect, useState } from "react";
import type { Draft } from "./commands.ts";
import { readFragment } from "./templates.ts";

const example: Draft = { topic: "hello/world", content: "Hello, chain!", isJson: false };

/** The fields of the publish form. At first they have the draft in the URL's fragment, or else an example. */
export function useDraft(): [Draft, Dispatch<SetStateAction<Draft>>] {
  const [draft, setDraft] = useState(() => readFragment(location.hash) ?? example);
  useEffect(() => {
    // If the browser already shows the overview, a link to a draft changes only the fragment, so the page does not load again.
    const fill = (): void => setDraft((current) => readFragment(location.hash) ?? current);
    addEventListener("hashchange", fill);
    return () => removeEventListener("hashchange", fill);
  }, []);
  return [draft, setDraft];
}
