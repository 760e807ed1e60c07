import type { FormEvent, ReactNode } from "react";
import { Link } from "wouter";
import { isJson as isJsonText } from "../inspector/json-tokens.ts";
import { isUnknown } from "../broker/describe-error.ts";
import { useLockReason } from "../broker/use-rights.ts";
import { Failure } from "../ui/failure.tsx";
import type { Draft } from "./commands.ts";
import { DraftCommands } from "./draft-commands.tsx";
import { TemplateBar } from "./template-bar.tsx";
import { useDraft } from "./use-draft.ts";
import { isTopicMissing, newPublishKey, type PublishRequest, usePublish } from "./use-publish.ts";

export function PublishForm(): ReactNode {
  const [draft, setDraft] = useDraft();
  const { mutate, isPending, data, error, variables } = usePublish();
  const lock = useLockReason();
  const problem = draft.isJson && !isJsonText(draft.content) ? "The content is not JSON." : undefined;
  const opens = isTopicMissing(error) && variables?.topic === draft.topic;
  const change = (part: Partial<Draft>): void => setDraft({ ...draft, ...part });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (isPending) return;
    // The event of a failed publish may be on the chain: the same key keeps a repeat from publishing it twice.
    const once = error !== null && isSame(draft, variables) ? variables.once : newPublishKey();
    mutate({ ...draft, opens, once });
  };
  return (
    <section className="card" aria-label="Publish">
      <h2>Publish</h2>
      <TemplateBar draft={draft} onPick={setDraft} />
      <form onSubmit={submit}>
        <label>
          Topic
          <input
            value={draft.topic}
            onChange={({ target }) => change({ topic: target.value })}
            required
            spellCheck={false}
            autoCapitalize="off"
          />
        </label>
        <label>
          Content
          <textarea
            rows={5}
            value={draft.content}
            onChange={({ target }) => change({ content: target.value })}
            required
            spellCheck={false}
            aria-invalid={problem !== undefined}
            aria-describedby="content-problem"
          />
        </label>
        <label className="check">
          <input type="checkbox" checked={draft.isJson} onChange={({ target }) => change({ isJson: target.checked })} />
          The content is JSON
        </label>
        <p id="content-problem" className="problem">
          {problem}
        </p>
        <div className="bar">
          {/* Not disabled while it waits: the button would lose the focus. */}
          <button type="submit" aria-disabled={isPending} disabled={problem !== undefined || lock !== undefined}>
            {opens ? "Open the topic and publish" : "Publish"}
          </button>
          <p role="status">{isPending ? "Waiting for the block …" : lock}</p>
        </div>
        {isPending ? null : <Failure error={error} />}
        {!isPending && isUnknown(error) && isSame(draft, variables) ? (
          <p className="note">The event may be on the chain. If you publish it again unchanged, it comes only once.</p>
        ) : null}
        {data === undefined || isPending || error !== null ? null : (
          <p role="status" className="state state-live">
            Committed as <Link href={`/events/${data.eventId}`}>{data.eventId}</Link>
          </p>
        )}
      </form>
      <DraftCommands draft={draft} />
    </section>
  );
}

function isSame(draft: Draft, request: PublishRequest | undefined): request is PublishRequest {
  return (
    request !== undefined &&
    draft.topic === request.topic &&
    draft.content === request.content &&
    draft.isJson === request.isJson
  );
}
