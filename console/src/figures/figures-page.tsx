import type { Stele } from "@stele/client";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useStele } from "../broker/session-context.tsx";
import { useFailure } from "../broker/use-failure.ts";
import { usePollMs } from "../broker/use-poll-ms.ts";
import { Failure } from "../ui/failure.tsx";
import { Page } from "../ui/page.tsx";
import { Chart } from "./chart.tsx";
import { toCharts } from "./to-charts.ts";

const pollMs = 5000;

export type Figures = Awaited<ReturnType<Stele["admin"]["figures"]>>;

/** Figures of the answering node for the last hour. */
export function FiguresPage(): ReactNode {
  const stele = useStele();
  const query = useQuery({
    queryKey: ["figures"],
    queryFn: ({ signal }) => stele.admin.figures({ signal }),
    refetchInterval: usePollMs(pollMs),
  });
  const { data } = query;
  const failure = useFailure(query);
  return (
    <Page title="Figures">
      <Failure error={failure} />
      {data === undefined ? null : <Charts figures={data} />}
    </Page>
  );
}

function Charts({ figures }: { readonly figures: Figures }): ReactNode {
  if (figures.figures.length === 0)
    return <p className="quiet-text">No figures yet: the broker is still measuring the first interval.</p>;
  const { times, charts } = toCharts(figures);
  return (
    <div className="charts">
      {charts.map(({ title, ...chart }) => (
        <Chart key={title} title={title} times={times} {...chart} />
      ))}
    </div>
  );
}
