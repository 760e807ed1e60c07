import { type Dispatch, type SetStateAction, useEffect, useState } from "react";
import type { Draft } from "./commands.ts";
import { readFragment } from "./templates.ts";

const example: Draft = { topic: "hello/world", content: "Hello, chain!", isJson: false };

/** The fields of the publish form. They start with the draft in the URL. */
export function useDraft(): [Draft, Dispatch<SetStateAction<Draft>>] {
  const [draft, setDraft] = useState(() => readFragment(location.hash) ?? example);
  useEffect(() => {
    // A browser that already shows the overview keeps the page when somebody opens a link to a draft: only the fragment differs.
    const fill = (): void => setDraft((current) => readFragment(location.hash) ?? current);
    addEventListener("hashchange", fill);
    return () => removeEventListener("hashchange", fill);
  }, []);
  return [draft, setDraft];
}
