import { type Published, type Stele, SteleError } from "@stele/client";
import { useMutation, useQueryClient, type UseMutationResult } from "@tanstack/react-query";
import { formatKey } from "../broker/addresses.ts";
import { useStele } from "../broker/session-context.tsx";
import type { Draft } from "./commands.ts";

const topicNotExist = 100101;

export interface PublishRequest extends Draft {
  /** Opens the topic first. */
  readonly opens: boolean;
  /** Publish key. */
  readonly once: string;
}

/** 128 random bits. Pages over plain HTTP have no `crypto.randomUUID`. */
export function newPublishKey(): string {
  return crypto.getRandomValues(new Uint32Array(4)).join("-");
}

export function usePublish(): UseMutationResult<Published, Error, PublishRequest> {
  const stele = useStele();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (request: PublishRequest) => publish(stele, request),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["readiness"] }),
  });
}

export function isTopicMissing(error: unknown): boolean {
  return error instanceof SteleError && error.code === topicNotExist;
}

async function publish(stele: Stele, { topic, content, isJson, opens, once }: PublishRequest): Promise<Published> {
  if (opens) await stele.open(topic);
  const extensions = isJson ? { [formatKey]: "json" } : undefined;
  return stele.publish(topic, content, { extensions, once });
}
